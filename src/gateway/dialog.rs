//! One socket and its client, whatever they speak.
//!
//! # Invariants
//!
//! 1. One task reads and writes a socket; no message costs another one.
//! 2. What is ready together leaves in one write.
//! 3. Of what comes, so much is taken before others get their turn ([`TURN`]).
//! 4. Nothing more of a client is taken while it is far behind with what it is sent.
//! 5. A client that has not been accepted in time, that is silent, too far behind or too
//!    quick is given up.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;

use super::Shared;
use super::error::GatewayError;
use super::limits::{Bucket, Place};
use super::outbox::{Outbox, Taken, Weighty};
use super::web_socket::{Incoming, WebSocket};
use crate::core::config::ClientLimits;
use crate::error::Error;
use crate::protocol::Close;
use crate::time::{Clock, Duration, Sleep};

/// How many messages are taken from a client before others get their turn.
const TURN: usize = 64;

/// How a socket ends.
pub(super) enum Over {
    /// The client has gone.
    Gone,
    /// With this reason.
    With(Close),
}

/// What is spoken over a socket.
pub(super) trait Dialog {
    /// What the client is told.
    type Out: Weighty;

    /// Where that comes from.
    fn outbox(&self) -> &Arc<Outbox<Self::Out>>;

    /// Whether the client is accepted.
    fn is_open(&self) -> bool;

    /// Whether more of it is taken. An [`Outbox::push`] or an
    /// [`Outbox::nudge`] has to follow once it is again.
    fn listens(&self) -> bool;

    /// Writes something to the client.
    ///
    /// # Errors
    ///
    /// The end.
    fn write(&mut self, socket: &mut WebSocket, out: Self::Out) -> Result<(), Over>;

    /// Takes what came from it.
    ///
    /// # Errors
    ///
    /// The end.
    fn take(&mut self, incoming: Incoming) -> Result<(), Over>;

    /// The id of its request, for who looks for a fault.
    fn ray_id(&self) -> &str;

    /// It is over: ends what it stands for, and says what is still to be said.
    fn end(&mut self, socket: &mut WebSocket);

    /// The end by an error.
    fn over(&self, mut error: Error) -> Over {
        if !error.is_public() && error.detail().is_some() {
            tracing::error!(ray_id = self.ray_id(), %error, "a connection failed");
        }
        error.ray_id.get_or_insert_with(|| self.ray_id().to_owned());
        Over::With(Close::failed(&error))
    }
}

/// Has nobody write to a socket any more whose task is over, be it cut off: what still runs
/// for its client holds the way to it.
struct Shut<T: Weighty>(Arc<Outbox<T>>);

impl<T: Weighty> Drop for Shut<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The task of a socket.
pub(super) struct Driver<D: Dialog> {
    dialog: D,
    clock: Clock,
    /// Lets messages of the client pass, where those are limited.
    bucket: Option<Bucket>,
    /// Until the client is accepted or refused.
    opening: Option<Sleep>,
    open_timeout: Duration,
    /// What is being written; empty in between, kept for its memory.
    batch: Vec<D::Out>,
    /// Free again when the socket is over.
    place: Option<Place>,
}

impl<D: Dialog> Driver<D> {
    pub(super) fn new(
        shared: &Shared,
        client: ClientLimits,
        dialog: D,
        place: Option<Place>,
    ) -> Self {
        let clock = shared.clock().clone();
        let open_timeout = shared.options.bounds.open_timeout;
        Self {
            dialog,
            bucket: Bucket::new(client, clock.now()),
            opening: Some(clock.sleep(open_timeout)),
            open_timeout,
            clock,
            batch: Vec::new(),
            place,
        }
    }

    /// Serves the client until it is over. No `async fn`, which has room for its arguments
    /// twice.
    pub(super) fn run(
        mut self,
        mut socket: WebSocket,
        closing: CancellationToken,
    ) -> impl Future<Output = ()> {
        let shut = Shut(Arc::clone(self.dialog.outbox()));
        async move {
            let _shut = shut;
            let over = {
                let mut closed = pin!(closing.cancelled());
                std::future::poll_fn(|cx| {
                    if closed.as_mut().poll(cx).is_ready() {
                        let reason = "guard.service_unavailable".to_owned();
                        return Poll::Ready(Over::With(Close { code: Close::AWAY, reason }));
                    }
                    match self.poll(&mut socket, cx) {
                        Err(over) => Poll::Ready(over),
                        Ok(()) => Poll::Pending,
                    }
                })
                .await
            };
            self.dialog.end(&mut socket);
            let _place = self.place.take();
            drop(self);
            if let Over::With(close) = over {
                Box::pin(socket.finish(close)).await;
            }
        }
    }

    /// Does what can be done. `Ok` when there is nothing more for the moment, with a wake-up
    /// arranged for what comes.
    fn poll(&mut self, socket: &mut WebSocket, cx: &mut Context<'_>) -> Result<(), Over> {
        self.poll_out(socket, cx)?;
        self.poll_in(socket, cx)?;
        // What came may have been answered at once.
        let paused = !self.reads(socket);
        self.poll_out(socket, cx)?;
        if paused && self.reads(socket) {
            cx.waker().wake_by_ref();
        }
        if self.dialog.is_open() {
            self.opening = None;
        }
        if let Some(opening) = &mut self.opening
            && Pin::new(opening).poll(cx).is_ready()
        {
            let seconds = self.open_timeout.as_secs();
            return Err(self.dialog.over(GatewayError::NotReady { seconds }.into()));
        }
        match socket.poll_silence(cx, self.reads(socket)) {
            Poll::Ready(()) => Err(Over::Gone),
            Poll::Pending => Ok(()),
        }
    }

    /// Writes what is ready, all of it in one go.
    fn poll_out(&mut self, socket: &mut WebSocket, cx: &mut Context<'_>) -> Result<(), Over> {
        loop {
            match socket.poll_flushed(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Err(Over::Gone),
                // The client does not read: what comes meanwhile is counted.
                Poll::Pending => {
                    return match self.dialog.outbox().poll_overflow(cx) {
                        Poll::Ready(()) => Err(self.dialog.over(GatewayError::TooSlow.into())),
                        Poll::Pending => Ok(()),
                    };
                }
            }
            let mut batch = std::mem::take(&mut self.batch);
            match self.dialog.outbox().poll_take(cx, &mut batch) {
                Poll::Pending => {
                    if batch.capacity() > TURN {
                        batch = Vec::new();
                        self.dialog.outbox().shrink();
                    }
                    self.batch = batch;
                    return Ok(());
                }
                Poll::Ready(Taken::Overflow) => {
                    return Err(self.dialog.over(GatewayError::TooSlow.into()));
                }
                Poll::Ready(Taken::Some) => {}
            }
            for out in batch.drain(..) {
                self.dialog.write(socket, out)?;
            }
            self.batch = batch;
        }
    }

    /// Whether what the client says is taken.
    fn reads(&self, socket: &WebSocket) -> bool {
        self.dialog.listens() && !socket.is_behind()
    }

    /// Takes what came.
    fn poll_in(&mut self, socket: &mut WebSocket, cx: &mut Context<'_>) -> Result<(), Over> {
        for _ in 0..TURN {
            if !self.reads(socket) {
                return Ok(());
            }
            let Poll::Ready(incoming) = socket.poll_incoming(cx) else { return Ok(()) };
            let is_end = matches!(incoming, Incoming::Close { .. } | Incoming::Gone);
            if let (Some(bucket), false) = (&mut self.bucket, is_end)
                && !bucket.take(self.clock.now())
            {
                return Err(self.dialog.over(GatewayError::RateLimit.into()));
            }
            let closed =
                |code, reason: &str| Err(Over::With(Close { code, reason: reason.to_owned() }));
            match incoming {
                Incoming::NotText => return closed(Close::INVALID_TEXT, "message.invalid_utf8"),
                Incoming::Broken => return closed(Close::PROTOCOL, "ws.protocol_error"),
                incoming => self.dialog.take(incoming)?,
            }
        }
        // Others get their turn; it goes on at once behind them.
        cx.waker().wake_by_ref();
        Ok(())
    }
}
