//! The task of one socket.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::MAX_IN_FLIGHT;
use super::outbox::{Out, Outbox, Taken};
use crate::core::behavior::{Caller, Reply};
use crate::core::connections::Event;
use crate::core::context::CallRequest;
use crate::error::{Error, Result};
use crate::gateway::error::GatewayError;
use crate::gateway::limits::Bucket;
use crate::gateway::web_socket::{Incoming, WebSocket};
use crate::host::embedded::sessions::{Session, SessionEnd};
use crate::protocol::{
    Args, Close, Disclosure, Encoding, ErrorBody, Limits, Payload, ProtocolError, ToClient,
    ToServer, Wire as _,
};
use crate::time::{Clock, Duration, Sleep};

/// How many messages are taken from a client before others get their turn.
const TURN: usize = 64;

/// One client and its socket's state beside the socket.
pub(super) struct Link {
    pub(super) outbox: Arc<Outbox>,
    pub(super) session: Session,
    pub(super) encoding: Encoding,
    pub(super) limits: Limits,
    pub(super) disclosure: Disclosure,
    /// Lets messages of the client pass, where those are limited.
    pub(super) bucket: Option<Bucket>,
    /// Until the client is accepted or refused.
    pub(super) opening: Option<Sleep>,
    pub(super) open_timeout: Duration,
    pub(super) clock: Clock,
    pub(super) ray_id: String,
    /// Calls that are not answered.
    pub(super) in_flight: usize,
    /// What is being written; empty in between, kept for its memory.
    pub(super) batch: Vec<Out>,
    /// What a client is told of its refusal, before the end.
    pub(super) last_words: Option<Error>,
}

/// How it ends.
enum Over {
    /// The client has gone.
    Gone,
    /// With this reason.
    With(Close),
}

impl Link {
    /// Serves the client until it is over.
    pub(super) async fn run(mut self, mut socket: WebSocket, closing: &CancellationToken) {
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
        // First: what its actor does next is not for it (invariant 5 of the parent module).
        self.session.close();
        if let Some(error) = self.last_words.take() {
            let error = ErrorBody::new(&error, self.disclosure);
            // What cannot be said is left out: the reason of the close says the most.
            drop(self.tell(&mut socket, &ToClient::Error { action_id: None, error }));
        }
        drop(self);
        if let Over::With(close) = over {
            socket.finish(close).await;
        }
    }

    /// Does what can be done. `Ok` when there is nothing more for the moment, with a wake-up
    /// arranged for what comes.
    fn poll(&mut self, socket: &mut WebSocket, cx: &mut Context<'_>) -> Result<(), Over> {
        loop {
            self.poll_out(socket, cx)?;
            if !self.poll_in(socket, cx)? {
                break;
            }
        }
        if let Some(opening) = &mut self.opening
            && Pin::new(opening).poll(cx).is_ready()
        {
            let seconds = self.open_timeout.as_secs();
            return Err(self.over(GatewayError::NotReady { seconds }.into()));
        }
        let listens = self.in_flight < MAX_IN_FLIGHT;
        match socket.poll_silence(cx, listens) {
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
                    return match self.outbox.poll_overflow(cx) {
                        Poll::Ready(()) => Err(self.over(GatewayError::TooSlow.into())),
                        Poll::Pending => Ok(()),
                    };
                }
            }
            let mut batch = std::mem::take(&mut self.batch);
            match self.outbox.poll_take(cx, &mut batch) {
                Poll::Pending => {
                    if batch.capacity() > TURN {
                        batch = Vec::new();
                        self.outbox.shrink();
                    }
                    self.batch = batch;
                    return Ok(());
                }
                Poll::Ready(Taken::Overflow) => {
                    return Err(self.over(GatewayError::TooSlow.into()));
                }
                Poll::Ready(Taken::Some) => {}
            }
            for out in batch.drain(..) {
                self.write(socket, out)?;
            }
            self.batch = batch;
        }
    }

    fn write(&mut self, socket: &mut WebSocket, out: Out) -> Result<(), Over> {
        match out {
            Out::Init(connection, actor) => {
                self.opening = None;
                let connection_id = connection.as_str().to_owned();
                let init = ToClient::Init { actor_id: actor.actor_id, connection_id };
                self.tell(socket, &init).map_err(|error| self.over(error))
            }
            Out::Event(event) => self.write_event(socket, &event),
            Out::Answer(id, result) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.answer(socket, id, result)
            }
            Out::Failed(error) => Err(self.over(error)),
            Out::End(SessionEnd::Refused(error)) => {
                let over = self.over(error.clone());
                // What an actor says its client reads; the rest is for the gateway's.
                self.last_words = error.actor.is_some().then_some(error);
                Err(over)
            }
            Out::End(SessionEnd::Closed { code, reason }) => {
                let Close { reason, .. } = Close::normal(&reason);
                Err(Over::With(Close { code: code.0, reason }))
            }
        }
    }

    fn answer(
        &mut self,
        socket: &mut WebSocket,
        id: u64,
        result: Result<Bytes>,
    ) -> Result<(), Over> {
        let response = result.and_then(|output| {
            let output = Payload::new(output).map_err(|error| {
                Error::internal(format_args!("what the action returned: {error}"))
            })?;
            let bytes = ToClient::ActionResponse { id, output }.encode(self.encoding)?;
            self.limits.check_outgoing(bytes.len())?;
            Ok(bytes)
        });
        match response {
            Ok(bytes) => self.send(socket, bytes),
            Err(error) if error.is("actor", "send_failed") => Err(self.over(error)),
            Err(error) => {
                let error = ErrorBody::new(&error, self.disclosure);
                let told = self.tell(socket, &ToClient::Error { action_id: Some(id), error });
                told.map_err(|error| self.over(error))
            }
        }
    }

    fn write_event(&mut self, socket: &mut WebSocket, event: &Arc<Event>) -> Result<(), Over> {
        let form = match self.encoding {
            Encoding::Json => 0,
            Encoding::Cbor => 1,
            Encoding::Bare => 2,
        };
        // No message is empty, so that stands for one that cannot be written.
        let bytes = event.encoded(form, |event| {
            encoded(event, self.encoding).unwrap_or_else(|error| {
                let name = event.name();
                tracing::error!(event = name, %error, "an event cannot be written");
                Bytes::new()
            })
        });
        if bytes.is_empty() {
            let error = ProtocolError::Unrepresentable { what: "the event" };
            return Err(self.over(error.into()));
        }
        match self.limits.check_outgoing(bytes.len()) {
            Ok(()) => self.send(socket, bytes),
            Err(error) => Err(self.over(error.into())),
        }
    }

    /// Writes a message that is made here.
    fn tell(&self, socket: &mut WebSocket, message: &ToClient) -> Result<()> {
        let bytes = message.encode(self.encoding)?;
        self.limits.check_outgoing(bytes.len())?;
        socket
            .write(bytes, self.encoding.is_text())
            .map_err(|error| Error::internal(format_args!("the socket: {error}")))
    }

    fn send(&self, socket: &mut WebSocket, bytes: Bytes) -> Result<(), Over> {
        socket.write(bytes, self.encoding.is_text()).map_err(|_| Over::Gone)
    }

    /// Takes what came. Says whether there may be more of it.
    fn poll_in(&mut self, socket: &mut WebSocket, cx: &mut Context<'_>) -> Result<bool, Over> {
        for _ in 0..TURN {
            if self.in_flight >= MAX_IN_FLIGHT {
                // An answer wakes.
                return Ok(false);
            }
            let Poll::Ready(incoming) = socket.poll_incoming(cx) else { return Ok(false) };
            if let (Some(bucket), false) =
                (&mut self.bucket, matches!(incoming, Incoming::Close | Incoming::Gone))
                && !bucket.take(self.clock.now())
            {
                return Err(self.over(GatewayError::RateLimit.into()));
            }
            match incoming {
                Incoming::Message(bytes) => self.received(bytes)?,
                Incoming::Sign => {}
                Incoming::Close => return Err(Over::With(Close::normal(""))),
                Incoming::Gone => return Err(Over::Gone),
                Incoming::TooLong(size) => {
                    let limit = self.limits.incoming;
                    return Err(self.over(ProtocolError::IncomingTooLong { size, limit }.into()));
                }
                Incoming::NotText => {
                    return Err(Over::With(Close {
                        code: Close::INVALID_TEXT,
                        reason: "message.invalid_utf8".to_owned(),
                    }));
                }
                Incoming::Broken => {
                    return Err(Over::With(Close {
                        code: Close::PROTOCOL,
                        reason: "ws.protocol_error".to_owned(),
                    }));
                }
            }
        }
        // Others get their turn; it goes on at once behind them.
        cx.waker().wake_by_ref();
        Ok(false)
    }

    fn received(&mut self, bytes: Bytes) -> Result<(), Over> {
        match ToServer::decode(self.encoding, bytes) {
            Err(error) => Err(self.over(error.into())),
            Ok(ToServer::ActionRequest { id, name, args }) => {
                self.in_flight += 1;
                let outbox = Arc::clone(&self.outbox);
                let reply = Reply::new(move |result| outbox.push(Out::Answer(id, result)));
                if name.chars().any(char::is_control) {
                    // What parts of this process say to each other travels under such.
                    reply.send(Err(GatewayError::NoSuchAction.into()));
                    return Ok(());
                }
                self.session.call(CallRequest {
                    name,
                    args: args.cbor().clone(),
                    caller: Caller::Client,
                    origin: 0,
                    taken_by: None,
                    reply,
                });
                Ok(())
            }
            Ok(ToServer::SubscriptionRequest { event_name, subscribe }) => {
                let outbox = Arc::clone(&self.outbox);
                let reply = Reply::new(move |result: Result<()>| {
                    if let Err(error) = result {
                        outbox.push(Out::Failed(error));
                    }
                });
                self.session.subscribe(event_name, subscribe, reply);
                Ok(())
            }
        }
    }

    /// The end by an error.
    fn over(&self, mut error: Error) -> Over {
        if !error.is_public() && error.detail().is_some() {
            tracing::error!(ray_id = self.ray_id, %error, "a connection failed");
        }
        error.ray_id.get_or_insert_with(|| self.ray_id.clone());
        Over::With(Close::failed(&error))
    }
}

fn encoded(event: &Event, encoding: Encoding) -> Result<Bytes> {
    let args = Args::try_from(Payload::new(event.args().clone())?)?;
    Ok(ToClient::Event { name: event.name().to_owned(), args }.encode(encoding)?)
}
