//! The front door for clients that are elsewhere: HTTP on a socket, in front of the actors
//! of one [`EmbeddedHost`](crate::host::embedded::EmbeddedHost).
//!
//! ```text
//! accept ──▶ connection ──▶ front ──▶ for an actor?  actor ──▶ host.call
//! (one task)  (one task)    │ │        else          manager ──▶ host.resolve, list, …
//!                           │ └ who may call, CORS, ray id, panics
//!                           └─▶ socket, once it is upgraded ──▶ host.connect
//!                             (one task)
//! ```
//!
//! What bytes and URLs mean is [`protocol`](crate::protocol)'s matter; here are sockets
//! alone. `§` names a section of the specification of connections, the client protocol and
//! the gateway, `O§` one of what was observed of the published server.
//!
//! # Invariants
//!
//! 1. A [`Gateway`] owns its listener, the task of each connection and that of each socket:
//!    none of them outlives it, and none is left when [`Gateway::stop`] has answered. A
//!    request is served within the task of its connection, or by whoever asks
//!    [`Gateway::answer`], and never in one of its own.
//! 2. Whatever a client can make grow has a bound: connections
//!    ([`Bounds::connections`]), the head of a request ([`Bounds::head`]), a body (the
//!    actor's limit for incoming messages, [`MAX_CREATE_BODY`] for the manager), a page of
//!    a list. A connection serves one request at a time, so it holds one body.
//! 3. A client that is slow holds a connection no longer than [`Bounds`] says: for a head
//!    (and between two requests), for a body, for taking what it is sent. What an actor
//!    takes is bounded by the actor's own timeouts.
//! 4. Nothing here reads a clock or waits but through [`Clock`](crate::time::Clock), hyper
//!    included.
//! 5. Without a token no page of another origin is answered, nor a request that names a
//!    host which could be anybody's, and the gateway listens on loopback only. With one,
//!    everything needs it but `/health`, `/metadata` and a preflight. Two exceptions have to
//!    be asked for: pages of other servers of this machine may call
//!    ([`GatewayOptions::pages_of_this_machine`]), and a server without actors answers
//!    anybody, anywhere ([`GatewayOptions::application_only`]).
//! 6. How long the check of a token takes says nothing of the token.
//! 7. A client calls actions only: no name with a control character reaches an actor, since
//!    those are what the parts of this process say to each other.
//! 8. Every answer has a ray id. One that the gateway may give to the origin has the
//!    headers for it, errors and panics included; a refused origin reads nothing.
//! 9. When it stops, no connection is accepted any more, those between two requests end,
//!    requests that have begun, be it with a piece of a head, are answered and their
//!    connections closed. What is still open after the grace period is cut off.
//! 10. No lock is held here but for counts and for handing over; what requests share does
//!     not change otherwise.
//! 11. Where it is not known who can reach the gateway, whatever lists, ends or puts to sleep
//!     actors needs a token: without one nobody may.
//! 12. A request for a socket is never refused over HTTP: the socket opens, and is closed
//!     with the reason. A task of its own serves it (`connect`): that of its connection ends
//!     with HTTP, which needs many times the memory.

mod actor;
mod admission;
mod answer;
mod application;
mod bodies;
mod body;
mod calls;
mod connect;
mod dialog;
mod error;
mod foreign;
mod front;
mod head;
mod inspector;
mod limits;
mod manager;
mod metrics;
mod options;
mod outbox;
mod public;
mod raw;
pub mod raw_socket;
mod server;
mod setup;
mod socket;
mod timer;
mod upgrade;
mod web_socket;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::Semaphore;

pub use self::application::Application;
pub use self::bodies::{Exchange, MAX_BODY};
pub use self::calls::SEND;
pub use self::error::GatewayError;
pub use self::foreign::{ForeignRequest, Tunnel};
use self::limits::Addresses;
pub use self::options::{Bounds, GatewayOptions, MAX_CREATE_BODY, Token};
pub use self::raw::REQUEST;
pub use self::server::Gateway;
use crate::host::embedded::EmbeddedHost;
use crate::time::Clock;

/// The version that clients are told.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What all requests share; nothing in it changes but what is counted, and what tools make
/// (invariant 10).
#[derive(Debug)]
struct Shared {
    host: Arc<EmbeddedHost>,
    options: GatewayOptions,
    /// How many sockets there may still be.
    sockets: Arc<Semaphore>,
    /// Who has how many of them.
    addresses: Addresses,
    /// Calls of clients over sockets that are not answered.
    calls: Arc<AtomicUsize>,
    /// Whether it is known who can reach it.
    has_listener: bool,
    /// What tools have made, where they are served.
    setup: Option<setup::Setup>,
}

impl Shared {
    fn new(host: Arc<EmbeddedHost>, options: GatewayOptions, has_listener: bool) -> Self {
        let sockets = Arc::new(Semaphore::new(options.bounds.sockets));
        let (addresses, calls) = (Addresses::default(), Arc::default());
        let (ids, now) = (host.runtime().ids(), host.runtime().clock().unix_ms());
        let pool = options.pool.as_deref();
        let setup = pool.map(|pool| setup::Setup::new(&options.namespace, pool, ids, now));
        Self { host, options, sockets, addresses, calls, has_listener, setup }
    }

    /// Whether nothing keeps anybody out who may be anywhere (invariant 11).
    fn is_unguarded(&self) -> bool {
        !self.has_listener && self.options.token.is_none()
    }

    fn clock(&self) -> &Clock {
        self.host.runtime().clock()
    }
}
