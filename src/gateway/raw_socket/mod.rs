//! A socket for the author's own `onWebSocket` (§5).
//!
//! What happens to it reaches the actor as calls over its connection, under names that no
//! action can have, so the same holds for it as for calls: order, when it is taken, that a
//! sleeping actor is woken. What the author says goes the other way by the number of the
//! socket ([`RawSocket::find`]).
//!
//! | Name | Arguments | Answer |
//! |---|---|---|
//! | [`OPEN`] | JSON `{socket, restored}`; restored in a generation that found the socket open | none; an error closes it |
//! | [`MESSAGE`] | the number of the socket (8 bytes), that of the message (2), whether it is text (1), all little-endian; the data | none; an error closes the socket |
//! | [`CLOSED`] | JSON `{socket, code, reason, wasClean}` | not read |
//!
//! # Invariants
//!
//! 1. A generation hears [`OPEN`] before any message, and [`CLOSED`] behind the last one,
//!    unless the connection was ended by the actor's side, which knows.
//! 2. Messages are numbered from 1, and after 65,535 comes 0.
//! 3. A client has at most [`MAX_UNREAD`] bytes of messages with the author at a time; more
//!    of it is not read meanwhile.
//! 4. A socket is found by its number for as long as it is open.

mod link;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::link::{Link, Out};
use super::Shared;
use super::actor::ELSEWHERE;
use super::connect::Ready;
use super::dialog::Driver;
use super::outbox::Outbox;
use super::web_socket::WebSocket;
use crate::core::behavior::Reply;
use crate::core::context::ActorContext;
use crate::host::embedded::sessions::{SessionClient, SessionRequest};
use crate::protocol::{Close, MAX_SOCKET_MESSAGE};

/// The call that hands a socket over.
pub const OPEN: &str = "\u{3}open";
/// The call that brings a message.
pub const MESSAGE: &str = "\u{3}message";
/// The call that says that the socket is closed.
pub const CLOSED: &str = "\u{3}closed";

/// How many bytes of messages of one client the author may have not answered, beside those
/// of the last one.
pub(super) const MAX_UNREAD: usize = 1024 * 1024;

static SOCKETS: Mutex<Option<HashMap<u64, Weak<RawSocket>>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// An open socket, for whoever runs the author's code.
#[derive(Debug)]
pub struct RawSocket {
    number: u64,
    outbox: Arc<Outbox<Out>>,
}

impl RawSocket {
    fn open(outbox: &Arc<Outbox<Out>>) -> Arc<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let socket = Arc::new(Self { number, outbox: Arc::clone(outbox) });
        SOCKETS.lock().get_or_insert_default().insert(number, Arc::downgrade(&socket));
        socket
    }

    /// The one of a number, while it is open.
    pub fn find(number: u64) -> Option<Arc<Self>> {
        SOCKETS.lock().as_ref()?.get(&number)?.upgrade()
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sends a message: an output of `actor`, which waits for the changes made before it.
    /// `bytes` have to be UTF-8 if they are text. Nothing is sent once it is closed.
    pub fn send(self: &Arc<Self>, actor: &ActorContext, bytes: Bytes, is_text: bool) {
        self.say(actor, Out::Send { bytes, is_text });
    }

    /// Closes it behind everything that was sent; an output as [`RawSocket::send`]. What is
    /// too long of the reason is cut off.
    pub fn close(self: &Arc<Self>, actor: &ActorContext, code: u16, reason: &str) {
        let Close { reason, .. } = Close::normal(reason);
        self.say(actor, Out::Close(Close { code, reason }));
    }

    fn say(self: &Arc<Self>, actor: &ActorContext, out: Out) {
        let socket = Arc::clone(self);
        actor.output_may_leave(Reply::new(move |left: crate::error::Result<()>| {
            // What it may reveal is not durable, or never will be.
            if left.is_ok() {
                socket.outbox.push(out);
            }
        }));
    }
}

impl Drop for RawSocket {
    fn drop(&mut self) {
        if let Some(sockets) = SOCKETS.lock().as_mut() {
            sockets.remove(&self.number);
        }
    }
}

/// How long messages may be, in bytes.
pub(super) const LIMIT: usize = MAX_SOCKET_MESSAGE;

/// Serves a socket until one side ends it.
pub(super) fn serve(
    socket: WebSocket,
    shared: &Shared,
    ready: Ready,
    closing: CancellationToken,
) -> BoxFuture<'static, ()> {
    let Ready { connect, address, client, hibernates_raw, place, .. } = ready;
    let outbox = Arc::<Outbox<_>>::default();
    let raw = RawSocket::open(&outbox);
    let told = Arc::new(link::Told { outbox: Arc::clone(&outbox), number: raw.number });
    let request = SessionRequest {
        params: connect.params.cbor().clone(),
        request: Some(connect.head),
        hibernatable: hibernates_raw,
    };
    let session = shared.host.connect(address, request, ELSEWHERE, told as Arc<dyn SessionClient>);
    let link = Link::new(session, raw, outbox, connect.ray_id);
    Driver::new(shared, client, link, place).run(socket, closing).boxed()
}
