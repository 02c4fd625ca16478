//! Requests that become sockets (§3.1, §3.2, §6.6).
//!
//! A client of a WebSocket reads nothing of a refusal over HTTP, so whatever is wrong with
//! an upgrade, the socket opens and is closed with the reason. What is asked for is put
//! aside, and done by a task of its own once HTTP is through with it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures::future::BoxFuture;
use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::admission::{authenticate, bearer};
use super::connect::{self, Connect};
use super::inspector::{self, Dashboard};
use super::web_socket::WebSocket;
use super::{head, raw_socket};
use crate::error::Error;
use crate::protocol::route::{Hints, UpgradeRoute, route};
use crate::protocol::{Close, MAX_SOCKET_MESSAGE, Offer};

/// How long messages may be, in bytes, of a client that is refused anyway.
const MAX_REFUSED: usize = 64 * 1024;

/// What the task of a connection and the requests on it share: what is to follow HTTP, and
/// where the client is.
#[derive(Clone)]
pub(super) struct Line {
    next: Arc<Mutex<Option<Upgrade>>>,
    from: IpAddr,
}

/// A socket that is to be served.
pub(super) struct Upgrade {
    socket: OnUpgrade,
    plan: Result<Plan, Error>,
    ray_id: String,
}

/// What is to be done with it.
enum Plan {
    Connect(Box<Connect>),
    Raw(Box<Connect>),
    Inspect(Box<Dashboard>),
}

impl Line {
    pub(super) fn new(from: IpAddr) -> Self {
        Self { next: Arc::default(), from }
    }

    /// What follows HTTP, if anything.
    pub(super) fn take(&self) -> Option<Upgrade> {
        self.next.lock().take()
    }
}

/// Answers a request for a socket; `None` if it is none. `admitted` says whether requests
/// with this head are answered at all.
pub(super) fn answer(
    shared: &Shared,
    request: &mut Request,
    admitted: Result<(), Error>,
    ray_id: &str,
) -> Option<Response> {
    let key = key(request)?;
    let line = request.extensions().get::<Line>().cloned()?;
    let offer = offer(request.headers());
    let plan = admitted.and_then(|()| plan(shared, request, &offer, &line, ray_id));
    let upgrade = Upgrade { socket: hyper::upgrade::on(request), plan, ray_id: ray_id.to_owned() };
    let before = line.next.lock().replace(upgrade);
    drop(before);

    let mut response = Response::default();
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&key).ok()?);
    if let Some(selected) = offer.selected() {
        headers.insert(HeaderName::from_static(Offer::HEADER), HeaderValue::from_static(selected));
    }
    Some(response)
}

/// The answer to the key of an upgrade; `None` of a request that is no upgrade.
fn key(request: &Request) -> Option<String> {
    let headers = request.headers();
    let is_upgrade = request.method() == Method::GET
        && has_token(headers, &header::UPGRADE, "websocket")
        && has_token(headers, &header::CONNECTION, "upgrade")
        && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| is_upgrade)?;
    Some(derive_accept_key(key.as_bytes()))
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
}

fn offer(headers: &HeaderMap) -> Offer {
    let offers = headers.get_all(Offer::HEADER).iter();
    Offer::parse(offers.filter_map(|value| value.to_str().ok()))
}

fn plan(
    shared: &Shared,
    request: &Request,
    offer: &Offer,
    line: &Line,
    ray_id: &str,
) -> Result<Plan, Error> {
    let uri = request.uri().path_and_query().map_or("/", |uri| uri.as_str());
    let no_route = |path: &str| {
        let path = path.split('?').next().unwrap_or_default().to_owned();
        Error::from(crate::protocol::route::RouteError::NoRoute { path })
    };
    let target = route(uri, &Hints::of_upgrade(offer))?.ok_or_else(|| no_route(uri))?;
    let given = target.token.as_deref().or_else(|| bearer(request.headers()));
    authenticate(&shared.options, given)?;
    let wanted = UpgradeRoute::parse(&target.path);
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.headers = request.headers().clone();
    if wanted == UpgradeRoute::Inspector {
        let token = offer.inspector_token.as_deref().or_else(|| bearer(request.headers()));
        return Ok(Plan::Inspect(Box::new(Dashboard {
            version: inspector::version_of(&target.path)?,
            token: token.map(str::to_owned),
            head: head::of_actor(&parts, &target.path, ray_id, shared.options.token.as_ref()),
            actor: target.actor,
            from: line.from,
            ray_id: ray_id.to_owned(),
        })));
    }
    let is_raw = wanted == UpgradeRoute::Raw;
    let connect = Box::new(Connect {
        encoding: offer.encoding()?,
        params: offer.params()?,
        head: head::of_actor(&parts, &target.path, ray_id, shared.options.token.as_ref()),
        actor: target.actor,
        from: line.from,
        ray_id: ray_id.to_owned(),
    });
    Ok(if is_raw { Plan::Raw(connect) } else { Plan::Connect(connect) })
}

impl Upgrade {
    /// Has it refused.
    pub(super) fn refused(self, error: impl Into<Error>) -> Self {
        Self { plan: Err(error.into()), ..self }
    }

    /// Serves the socket until it is over.
    pub(super) async fn serve(self, shared: Arc<Shared>, closing: CancellationToken) {
        // What is needed to begin is let go of before the long part.
        if let Some(service) = Box::pin(self.begin(shared, closing)).await {
            service.await;
        }
    }

    async fn begin(
        self,
        shared: Arc<Shared>,
        closing: CancellationToken,
    ) -> Option<BoxFuture<'static, ()>> {
        let upgraded = match self.socket.await {
            Ok(upgraded) => upgraded,
            Err(error) => {
                // The client went before it read the answer.
                tracing::debug!(%error, "a connection was not upgraded");
                return None;
            }
        };
        let (plan, is_raw) = match self.plan {
            Ok(Plan::Connect(plan)) => (Ok(plan), false),
            Ok(Plan::Raw(plan)) => (Ok(plan), true),
            Ok(Plan::Inspect(dashboard)) => {
                let admitted = dashboard.admit(&shared).await;
                let limit = if admitted.is_ok() { MAX_SOCKET_MESSAGE } else { MAX_REFUSED };
                let socket = WebSocket::new(upgraded, &shared, limit).await;
                return Some(match admitted {
                    Ok(admitted) => inspector::serve(socket, &shared, admitted, closing),
                    Err(error) => refuse(socket, error, self.ray_id),
                });
            }
            Err(error) => (Err(error), false),
        };
        let prepared = match plan {
            Ok(plan) => connect::prepare(&shared, *plan, is_raw).await,
            Err(error) => Err(error),
        };
        let limit = match &prepared {
            Ok(_) if is_raw => raw_socket::LIMIT,
            Ok(ready) => ready.limits.incoming,
            Err(_) => MAX_REFUSED,
        };
        let socket = WebSocket::new(upgraded, &shared, limit).await;
        Some(match prepared {
            Ok(ready) if is_raw => raw_socket::serve(socket, &shared, ready, closing),
            Ok(ready) => connect::serve(socket, &shared, ready, closing),
            Err(error) => refuse(socket, error, self.ray_id),
        })
    }
}

/// Ends a socket whose client is not let in.
fn refuse(socket: WebSocket, mut error: Error, ray_id: String) -> BoxFuture<'static, ()> {
    error.ray_id.get_or_insert(ray_id);
    Box::pin(socket.finish(Close::failed(&error)))
}
