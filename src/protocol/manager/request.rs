//! What clients send.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{ManagerError, parse_key};
use crate::ids::ActorKey;
use crate::protocol::Payload;

/// Makes an actor: the body of `PUT /actors`, which takes one that there is, and of
/// `POST /actors`, which does not.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest {
    /// The type of the actor.
    pub name: String,
    /// Its key; `None` if the client left it out.
    pub key: Option<ActorKey>,
    /// What it is made from.
    pub input: Option<Payload>,
    /// The pool that it has to run in.
    pub runner_name_selector: Option<String>,
    /// What becomes of it after a crash.
    pub crash_policy: CrashPolicy,
    /// Where it has to run.
    pub datacenter: Option<String>,
}

/// What becomes of an actor after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrashPolicy {
    /// It starts again.
    Restart,
    /// It starts again when it is called.
    #[default]
    Sleep,
    /// It is gone.
    Destroy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateFields {
    name: String,
    key: Option<String>,
    input: Option<String>,
    runner_name_selector: Option<String>,
    crash_policy: Option<CrashPolicy>,
    datacenter: Option<String>,
}

impl CreateRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// [`ManagerError::BadRequest`], also of an input that is not CBOR in base64 and of a
    /// key that is too long.
    pub fn decode(body: &[u8]) -> Result<Self, ManagerError> {
        let fields: CreateFields = serde_json::from_slice(body).map_err(ManagerError::bad)?;
        let input = match fields.input {
            None => None,
            Some(text) => {
                let cbor = STANDARD
                    .decode(text)
                    .map_err(|error| ManagerError::bad(format!("`input`: {error}")))?;
                Some(Payload::new(Bytes::from(cbor))?)
            }
        };
        Ok(Self {
            name: fields.name,
            key: fields.key.as_deref().map(parse_key).transpose().map_err(ManagerError::bad)?,
            input,
            runner_name_selector: fields.runner_name_selector,
            crash_policy: fields.crash_policy.unwrap_or_default(),
            datacenter: fields.datacenter,
        })
    }
}

/// Makes a namespace: the body of `POST /namespaces`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespaceRequest {
    /// Its name in queries.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
}

impl NamespaceRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// [`ManagerError::BadRequest`].
    pub fn decode(body: &[u8]) -> Result<Self, ManagerError> {
        serde_json::from_slice(body).map_err(ManagerError::bad)
    }
}
