//! The calls of the manager: which actors there are, and making and ending them (§6.3).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{Method, Uri};
use axum::routing::{delete, get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Shared;
use super::actor::{actor_id, row};
use super::answer::{Answer, Failure, json};
use super::body::{Read, read};
use super::options::MAX_CREATE_BODY;
use super::setup;
use super::{inspector, metrics};
use crate::core::behavior::Reply;
use crate::error::Error;
use crate::host::embedded::Address;
use crate::ids::{ActorId, ActorKey};
use crate::protocol::manager::{
    self, Actor, ActorTypeMetadata, ActorsQuery, ActorsResponse, CrashPolicy, CreateRequest,
    CreateResponse, GetOrCreateResponse, HealthResponse, KvValueResponse, ListQuery, ManagerError,
    MetadataResponse, NamesResponse, NamespaceQuery, Nothing, Page, Pagination, Wanted,
};
use crate::store::{ActorNumber, ActorRow};

/// What clients take us for where it matters to them.
const RUNTIME: &str = "engine";

/// The only pool, and the only place.
pub(super) const ONLY: &str = "default";

/// The key of the token of an actor's inspector.
const INSPECTOR_TOKEN: [u8; 1] = [3];

/// How often a get-or-create begins again because somebody made or destroyed the actor
/// between its two looks.
const ATTEMPTS: usize = 8;

/// The routes of the manager.
pub(super) fn routes(shared: &Shared) -> Router<Arc<Shared>> {
    let tools = if shared.setup.is_some() { setup::routes() } else { Router::new() };
    tools
        .route("/health", get(health))
        .route("/metadata", get(metadata))
        .route("/metrics", get(metrics::metrics))
        .route("/actors", get(list).put(get_or_create).post(create))
        .route("/actors/names", get(names))
        .route("/actors/{id}", delete(destroy))
        .route("/actors/{id}/sleep", post(sleep))
        .route("/actors/{id}/kv/keys/{key}", get(value))
        .fallback(nothing_there)
        .method_not_allowed_fallback(nothing_there)
}

/// Whether a path is one of its own.
pub(super) fn has(shared: &Shared, path: &str) -> bool {
    matches!(path, "/health" | "/metadata" | "/metrics" | "/actors")
        || path.starts_with("/actors/")
        || (shared.setup.is_some() && setup::has(path))
}

/// Whether a call is for those who manage actors, rather than for their clients, who find
/// and make them (§6.3).
pub(super) fn manages(shared: &Shared, method: &Method, uri: &Uri) -> bool {
    let finds = || {
        let query = ActorsQuery::parse(uri.query().unwrap_or_default());
        query.is_ok_and(|query| !matches!(query.wanted, Wanted::Name { .. }))
    };
    match (method, uri.path()) {
        (_, "/health" | "/metadata") => false,
        (&Method::GET, "/actors") => !finds(),
        (&Method::PUT | &Method::POST, "/actors") => false,
        (_, path) => has(shared, path),
    }
}

async fn nothing_there(uri: Uri) -> Failure {
    // Behind an `@` may be a token.
    let path = uri.path().split('@').next().unwrap_or_default();
    Failure::manager(ManagerError::NotFound { path: path.chars().take(256).collect() })
}

async fn health() -> Answer {
    Ok(json(manager::json(&HealthResponse {
        runtime: RUNTIME,
        status: "ok",
        version: super::VERSION.to_owned(),
    })))
}

async fn metadata() -> Answer {
    Ok(json(manager::json(&MetadataResponse {
        runtime: RUNTIME,
        version: super::VERSION.to_owned(),
        client_endpoint: None,
        client_namespace: None,
        client_token: None,
    })))
}

async fn list(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let query = ActorsQuery::parse(&query.unwrap_or_default()).map_err(Failure::manager)?;
    shared.check_namespace(query.namespace.as_deref()).map_err(Failure::manager)?;
    let (rows, cursor) = match query.wanted {
        Wanted::Ids(ids) => {
            let mut rows = Vec::new();
            for id in ids.iter().filter_map(|id| ActorId::parse(id)) {
                rows.extend(found(&shared, Address::Id(id)).await.map_err(Failure::manager)?);
            }
            rows.sort_by_key(|row| std::cmp::Reverse(row.number.0));
            rows.dedup_by_key(|row| row.number);
            (rows, None)
        }
        Wanted::Key { name, key } => {
            let address = Address::Key { name, key, create: None };
            let row = found(&shared, address).await.map_err(Failure::manager)?;
            (row.into_iter().collect(), None)
        }
        Wanted::Name { name, page: Page { limit, cursor } } => {
            let before = cursor.map(|cursor| number(&cursor)).transpose();
            let before = before.map_err(Failure::manager)?;
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            let rows = shared.host.list_newest(name, before, limit).await;
            let rows = rows.map_err(Failure::manager)?;
            let cursor = rows.last().map(|row| row.number.0.to_string());
            (rows, cursor)
        }
    };
    let actors = rows.iter().map(|row| actor(&shared, row, None)).collect();
    Ok(json(manager::json(&ActorsResponse { actors, pagination: Pagination { cursor } })))
}

/// The row of an actor, if there is one.
async fn found(shared: &Shared, address: Address) -> Result<Option<ActorRow>, Error> {
    match row(shared, address).await {
        Ok(row) => Ok(Some(row)),
        Err(error) if error.is("actor", "not_found") => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a page ended with. The number of an actor tells those of one millisecond apart.
fn number(cursor: &str) -> Result<ActorNumber, ManagerError> {
    cursor.parse().map(ActorNumber).map_err(|_| ManagerError::BadRequest {
        reason: "`cursor` is none that a page ended with".to_owned(),
    })
}

async fn get_or_create(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let wanted = create_request(&shared, query, request.into_body()).await?;
    let (row, created) = find_or_create(&shared, &wanted).await.map_err(Failure::manager)?;
    let actor = actor(&shared, &row, Some(&wanted));
    Ok(json(manager::json(&GetOrCreateResponse { actor, created })))
}

/// Finds the actor or makes it, and tells which: of many who ask at once, one made it.
async fn find_or_create(
    shared: &Shared,
    wanted: &CreateRequest,
) -> Result<(ActorRow, bool), Error> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let key = wanted.key.clone().unwrap_or_default();
        let address = Address::Key { name: wanted.name.clone(), key: key.clone(), create: None };
        if let Some(row) = found(shared, address).await? {
            return Ok((row, false));
        }
        match make(shared, wanted, key).await {
            Ok(row) => return Ok((row, true)),
            Err(error) if error.is("actor", "already_exists") && attempts < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

async fn create(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let wanted = create_request(&shared, query, request.into_body()).await?;
    let key = wanted.key.clone().unwrap_or_default();
    let row = make(&shared, &wanted, key.clone()).await.map_err(|error| {
        if !error.is("actor", "already_exists") {
            return Failure::manager(error);
        }
        let taken = error.metadata.as_ref().and_then(|metadata| metadata["actor_id"].as_str());
        Failure::manager(ManagerError::DuplicateKey {
            key: key.to_string(),
            existing_actor_id: taken.unwrap_or_default().to_owned(),
        })
    })?;
    let actor = actor(&shared, &row, Some(&wanted));
    Ok(json(manager::json(&CreateResponse { actor })))
}

async fn make(shared: &Shared, wanted: &CreateRequest, key: ActorKey) -> Result<ActorRow, Error> {
    let (reply, made) = Reply::channel();
    let input = wanted.input.as_ref().map(|input| input.cbor().clone());
    shared.host.create(wanted.name.clone(), key, input, reply);
    made.await
}

async fn create_request(
    shared: &Shared,
    query: Option<String>,
    body: Body,
) -> Result<CreateRequest, Failure> {
    check_query(shared, query)?;
    let patience = shared.options.bounds.body_timeout;
    let read = read(body, MAX_CREATE_BODY, shared.clock(), patience).await;
    match read.map_err(Failure::manager)? {
        Read::Whole(bytes) => {
            let wanted = CreateRequest::decode(&bytes).map_err(Failure::manager)?;
            if let (Some(pool), Some(setup)) = (&wanted.runner_name_selector, &shared.setup) {
                let namespace = &shared.options.namespace;
                setup.check_pool(namespace, pool).map_err(Failure::manager)?;
            }
            Ok(wanted)
        }
        Read::TooLong(size) => Err(Failure::manager(ManagerError::BadRequest {
            reason: format!("the body has {size} bytes, the limit is {MAX_CREATE_BODY}"),
        })),
    }
}

async fn names(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let query = ListQuery::parse(&query.unwrap_or_default(), None).map_err(Failure::manager)?;
    shared.check_namespace(query.namespace.as_deref()).map_err(Failure::manager)?;
    let after = query.page.cursor.unwrap_or_default();
    let mut types: Vec<_> = shared.host.types().into_iter().collect();
    types.retain(|(name, _)| name.as_str() > after.as_str());
    let is_last = types.len() <= query.page.limit;
    types.truncate(query.page.limit);
    let last = types.last().map(|(name, _)| name.as_str().to_owned());
    let names = types.into_iter().map(|(name, config)| {
        let metadata = ActorTypeMetadata { icon: config.icon.clone(), name: config.name.clone() };
        (name.as_str().to_owned(), metadata)
    });
    Ok(json(manager::json(&NamesResponse {
        names: names.collect(),
        pagination: Pagination { cursor: last.filter(|_| !is_last) },
    })))
}

/// Ends an actor. One that is gone, or never was, is an answer like any other (O§1.1).
async fn destroy(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Answer {
    check_query(&shared, query)?;
    let id = managed_id(id)?;
    let (reply, destroyed) = Reply::channel();
    shared.host.destroy(Address::Id(id), reply);
    destroyed.await.map_err(Failure::manager)?;
    Ok(json(manager::json(&Nothing {})))
}

async fn sleep(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Answer {
    check_query(&shared, query)?;
    let id = managed_id(id)?;
    let (reply, slept) = Reply::channel();
    shared.host.sleep(id, reply);
    slept.await.map_err(Failure::manager)?;
    Ok(json(manager::json(&Nothing {})))
}

/// What this runtime keeps under a key of an actor: under [`INSPECTOR_TOKEN`] what lets a
/// dashboard look into it. The author's own keys are no matter of those who manage actors.
async fn value(
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Answer {
    check_query(&shared, query)?;
    let bad = |reason| Failure::manager(ManagerError::BadRequest { reason });
    let Path((id, key)) = path.map_err(|error| bad(error.body_text()))?;
    let id = actor_id(&id).map_err(|error| bad(error.to_string()))?;
    let Ok(raw) = STANDARD.decode(&key) else {
        return Err(bad("the key is no base64".to_owned()));
    };
    let row = row(&shared, Address::Id(id)).await.map_err(Failure::manager)?;
    if raw == INSPECTOR_TOKEN {
        let token = inspector::accepted(&shared, id);
        let update_ts = row.created_at_ms;
        let value = Some(token.into());
        return Ok(json(manager::json(&KvValueResponse { update_ts, value })));
    }
    Err(Failure::manager(ManagerError::NoSuchValue { key: key.chars().take(256).collect() }))
}

/// An id in a path of the manager, which says of any other text that it is none (O§1.1).
fn managed_id(given: Result<Path<String>, PathRejection>) -> Result<ActorId, Failure> {
    let bad = |reason| Failure::manager(ManagerError::BadRequest { reason });
    let Path(text) = given.map_err(|error| bad(error.body_text()))?;
    actor_id(&text).map_err(|error| bad(error.to_string()))
}

fn check_query(shared: &Shared, query: Option<String>) -> Result<(), Failure> {
    let query = NamespaceQuery::parse(&query.unwrap_or_default()).map_err(Failure::manager)?;
    shared.check_namespace(query.namespace.as_deref()).map_err(Failure::manager)
}

/// An actor as clients know it. What there is one of is said as the client said it.
fn actor(shared: &Shared, row: &ActorRow, asked: Option<&CreateRequest>) -> Actor {
    let said = |text: Option<&String>| text.cloned().unwrap_or_else(|| ONLY.to_owned());
    Actor {
        actor_id: row.id.to_string(),
        name: row.name.as_str().to_owned(),
        key: row.key.to_string(),
        namespace_id: shared.options.namespace.clone(),
        datacenter: said(asked.and_then(|asked| asked.datacenter.as_ref())),
        runner_name_selector: said(asked.and_then(|asked| asked.runner_name_selector.as_ref())),
        crash_policy: asked.map_or(CrashPolicy::Sleep, |asked| asked.crash_policy),
        create_ts: row.created_at_ms,
        start_ts: None,
        pending_allocation_ts: None,
        connectable_ts: None,
        sleep_ts: None,
        reschedule_ts: None,
        destroy_ts: None,
        error: None,
    }
}
