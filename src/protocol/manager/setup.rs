//! What tools are answered that set up an endpoint (O§1.1, O§1.2). An embedded host has
//! one of everything and changes nothing.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::Pagination;

/// The answer of `GET /datacenters`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DatacentersResponse {
    /// All of them.
    pub datacenters: Vec<Datacenter>,
    /// Where the next page begins.
    pub pagination: Pagination,
}

/// A place where actors run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Datacenter {
    /// Its number.
    pub label: u16,
    /// Its name.
    pub name: String,
    /// Where it is reached.
    pub url: String,
}

/// The answer of `POST /namespaces`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceResponse {
    /// The namespace.
    pub namespace: Namespace,
}

/// The answer of `GET /namespaces`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespacesResponse {
    /// The namespaces.
    pub namespaces: Vec<Namespace>,
    /// Where the next page begins.
    pub pagination: Pagination,
}

/// A space of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Namespace {
    /// Its id.
    pub namespace_id: String,
    /// Its name in queries.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// When it was made.
    pub create_ts: i64,
}

/// The answer of `PUT /runner-configs/{pool}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointConfigResponse {
    /// Whether anything is reached elsewhere from here on.
    pub endpoint_config_changed: bool,
}

/// The answer of `GET /envoys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvoysResponse {
    /// The processes that run actors. Tools wait until there is one.
    pub envoys: Vec<Envoy>,
    /// Where the next page begins.
    pub pagination: Pagination,
}

/// A process that runs actors. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Envoy {
    /// Its id.
    pub envoy_key: String,
    /// The namespace that it is in.
    pub namespace_id: String,
    /// Where it is.
    pub datacenter: String,
    /// The pool that it belongs to.
    pub pool_name: String,
    /// The version of what it runs.
    pub version: u32,
    /// How many actors it runs.
    pub slots: u32,
    /// When it appeared.
    pub create_ts: i64,
    /// When it ended.
    pub stop_ts: Option<i64>,
    /// When it was heard of last.
    pub last_ping_ts: i64,
    /// When it connected last.
    pub last_connected_ts: Option<i64>,
    /// How long a message takes there and back, in milliseconds.
    pub last_rtt: u32,
    /// The version of its runtime.
    #[serde(rename = "metadata", serialize_with = "as_rivetkit")]
    pub runtime_version: String,
}

fn as_rivetkit<S: Serializer>(version: &str, to: S) -> Result<S::Ok, S::Error> {
    BTreeMap::from([("rivetkit", BTreeMap::from([("version", version)]))]).serialize(to)
}

/// The answer of `GET /runner-configs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunnerConfigsResponse {
    /// The names of the pools, each with those of the datacenters that it is in.
    #[serde(serialize_with = "with_configs")]
    pub runner_configs: BTreeMap<String, Vec<String>>,
    /// Where the next page begins.
    pub pagination: Pagination,
}

fn with_configs<S: Serializer>(
    pools: &BTreeMap<String, Vec<String>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Pool<'a> {
        datacenters: BTreeMap<&'a str, Config>,
    }
    /// A pool whose processes connect by themselves.
    #[derive(Default, Serialize)]
    struct Config {
        normal: super::Nothing,
        protocol_version: Option<u32>,
    }
    to.collect_map(pools.iter().map(|(name, datacenters)| {
        let configs = datacenters.iter().map(|name| (name.as_str(), Config::default()));
        (name, Pool { datacenters: configs.collect() })
    }))
}
