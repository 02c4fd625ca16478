//! What is said over the socket of a client that speaks the protocol.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::MAX_IN_FLIGHT;
use super::answer::{Answer, Calls};
use crate::core::behavior::{Caller, Reply};
use crate::core::connections::{ConnId, Event};
use crate::core::context::CallRequest;
use crate::error::{ActorSpecifier, Error, Result};
use crate::gateway::dialog::{Dialog, Over};
use crate::gateway::error::GatewayError;
use crate::gateway::outbox::{Outbox, Weighty};
use crate::gateway::web_socket::{Incoming, WebSocket};
use crate::host::embedded::sessions::{Session, SessionClient, SessionEnd};
use crate::protocol::{
    Args, Close, Disclosure, Encoding, ErrorBody, Limits, Payload, ProtocolError, ToClient,
    ToServer, Wire as _,
};

/// Something that a client is to be told.
#[derive(Debug)]
pub(super) enum Out {
    /// It is accepted.
    Init(ConnId, ActorSpecifier),
    /// An event.
    Event(Arc<Event>),
    /// What a call came to.
    Answer(u64, Result<Bytes>),
    /// A subscription failed, which ends it.
    Failed { event: String, error: Error },
    /// It is over.
    End(SessionEnd),
}

impl Weighty for Out {
    fn weight(&self) -> usize {
        match self {
            Self::Event(event) => event.args().len(),
            Self::Answer(_, Ok(output)) => output.len(),
            Self::Init(..) | Self::Answer(..) | Self::Failed { .. } | Self::End(_) => 0,
        }
    }
}

impl SessionClient for Outbox<Out> {
    fn accepted(&self, connection: &ConnId, actor: &ActorSpecifier) {
        self.push(Out::Init(connection.clone(), actor.clone()));
    }

    fn event(&self, event: &Arc<Event>) {
        self.push(Out::Event(Arc::clone(event)));
    }

    fn ended(&self, end: SessionEnd) {
        self.push(Out::End(end));
    }
}

/// One client.
pub(super) struct Link {
    pub(super) outbox: Arc<Outbox<Out>>,
    pub(super) session: Session,
    pub(super) encoding: Encoding,
    pub(super) limits: Limits,
    pub(super) disclosure: Disclosure,
    pub(super) ray_id: String,
    /// It is accepted.
    pub(super) is_open: bool,
    /// Calls that are not answered, and how answers are written.
    pub(super) calls: Calls,
    /// What a client is told of its refusal, before the end.
    pub(super) last_words: Option<Error>,
}

impl Dialog for Link {
    type Out = Out;

    fn outbox(&self) -> &Arc<Outbox<Out>> {
        &self.outbox
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn listens(&self) -> bool {
        self.calls.here() < MAX_IN_FLIGHT
    }

    fn ray_id(&self) -> &str {
        &self.ray_id
    }

    fn write(&mut self, socket: &mut WebSocket, out: Out) -> Result<(), Over> {
        match out {
            Out::Init(connection, actor) => {
                self.is_open = true;
                let connection_id = connection.as_str().to_owned();
                let init = ToClient::Init { actor_id: actor.actor_id, connection_id };
                self.tell(socket, &init).map_err(|error| self.over(error))
            }
            Out::Event(event) => self.write_event(socket, &event),
            Out::Answer(id, result) => self.answer(socket, id, result),
            Out::Failed { event, error } => {
                let over = self.over(error.clone());
                let mut error = error;
                // So that the client does not ask for the same again and again.
                error.metadata.get_or_insert_with(|| json!({ "event": event }));
                self.last_words = Some(error);
                Err(over)
            }
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

    fn take(&mut self, incoming: Incoming) -> Result<(), Over> {
        match incoming {
            Incoming::Message { bytes, .. } => self.received(bytes),
            Incoming::Close { .. } => Err(Over::With(Close::normal(""))),
            Incoming::Gone => Err(Over::Gone),
            Incoming::TooLong(size) => {
                let limit = self.limits.incoming;
                Err(self.over(ProtocolError::IncomingTooLong { size, limit }.into()))
            }
            Incoming::Sign | Incoming::NotText | Incoming::Broken => Ok(()),
        }
    }

    /// The session ends first: what its actor does next is not for this client.
    fn end(&mut self, socket: &mut WebSocket) {
        self.session.close();
        self.outbox.close();
        if let Some(error) = self.last_words.take() {
            let error = ErrorBody::new(&error, self.disclosure);
            // What cannot be said is left out: the reason of the close says the most.
            drop(self.tell(socket, &ToClient::Error { action_id: None, error }));
        }
    }
}

impl Link {
    fn answer(
        &mut self,
        socket: &mut WebSocket,
        id: u64,
        result: Result<Bytes>,
    ) -> Result<(), Over> {
        match self.calls.encoded(id, result) {
            Ok(bytes) => self.send(socket, bytes),
            Err(error) => Err(self.over(error)),
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

    fn received(&mut self, bytes: Bytes) -> Result<(), Over> {
        match ToServer::decode(self.encoding, bytes) {
            Err(error) => Err(self.over(error.into())),
            Ok(ToServer::ActionRequest { id, name, args }) => {
                let answer =
                    Answer { id, outbox: Arc::clone(&self.outbox), calls: self.calls.clone() };
                self.calls.begin();
                let reply = Reply::new(move |result| answer.give(result));
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
                let event = event_name.clone();
                let reply = Reply::new(move |result: Result<()>| {
                    if let Err(error) = result {
                        outbox.push(Out::Failed { event, error });
                    }
                });
                self.session.subscribe(event_name, subscribe, reply);
                Ok(())
            }
        }
    }
}

fn encoded(event: &Event, encoding: Encoding) -> Result<Bytes> {
    let args = Args::try_from(Payload::new(event.args().clone())?)?;
    Ok(ToClient::Event { name: event.name().to_owned(), args }.encode(encoding)?)
}
