//! What clients send (§6.3).

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{ManagerError, parse_key};
use crate::ids::{ActorKey, ActorName, MAX_INPUT_LEN};
use crate::protocol::Payload;

/// Makes an actor: the body of `PUT /actors`, which takes one that there is, and of
/// `POST /actors`, which does not.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest {
    /// The type of the actor.
    pub name: ActorName,
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
    /// [`ManagerError::BadRequest`], also of an input that is not CBOR in base64,
    /// [`ManagerError::InvalidInput`] of a name that no actor can have,
    /// [`ManagerError::KeyTooLarge`] and [`ManagerError::InputTooLarge`].
    pub fn decode(body: &[u8]) -> Result<Self, ManagerError> {
        let fields: CreateFields = serde_json::from_slice(body).map_err(ManagerError::bad)?;
        let key = fields.key.as_deref().map(parse_key).transpose();
        Ok(Self {
            name: ActorName::new(fields.name).map_err(ManagerError::invalid)?,
            key: key.map_err(ManagerError::KeyTooLarge)?,
            input: fields.input.map(input).transpose()?,
            runner_name_selector: fields.runner_name_selector,
            crash_policy: fields.crash_policy.unwrap_or_default(),
            datacenter: fields.datacenter,
        })
    }
}

fn input(text: String) -> Result<Payload, ManagerError> {
    let cbor =
        STANDARD.decode(text).map_err(|error| ManagerError::bad(format!("`input`: {error}")))?;
    if cbor.len() > MAX_INPUT_LEN {
        return Err(ManagerError::InputTooLarge { size: cbor.len(), limit: MAX_INPUT_LEN });
    }
    Payload::new(Bytes::from(cbor)).map_err(|error| ManagerError::bad(format!("`input`: {error}")))
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

/// Sets up a pool: the body of `PUT /runner-configs/{pool}`. How it runs actors in each
/// datacenter is for those who run them elsewhere, and is read by nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRequest {
    /// The names of its datacenters.
    pub datacenters: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolFields {
    datacenters: BTreeMap<String, BTreeMap<String, IgnoredAny>>,
}

impl PoolRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// [`ManagerError::BadRequest`].
    pub fn decode(body: &[u8]) -> Result<Self, ManagerError> {
        let fields: PoolFields = serde_json::from_slice(body).map_err(ManagerError::bad)?;
        Ok(Self { datacenters: fields.datacenters.into_keys().collect() })
    }
}
