//! What clients are answered (§6.2, §6.3).

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::CrashPolicy;

/// A body in bytes.
pub fn json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body).expect("bodies have names for keys, and memory").into()
}

/// An actor, as clients know it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Actor {
    /// The id that stays over generations.
    pub actor_id: String,
    /// Its type. Clients compare it with the one that they asked for.
    pub name: String,
    /// Its key, as it is shown.
    pub key: String,
    /// The namespace that it is in.
    pub namespace_id: String,
    /// Where it runs.
    pub datacenter: String,
    /// The pool that it runs in.
    pub runner_name_selector: String,
    /// What becomes of it after a crash.
    pub crash_policy: CrashPolicy,
    /// When it was made.
    pub create_ts: i64,
    /// When it started last.
    pub start_ts: Option<i64>,
    /// Since when it waits for a place to run.
    pub pending_allocation_ts: Option<i64>,
    /// Since when it can be called.
    pub connectable_ts: Option<i64>,
    /// Since when it sleeps.
    pub sleep_ts: Option<i64>,
    /// When it will be tried again after a crash.
    pub reschedule_ts: Option<i64>,
    /// When it was destroyed.
    pub destroy_ts: Option<i64>,
    /// Why it could not start; left out when it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<serde_json::Value>,
}

/// The answer of `POST /actors`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreateResponse {
    /// The actor.
    pub actor: Actor,
}

/// The answer of `PUT /actors`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GetOrCreateResponse {
    /// The actor.
    pub actor: Actor,
    /// Whether there was none before.
    pub created: bool,
}

/// The answer of `GET /actors`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActorsResponse {
    /// The actors, the newest first.
    pub actors: Vec<Actor>,
    /// Where the next page begins.
    pub pagination: Pagination,
}

/// Where the next page of a list begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pagination {
    /// What to ask for; `null` after the last page.
    pub cursor: Option<String>,
}

/// The answer of `GET /actors/names`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamesResponse {
    /// The types of actors by their names.
    #[serde(serialize_with = "with_metadata")]
    pub names: BTreeMap<String, ActorTypeMetadata>,
    /// Where the next page begins.
    pub pagination: Pagination,
}

/// How a type of actors is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActorTypeMetadata {
    /// The name of its picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

fn with_metadata<S: Serializer>(
    names: &BTreeMap<String, ActorTypeMetadata>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Entry<'a> {
        metadata: &'a ActorTypeMetadata,
    }
    to.collect_map(names.iter().map(|(name, metadata)| (name, Entry { metadata })))
}

/// The answer of `GET /actors/{id}/kv/keys/{key}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KvValueResponse {
    /// When it was written last.
    pub update_ts: i64,
    /// The value in base64.
    #[serde(serialize_with = "in_base64")]
    pub value: Option<Bytes>,
}

fn in_base64<S: Serializer>(value: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    value.as_ref().map(|value| STANDARD.encode(value)).serialize(to)
}

/// The answer of `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthResponse {
    /// What answers.
    pub runtime: &'static str,
    /// `ok`.
    pub status: &'static str,
    /// The version of what answers.
    pub version: String,
}

/// The answer of `GET /metadata`. A client that finds an endpoint in it goes there for
/// good, and takes namespace and token along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataResponse {
    /// What answers.
    pub runtime: &'static str,
    /// The version of what answers.
    pub version: String,
    /// Where clients have to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_endpoint: Option<String>,
    /// The namespace that they use there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_namespace: Option<String>,
    /// What they authenticate with there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
}

/// The answer of what only succeeds: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nothing {}
