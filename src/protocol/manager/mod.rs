//! The bodies and the queries of the manager's HTTP calls: JSON, whatever the client
//! speaks with actors (§6.3, O§1). Errors have [`ErrorBody`](super::ErrorBody), in JSON.
//!
//! # Invariants
//!
//! 1. A field or a parameter that nobody knows is refused, so that a misspelt one does
//!    not pass for one that was left out.
//! 2. What an embedded host does not have (namespaces, pools, regions, policies for
//!    crashes) is read and given back, and changes nothing.
//! 3. Times are milliseconds since the epoch.

mod error;
mod key;
mod query;
mod request;
mod response;
mod setup;
#[cfg(test)]
mod tests;

pub use self::error::ManagerError;
pub use self::key::parse_key;
pub(super) use self::key::split_key;
pub use self::query::{ActorsQuery, ListQuery, NamespaceQuery, Page, Wanted};
pub use self::request::{CrashPolicy, CreateRequest, NamespaceRequest, PoolRequest};
pub use self::response::{
    Actor, ActorTypeMetadata, ActorsResponse, CreateResponse, GetOrCreateResponse, HealthResponse,
    KvValueResponse, MetadataResponse, NamesResponse, Nothing, Pagination, json,
};
pub use self::setup::{
    Datacenter, DatacentersResponse, EndpointConfigResponse, Envoy, EnvoysResponse, Namespace,
    NamespaceResponse, NamespacesResponse, RunnerConfigsResponse,
};
