//! The bodies and the queries of the manager's HTTP calls: JSON, whatever the client
//! speaks with actors. Errors have [`ErrorBody`](super::ErrorBody), in JSON.
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
#[cfg(test)]
mod tests;

pub use self::error::ManagerError;
pub use self::key::parse_key;
pub use self::query::{ActorsQuery, Page, Wanted, parameters};
pub use self::request::{CrashPolicy, CreateRequest, NamespaceRequest};
pub use self::response::{
    Actor, ActorTypeMetadata, ActorsResponse, CreateResponse, Datacenter, DatacentersResponse,
    EndpointConfigResponse, GetOrCreateResponse, HealthResponse, KvValueResponse, MetadataResponse,
    NamesResponse, Namespace, NamespaceResponse, Nothing, Pagination, json,
};
