//! A client that speaks the protocol over a socket (§3).
//!
//! ```text
//! socket ──▶ decode ──▶ session ──▶ actor
//!   ▲                                 │ answers, events
//!   └── encode, one write ◀── outbox ◀┘
//! ```
//!
//! # Invariants
//!
//! 1. One task reads and writes a socket; no message costs another one. It encodes, too,
//!    since an actor's outputs may leave by the thread that runs its author's code. Only
//!    where next to nothing is going on, the thread that has an answer writes it: to wake
//!    the task would take longer.
//! 2. What is ready together leaves in one write. An event is encoded once for all its
//!    receivers of an encoding.
//! 3. A client that does not read is cut off when it is behind by more than
//!    [`MAX_BEHIND`](super::outbox::MAX_BEHIND), with 1008 `connection.too_slow` if it reads that.
//! 4. Of a client at most [`MAX_IN_FLIGHT`] calls run. More of it is not read meanwhile,
//!    so it is slowed down and nothing of it is kept.
//! 5. However a socket ends, its session ends with it, first.

mod answer;
mod link;

use std::net::IpAddr;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use self::answer::Calls;
use self::link::Link;
use super::Shared;
use super::actor::{self, ELSEWHERE};
use super::dialog::Driver;
use super::error::GatewayError;
use super::limits::Place;
use super::outbox::Outbox;
use super::web_socket::WebSocket;
use crate::core::config::ClientLimits;
use crate::core::connections::RequestHead;
use crate::error::Error;
use crate::host::embedded::Address;
use crate::host::embedded::sessions::{SessionClient, SessionRequest};
use crate::protocol::route::Addressee;
use crate::protocol::{Encoding, Limits, Payload};

/// How many calls of one client may run at a time.
pub(super) const MAX_IN_FLIGHT: usize = 1_024;

/// What a client asks for with its upgrade.
pub(super) struct Connect {
    pub(super) actor: Addressee,
    pub(super) encoding: Encoding,
    pub(super) params: Payload,
    pub(super) head: Arc<RequestHead>,
    pub(super) from: IpAddr,
    pub(super) ray_id: String,
}

/// What is known before the socket is read.
pub(super) struct Ready {
    pub(super) connect: Connect,
    pub(super) address: Address,
    pub(super) limits: Limits,
    pub(super) client: ClientLimits,
    hibernates: bool,
    pub(super) hibernates_raw: bool,
    /// Free again when the socket is over.
    pub(super) place: Option<Place>,
}

/// Finds out about the actor what has to be known before the socket is read.
///
/// # Errors
///
/// Why there is nothing to connect to.
pub(super) async fn prepare(
    shared: &Shared,
    connect: Connect,
    is_raw: bool,
) -> Result<Ready, Error> {
    let found = actor::address(shared, connect.actor.clone()).await;
    let (mut address, name) = found.map_err(|failure| failure.error)?;
    let config = shared.host.config(&name).unwrap_or_default();
    let client = config.client_limits;
    let mut place = None;
    if let Some(limit) = client.connections_per_ip {
        // By its key it may be another one by the time that it is connected to.
        let id = actor::row(shared, address).await?.id;
        address = Address::Id(id);
        place = shared.addresses.take(id, connect.from, limit);
        if place.is_none() {
            return Err(GatewayError::TooManyFromHere { limit }.into());
        }
    }
    let head = Arc::clone(&connect.head);
    Ok(Ready {
        connect,
        address,
        limits: Limits {
            incoming: config.max_incoming_message_size as usize,
            outgoing: config.max_outgoing_message_size as usize,
        },
        client,
        hibernates: config.hibernates_connections,
        hibernates_raw: is_raw && shared.host.hibernates_socket(&name, &head).await?,
        place,
    })
}

/// Serves a client until one side ends it.
pub(super) fn serve(
    socket: WebSocket,
    shared: &Shared,
    ready: Ready,
    closing: CancellationToken,
) -> BoxFuture<'static, ()> {
    let Ready { connect, address, limits, client, hibernates, place, .. } = ready;
    let outbox = Arc::<Outbox<_>>::default();
    if let Some(wire) = socket.wire() {
        outbox.connect(wire);
    }
    let told = Arc::clone(&outbox) as Arc<dyn SessionClient>;
    let request = SessionRequest {
        params: connect.params.cbor().clone(),
        request: Some(connect.head),
        hibernatable: hibernates,
    };
    let session = shared.host.connect(address, request, ELSEWHERE, told);
    let link = Link {
        calls: Calls::new(shared, connect.encoding, limits),
        outbox,
        session,
        encoding: connect.encoding,
        limits,
        disclosure: shared.options.disclosure,
        ray_id: connect.ray_id,
        is_open: false,
        last_words: None,
    };
    Driver::new(shared, client, link, place).run(socket, closing).boxed()
}
