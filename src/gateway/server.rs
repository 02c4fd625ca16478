//! The listener, its connections, and their end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use axum::{Router, middleware};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::GatewayError;
use super::limits::Addresses;
use super::options::GatewayOptions;
use super::socket::Impatient;
use super::timer::ClockTimer;
use super::upgrade::Line;
use super::{Shared, front, manager};
use crate::core::spawner::Spawner;
use crate::host::embedded::EmbeddedHost;
use crate::time::Duration;

/// How long nothing is accepted after that failed: mostly the process has too many files
/// open, and only the end of something else helps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server of HTTP in front of a host. Dropping it cuts everything off.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// The listener's task and those of the connections (invariant 1).
    tasks: TaskTracker,
    /// Has connections end after what they are at.
    closing: CancellationToken,
    /// Has connections end now.
    cut_off: CancellationToken,
}

/// What the listener's task is given.
struct Accepting {
    router: Router,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    closing: CancellationToken,
    cut_off: CancellationToken,
    spawner: Spawner,
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
        if options.token.is_none() && !address.ip().is_loopback() {
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
        let sockets = Arc::new(Semaphore::new(options.bounds.sockets));
        let shared = Arc::new(Shared { host, options, sockets, addresses: Addresses::default() });
        let (tasks, closing, cut_off) =
            (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let accepting = Accepting {
            router: router(&shared),
            shared: Arc::clone(&shared),
            tasks: tasks.clone(),
            closing: closing.clone(),
            cut_off: cut_off.clone(),
            spawner: spawner.clone(),
        };
        let accept = tasks.track_future(accepting.run(listener));
        spawner.spawn("gateway", accept);
        Ok(Self { address, shared, tasks, closing, cut_off })
    }

    /// Where it listens, with the port that it has got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more, and has connections end after what they are at.
    pub fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
    }

    /// Ends it (invariant 9), and answers when nothing of it is left. A second call
    /// joins the first; the shorter grace period counts. Cancel safe: what has begun goes
    /// on.
    pub async fn stop(&self, grace: Duration) {
        self.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => return,
            () = self.shared.clock().sleep(grace) => self.cut_off.cancel(),
        }
        self.tasks.wait().await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.closing.cancel();
        self.cut_off.cancel();
    }
}

fn router(shared: &Arc<Shared>) -> Router {
    manager::routes()
        .layer(middleware::from_fn_with_state(Arc::clone(shared), front::front))
        .with_state(Arc::clone(shared))
}

impl Accepting {
    async fn run(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.shared.options.bounds.connections.max(1)));
        loop {
            // Before the connection is accepted: until then it costs the system alone.
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
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
                Ok((stream, from)) => self.serve(stream, from.ip(), place),
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
    fn serve(&self, stream: TcpStream, from: IpAddr, place: OwnedSemaphorePermit) {
        let connection = connection(
            stream,
            from,
            place,
            self.router.clone(),
            Arc::clone(&self.shared),
            self.closing.clone(),
            self.cut_off.clone(),
        );
        let connection = self.tasks.track_future(connection);
        self.spawner.spawn("gateway connection", connection);
    }
}

async fn connection(
    stream: TcpStream,
    from: IpAddr,
    place: OwnedSemaphorePermit,
    router: Router,
    shared: Arc<Shared>,
    closing: CancellationToken,
    cut_off: CancellationToken,
) {
    // Answers are whole when they are written, so there is nothing to wait for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket keeps its delay");
    }
    let (clock, bounds) = (shared.clock().clone(), shared.options.bounds);
    let line = Line::new(from);
    let service = service_fn({
        let (line, router) = (line.clone(), TowerToHyperService::new(router));
        move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(line.clone());
            router.call(request)
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
    let _place = socket_place.is_err().then_some(place);
    tokio::select! {
        biased;
        () = cut_off.cancelled() => {}
        () = upgrade.serve(&shared, &closing) => {}
    }
}
