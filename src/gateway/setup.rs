//! What tools are answered that set up an endpoint before they use it (O§1.1, O§1.2):
//! namespaces, datacenters, pools, and who runs actors in them.
//!
//! # Invariants
//!
//! 1. There is one namespace, one datacenter and one process with actors. What is made
//!    beside them is told back as long as the gateway lives, and changes nothing: actors
//!    are in the one namespace only.
//! 2. A pool is known when the gateway was opened with it, a tool has set it up, or it is
//!    the usual one. This process is in the one that the gateway was opened with.
//! 3. Nobody is answered where the gateway was opened without a pool: an author's application
//!    has these paths for itself then.
//! 4. Who makes things takes memory for [`MOST`] of a kind at most.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, header};
use axum::routing::{get, put};
use parking_lot::Mutex;

use super::Shared;
use super::answer::{Answer, Failure, json};
use super::body::{Read, read};
use super::front::text;
use super::manager::ONLY;
use crate::ids::IdSource;
use crate::protocol::manager::{
    self, Datacenter, DatacentersResponse, EndpointConfigResponse, Envoy, EnvoysResponse,
    ListQuery, ManagerError, Namespace, NamespaceQuery, NamespaceRequest, NamespaceResponse,
    NamespacesResponse, Pagination, PoolRequest, RunnerConfigsResponse,
};

/// The longest body of a tool, in bytes: 64 KiB.
const MAX_BODY: usize = 64 * 1024;

/// The most namespaces, pools, and places of one pool.
const MOST: usize = 256;

/// The longest name of any of them, in bytes.
const MAX_NAME: usize = 128;

/// The version that a process tells where its author gives none.
const ENVOY_VERSION: u32 = 1;

/// What tools have made, and since when there is anything.
#[derive(Debug)]
pub(super) struct Setup {
    /// The name of the process.
    envoy_key: String,
    /// When the gateway was opened, in milliseconds since the epoch.
    opened_at: i64,
    made: Mutex<Made>,
}

/// What there is beside the one namespace.
#[derive(Debug, Default)]
struct Made {
    namespaces: BTreeMap<String, Namespace>,
    /// The places of each pool.
    pools: BTreeMap<String, BTreeSet<String>>,
}

impl Setup {
    /// A gateway with one namespace and one pool.
    pub(super) fn new(namespace: &str, pool: &str, ids: &IdSource, opened_at: i64) -> Self {
        let only = Namespace {
            namespace_id: namespace.to_owned(),
            name: namespace.to_owned(),
            display_name: namespace.to_owned(),
            create_ts: opened_at,
        };
        let place = BTreeSet::from([ONLY.to_owned()]);
        let made = Made {
            namespaces: BTreeMap::from([(namespace.to_owned(), only)]),
            pools: BTreeMap::from([(ONLY.to_owned(), place.clone()), (pool.to_owned(), place)]),
        };
        Self { envoy_key: ids.uuid(), opened_at, made: Mutex::new(made) }
    }

    /// Refuses a pool that nobody has set up (2).
    pub(super) fn check_pool(&self, namespace: &str, pool: &str) -> Result<(), ManagerError> {
        if self.made.lock().pools.contains_key(pool) {
            return Ok(());
        }
        let pool_name = pool.chars().take(64).collect();
        Err(ManagerError::NoSuchPool { namespace: namespace.to_owned(), pool_name })
    }

    /// Refuses a namespace that nobody has made.
    fn check_namespace(&self, named: Option<&str>) -> Result<(), ManagerError> {
        match named {
            Some(name) if !self.made.lock().namespaces.contains_key(name) => {
                Err(ManagerError::NoSuchNamespace { name: name.chars().take(64).collect() })
            }
            _ => Ok(()),
        }
    }

    fn make_namespace(
        &self,
        wanted: NamespaceRequest,
        now: i64,
    ) -> Result<Namespace, ManagerError> {
        let NamespaceRequest { name, display_name } = wanted;
        if !is_name(&name) {
            return Err(ManagerError::BadNamespace { reason: "invalid name".to_owned() });
        }
        check_name("display_name", &display_name)?;
        let mut made = self.made.lock();
        if made.namespaces.contains_key(&name) {
            return Err(ManagerError::DuplicateNamespace { name });
        }
        check_room("namespaces", made.namespaces.len())?;
        let namespace =
            Namespace { namespace_id: name.clone(), name, display_name, create_ts: now };
        made.namespaces.insert(namespace.name.clone(), namespace.clone());
        Ok(namespace)
    }

    fn set_pool(&self, pool: String, wanted: PoolRequest) -> Result<(), ManagerError> {
        check_name("pool", &pool)?;
        let places = wanted.datacenters;
        if let Some(place) = places.iter().find(|place| *place != ONLY) {
            let name = place.chars().take(64).collect();
            return Err(ManagerError::NoSuchDatacenter { name });
        }
        let mut made = self.made.lock();
        if !made.pools.contains_key(&pool) {
            check_room("pools", made.pools.len())?;
        }
        made.pools.insert(pool, places);
        Ok(())
    }
}

/// Whether a namespace may have this name.
fn is_name(name: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(may)
}

/// What every other name of these has to be like (4).
fn check_name(what: &str, name: &str) -> Result<(), ManagerError> {
    let reason = match name.len() {
        0 => format!("`{what}` is empty"),
        length if length > MAX_NAME => {
            format!("`{what}` has {length} bytes, the limit is {MAX_NAME}")
        }
        _ => return Ok(()),
    };
    Err(ManagerError::InvalidInput { reason })
}

fn check_room(what: &str, count: usize) -> Result<(), ManagerError> {
    if count < MOST {
        return Ok(());
    }
    Err(ManagerError::InvalidInput { reason: format!("there are {count} {what} already") })
}

/// The routes of tools.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/namespaces", get(namespaces).post(make_namespace))
        .route("/datacenters", get(datacenters))
        .route("/runner-configs", get(pools))
        .route("/runner-configs/{pool}", put(set_pool))
        .route("/envoys", get(envoys))
}

/// Whether a path is one of theirs.
pub(super) fn has(path: &str) -> bool {
    matches!(path, "/namespaces" | "/datacenters" | "/runner-configs" | "/envoys")
        || path.starts_with("/runner-configs/")
}

async fn namespaces(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let (setup, query) = listed(&shared, query, "name")?;
    let (namespaces, pagination) =
        page(&query, &setup.made.lock().namespaces, |_, one| one.clone());
    Ok(json(manager::json(&NamespacesResponse { namespaces, pagination })))
}

async fn make_namespace(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let setup = checked(&shared, query)?;
    let wanted = NamespaceRequest::decode(&body(&shared, request).await?);
    let now = shared.clock().unix_ms();
    let namespace = wanted.and_then(|wanted| setup.make_namespace(wanted, now));
    let namespace = namespace.map_err(Failure::manager)?;
    Ok(json(manager::json(&NamespaceResponse { namespace })))
}

async fn datacenters(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer {
    // They are the same for all namespaces, known or not (O§1.1).
    let query = ListQuery::parse(&query.unwrap_or_default(), Some("name"));
    query.map_err(Failure::manager)?;
    let here = || shared.options.address.to_string();
    let host = text(&headers, header::HOST.as_str()).map_or_else(here, str::to_owned);
    let only = Datacenter { label: 1, name: ONLY.to_owned(), url: format!("http://{host}") };
    let pagination = Pagination::default();
    Ok(json(manager::json(&DatacentersResponse { datacenters: vec![only], pagination })))
}

async fn pools(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let (setup, query) = listed(&shared, query, "runner_name")?;
    let (pools, pagination) = page(&query, &setup.made.lock().pools, |name, places| {
        (name.clone(), places.iter().cloned().collect())
    });
    let runner_configs = pools.into_iter().collect();
    Ok(json(manager::json(&RunnerConfigsResponse { runner_configs, pagination })))
}

async fn set_pool(
    State(shared): State<Arc<Shared>>,
    pool: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let setup = checked(&shared, query)?;
    let bad = |reason| Failure::manager(ManagerError::BadRequest { reason });
    let Path(pool) = pool.map_err(|error| bad(error.body_text()))?;
    let wanted = PoolRequest::decode(&body(&shared, request).await?);
    let set = wanted.and_then(|wanted| setup.set_pool(pool, wanted));
    set.map_err(Failure::manager)?;
    // Actors run where they did before (1).
    Ok(json(manager::json(&EndpointConfigResponse { endpoint_config_changed: false })))
}

/// This process, in its pool (2).
async fn envoys(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let (setup, query) = listed(&shared, query, "name")?;
    let pool = shared.options.pool.clone().unwrap_or_default();
    let running: usize = shared.host.busy_by_state().into_values().sum();
    let envoy = Envoy {
        envoy_key: setup.envoy_key.clone(),
        namespace_id: shared.options.namespace.clone(),
        datacenter: ONLY.to_owned(),
        pool_name: pool.clone(),
        version: ENVOY_VERSION,
        slots: u32::try_from(running).unwrap_or(u32::MAX),
        create_ts: setup.opened_at,
        stop_ts: None,
        last_ping_ts: shared.clock().unix_ms(),
        last_connected_ts: Some(setup.opened_at),
        last_rtt: 0,
        runtime_version: super::VERSION.to_owned(),
    };
    let all = BTreeMap::from([(pool, envoy)]);
    let (envoys, pagination) = page(&query, &all, |_, envoy| envoy.clone());
    Ok(json(manager::json(&EnvoysResponse { envoys, pagination })))
}

/// What was asked for of a list, in the order of names. A page ends with a name.
fn page<T, U>(
    query: &ListQuery,
    all: &BTreeMap<String, T>,
    show: impl Fn(&String, &T) -> U,
) -> (Vec<U>, Pagination) {
    let after = query.page.cursor.as_deref().unwrap_or_default();
    let wanted = |name: &str| query.pool.as_ref().is_none_or(|asked| asked == name);
    let mut rest = all.iter().filter(|(name, _)| wanted(name) && name.as_str() > after);
    let mut last = None;
    let mut page = Vec::new();
    for (name, one) in rest.by_ref().take(query.page.limit) {
        last = Some(name.clone());
        page.push(show(name, one));
    }
    let cursor = last.filter(|_| rest.next().is_some());
    (page, Pagination { cursor })
}

/// What tools have made. The routes are there only where they are served.
fn setup_of(shared: &Shared) -> Result<&Setup, Failure> {
    let nothing = || Failure::manager(ManagerError::NotFound { path: String::new() });
    shared.setup.as_ref().ok_or_else(nothing)
}

/// Reads a query whose parameter `name` picks one of a list.
fn listed<'a>(
    shared: &'a Shared,
    query: Option<String>,
    name: &'static str,
) -> Result<(&'a Setup, ListQuery), Failure> {
    let setup = setup_of(shared)?;
    let query = ListQuery::parse(&query.unwrap_or_default(), Some(name));
    let query = query.map_err(Failure::manager)?;
    setup.check_namespace(query.namespace.as_deref()).map_err(Failure::manager)?;
    Ok((setup, query))
}

fn checked(shared: &Shared, query: Option<String>) -> Result<&Setup, Failure> {
    let setup = setup_of(shared)?;
    let query = NamespaceQuery::parse(&query.unwrap_or_default()).map_err(Failure::manager)?;
    setup.check_namespace(query.namespace.as_deref()).map_err(Failure::manager)?;
    Ok(setup)
}

async fn body(shared: &Shared, request: Request) -> Result<bytes::Bytes, Failure> {
    let patience = shared.options.bounds.body_timeout;
    let read = read(request.into_body(), MAX_BODY, shared.clock(), patience).await;
    match read.map_err(Failure::manager)? {
        Read::Whole(bytes) => Ok(bytes),
        Read::TooLong(size) => Err(Failure::manager(ManagerError::BadRequest {
            reason: format!("the body has {size} bytes, the limit is {MAX_BODY}"),
        })),
    }
}
