//! The listener, its connections, and their end.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::{Router, middleware};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::answer::Failure;
use super::body::Tracked;
use super::error::GatewayError;
use super::front::Asker;
use super::options::GatewayOptions;
use super::socket::Impatient;
use super::timer::ClockTimer;
use super::upgrade::Line;
use super::{Shared, front, manager};
use crate::core::spawner::Spawner;
use crate::host::embedded::{EmbeddedHost, HostError};
use crate::time::{Clock, Duration};

/// How long nothing is accepted after that failed: mostly the process has too many files
/// open, and only the end of something else helps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server of HTTP in front of a host. Dropping it cuts everything off.
#[derive(Debug)]
pub struct Gateway {
    address: Option<SocketAddr>,
    door: Door,
    /// Has connections end after what they are at.
    _closing: DropGuard,
    /// Has connections end now.
    _cut_off: DropGuard,
}

/// What serves connections, wherever they come from.
#[derive(Clone, Debug)]
struct Door {
    router: Router,
    shared: Arc<Shared>,
    /// The listener's task and those of the connections (invariant 1).
    tasks: TaskTracker,
    closing: CancellationToken,
    cut_off: CancellationToken,
    spawner: Spawner,
    /// How many requests and connections may be served at a time.
    places: Arc<Semaphore>,
}

impl Gateway {
    /// Begins to listen. Its tasks are begun by `spawner`, whose runtime has to do I/O and
    /// to keep time; it may be another than that of the host.
    ///
    /// # Errors
    ///
    /// [`GatewayError::TokenNeeded`] and [`GatewayError::Unusable`].
    pub fn bind(
        host: Arc<EmbeddedHost>,
        options: GatewayOptions,
        spawner: Spawner,
    ) -> Result<Self, GatewayError> {
        let address = options.address;
        if options.token.is_none() && !options.application_only && !address.ip().is_loopback() {
            return Err(GatewayError::TokenNeeded { address });
        }
        let unusable =
            |error: io::Error| GatewayError::Unusable { address, reason: error.to_string() };
        let listener = {
            let _runtime = spawner.handle().enter();
            let listener = std::net::TcpListener::bind(address).map_err(unusable)?;
            listener.set_nonblocking(true).map_err(unusable)?;
            TcpListener::from_std(listener).map_err(unusable)?
        };
        let address = listener.local_addr().map_err(unusable)?;
        let gateway = Self::new(host, options, spawner, Some(address));
        let door = gateway.door.clone();
        let accept = gateway.door.tasks.track_future(door.accept(listener));
        gateway.door.spawner.spawn("gateway", accept);
        Ok(gateway)
    }

    /// One that listens nowhere: somebody else's server hands requests and connections
    /// over. Who can reach that is not known here, so whatever manages actors needs a token,
    /// or is refused.
    pub fn inside(host: Arc<EmbeddedHost>, options: GatewayOptions, spawner: Spawner) -> Self {
        Self::new(host, options, spawner, None)
    }

    fn new(
        host: Arc<EmbeddedHost>,
        options: GatewayOptions,
        spawner: Spawner,
        address: Option<SocketAddr>,
    ) -> Self {
        let places = Arc::new(Semaphore::new(options.bounds.connections.max(1)));
        let shared = Arc::new(Shared::new(host, options, address.is_some()));
        let (closing, cut_off) = (CancellationToken::new(), CancellationToken::new());
        let door = Door {
            router: router(&shared),
            shared,
            tasks: TaskTracker::new(),
            closing: closing.clone(),
            cut_off: cut_off.clone(),
            spawner,
            places,
        };
        Self { address, door, _closing: closing.drop_guard(), _cut_off: cut_off.drop_guard() }
    }

    /// Where it listens, with the port that it has got.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// What is counted, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        super::metrics::text(&self.door.shared)
    }

    /// The clock, and how long a body may take.
    pub(super) fn patience(&self) -> (Clock, Duration) {
        let shared = &self.door.shared;
        (shared.clock().clone(), shared.options.bounds.body_timeout)
    }

    /// Answers a request of somebody else's server; dropping the future gives it up. It
    /// lasts until the body of the answer has ended, and is cut off as a connection is.
    pub fn answer(&self, request: Request) -> impl Future<Output = Response> + Send + use<> {
        let (door, open) = (self.door.clone(), self.door.tasks.token());
        async move {
            let (shared, cut_off) = (Arc::clone(&door.shared), door.cut_off.clone());
            let (asker, _) = Asker::of(&shared, &request);
            let answered = async {
                // As a connection waits to be accepted. It is never closed, so there is one.
                let _place = Arc::clone(&door.places).acquire_owned().await;
                let answered = TowerToHyperService::new(door.router.clone()).call(request).await;
                answered.unwrap_or_else(|never| match never {})
            };
            tokio::select! {
                biased;
                () = cut_off.cancelled() => {
                    asker.told(&shared, Failure::gateway(HostError::ShutDown))
                }
                response = answered => response.map(|body| {
                    let (body, watch) = Tracked::new(body, cut_off.clone(), open);
                    door.spawner.spawn("gateway answer", watch);
                    Body::new(body)
                }),
            }
        }
    }

    /// Serves a connection that somebody else accepted, of a client at `from`, for one
    /// request: what follows is for somebody else's server.
    ///
    /// # Errors
    ///
    /// [`GatewayError::TooManyConnections`].
    pub fn serve_once(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        from: IpAddr,
    ) -> Result<(), GatewayError> {
        let limit = self.door.shared.options.bounds.connections;
        let place = Arc::clone(&self.door.places).try_acquire_owned();
        let place = place.map_err(|_| GatewayError::TooManyConnections { limit })?;
        self.door.serve(stream, from, place, false);
        Ok(())
    }

    /// Accepts nothing more, and has connections end after what they are at.
    pub fn close(&self) {
        self.door.closing.cancel();
        self.door.tasks.close();
    }

    /// Ends it (invariant 9), and answers when nothing of it is left. A second call
    /// joins the first; the shorter grace period counts. Cancel safe: what has begun goes
    /// on.
    pub async fn stop(&self, grace: Duration) {
        self.close();
        tokio::select! {
            biased;
            () = self.door.tasks.wait() => return,
            () = self.door.shared.clock().sleep(grace) => self.door.cut_off.cancel(),
        }
        self.door.tasks.wait().await;
    }
}

fn router(shared: &Arc<Shared>) -> Router {
    manager::routes(shared)
        .layer(middleware::from_fn_with_state(Arc::clone(shared), front::front))
        .with_state(Arc::clone(shared))
}

impl Door {
    async fn accept(self, listener: TcpListener) {
        loop {
            // Before the connection is accepted: until then it costs the system alone.
            let accepted = async {
                let place = Arc::clone(&self.places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                accepted = accepted => accepted,
            };
            // It is never closed, so there is one.
            let Ok(place) = place else { return };
            match accepted {
                Ok((stream, from)) => {
                    // Answers are whole when they are written: nothing to wait for.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a socket keeps its delay");
                    }
                    self.serve(stream, from.ip(), place, true);
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::select! {
                        biased;
                        () = self.closing.cancelled() => return,
                        () = self.shared.clock().sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
    }

    /// Serves a connection in a task of its own.
    fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        from: IpAddr,
        place: OwnedSemaphorePermit,
        keeps: bool,
    ) {
        let connection = connection(stream, from, place, keeps, self.clone());
        let connection = self.tasks.track_future(connection);
        self.spawner.spawn("gateway connection", connection);
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    from: IpAddr,
    place: OwnedSemaphorePermit,
    keeps: bool,
    door: Door,
) {
    let Door { router, shared, closing, cut_off, tasks, spawner, .. } = door;
    let (clock, bounds) = (shared.clock().clone(), shared.options.bounds);
    let line = Line::new(from);
    let service = service_fn({
        let (line, router) = (line.clone(), TowerToHyperService::new(router));
        move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(line.clone());
            let answered = router.call(request);
            async move {
                let mut response = answered.await?;
                // Said here and not by hyper, which says it of an upgrade, too: there are
                // clients that take no other word beside `upgrade`.
                if !keeps && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                Ok::<_, Infallible>(response)
            }
        }
    });
    let stream = Impatient::new(stream, clock.clone(), bounds.write_timeout);
    let served = http1::Builder::new()
        .timer(ClockTimer::new(clock))
        .header_read_timeout(bounds.head_timeout)
        .max_header_size(bounds.head)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut served = pin!(served);
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            () = cut_off.cancelled() => return,
            () = closing.cancelled(), if !is_closing => {
                is_closing = true;
                served.as_mut().graceful_shutdown();
            }
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    // Of a client's making: it went away, was too slow, or spoke no HTTP.
                    tracing::debug!(%error, "a connection broke");
                    return;
                }
                break;
            }
        }
    }
    let Some(upgrade) = line.take() else { return };
    // Sockets are quiet and stay; the places are for requests.
    let socket_place = Arc::clone(&shared.sockets).try_acquire_owned();
    let upgrade = match &socket_place {
        Ok(_) => upgrade,
        Err(_) => {
            upgrade.refused(GatewayError::TooManySockets { limit: shared.options.bounds.sockets })
        }
    };
    let place = socket_place.is_err().then_some(place);
    let socket = async move {
        let _places = (place, socket_place);
        tokio::select! {
            biased;
            () = cut_off.cancelled() => {}
            () = upgrade.serve(shared, closing) => {}
        }
    };
    // A task of its own: that of a request is many times as large, and sockets stay.
    spawner.spawn("gateway socket", tasks.track_future(socket));
}
