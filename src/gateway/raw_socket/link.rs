//! What is said over a socket for the author's own code.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::json;

use super::{CLOSED, LIMIT, MAX_UNREAD, MESSAGE, OPEN, RawSocket};
use crate::core::behavior::{Caller, Reply};
use crate::core::connections::{ConnId, Event};
use crate::core::context::CallRequest;
use crate::error::{ActorSpecifier, Result};
use crate::gateway::dialog::{Dialog, Over};
use crate::gateway::outbox::{Outbox, Weighty};
use crate::gateway::web_socket::{Incoming, WebSocket};
use crate::host::embedded::sessions::{Session, SessionClient, SessionEnd};
use crate::protocol::{Close, ProtocolError};

/// What stands in front of the data of a message.
const MESSAGE_HEAD: usize = 11;

/// A client that went without a word, as RFC 6455 has it.
const ABNORMAL: u16 = 1006;

/// Something that happens to a socket.
#[derive(Debug)]
pub(super) enum Out {
    /// The client is accepted.
    Accepted,
    /// What handing it over came to.
    Opened(Result<Bytes>),
    /// The author has had a message of so many bytes.
    Read(usize, Result<Bytes>),
    /// The author sends a message.
    Send { bytes: Bytes, is_text: bool },
    /// The author closes it.
    Close(Close),
    /// The session is over.
    End(SessionEnd),
}

impl Weighty for Out {
    fn weight(&self) -> usize {
        match self {
            Self::Send { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}

/// What the session tells.
pub(super) struct Told {
    pub(super) outbox: Arc<Outbox<Out>>,
    pub(super) number: u64,
}

impl SessionClient for Told {
    fn accepted(&self, _: &ConnId, _: &ActorSpecifier) {
        self.outbox.push(Out::Accepted);
    }

    fn event(&self, event: &Arc<Event>) {
        // It speaks no protocol that has events.
        tracing::error!(event = event.name(), "no way to send an event over a raw socket");
    }

    fn ended(&self, end: SessionEnd) {
        self.outbox.push(Out::End(end));
    }

    fn reopening(&self) -> Option<(&'static str, Bytes)> {
        Some((OPEN, opening(self.number, true)))
    }

    fn reopened(&self, result: Result<Bytes>) {
        self.outbox.push(Out::Opened(result));
    }
}

/// One socket.
pub(super) struct Link {
    session: Session,
    raw: Arc<RawSocket>,
    outbox: Arc<Outbox<Out>>,
    ray_id: String,
    is_open: bool,
    /// The author does nothing with sockets: it stays open, and silent.
    is_silent: bool,
    /// Bytes that the author has and has not answered.
    unread: usize,
    /// The number of the last message.
    index: u16,
    /// How the client or the author has ended it.
    ending: (u16, String),
}

impl Link {
    pub(super) fn new(
        session: Session,
        raw: Arc<RawSocket>,
        outbox: Arc<Outbox<Out>>,
        ray_id: String,
    ) -> Self {
        Self {
            session,
            raw,
            outbox,
            ray_id,
            is_open: false,
            is_silent: false,
            unread: 0,
            index: 0,
            ending: (ABNORMAL, String::new()),
        }
    }

    fn call(&self, name: &str, args: Bytes, reply: Reply<Bytes>) {
        self.session.call(CallRequest {
            name: name.to_owned(),
            args,
            caller: Caller::Client,
            origin: 0,
            taken_by: None,
            reply,
        });
    }

    fn received(&mut self, data: &Bytes, is_text: bool) {
        self.index = self.index.wrapping_add(1);
        if self.is_silent {
            return;
        }
        let mut args = BytesMut::with_capacity(MESSAGE_HEAD + data.len());
        args.put_u64_le(self.raw.number());
        args.put_u16_le(self.index);
        args.put_u8(is_text.into());
        args.extend_from_slice(data);
        let (outbox, weight) = (Arc::clone(&self.outbox), args.len());
        self.unread += weight;
        let reply = Reply::new(move |result| outbox.push(Out::Read(weight, result)));
        self.call(MESSAGE, args.freeze(), reply);
    }
}

impl Dialog for Link {
    type Out = Out;

    fn outbox(&self) -> &Arc<Outbox<Out>> {
        &self.outbox
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    /// Not before it is handed over: messages come behind that.
    fn listens(&self) -> bool {
        self.is_open && self.unread < MAX_UNREAD
    }

    fn ray_id(&self) -> &str {
        &self.ray_id
    }

    fn write(&mut self, socket: &mut WebSocket, out: Out) -> std::result::Result<(), Over> {
        match out {
            Out::Accepted => {
                self.is_open = true;
                let outbox = Arc::clone(&self.outbox);
                let reply = Reply::new(move |result| outbox.push(Out::Opened(result)));
                self.call(OPEN, opening(self.raw.number(), false), reply);
                Ok(())
            }
            Out::Opened(Ok(_)) => Ok(()),
            Out::Opened(Err(error)) if error.is("actor", "action_not_found") => {
                self.is_silent = true;
                Ok(())
            }
            // Not handed over after all: the next generation is asked.
            Out::Opened(Err(error)) if error.is("actor", "dropped_reply") => Ok(()),
            Out::Opened(Err(error)) => Err(self.over(error)),
            Out::Read(weight, result) => {
                self.unread = self.unread.saturating_sub(weight);
                match result {
                    Err(error) if !self.is_silent => Err(self.over(error)),
                    Ok(_) | Err(_) => Ok(()),
                }
            }
            Out::Send { bytes, is_text } => socket.write(bytes, is_text).map_err(|_| Over::Gone),
            Out::Close(close) => {
                self.ending = (close.code, close.reason.clone());
                Err(Over::With(close))
            }
            Out::End(SessionEnd::Refused(error)) => Err(self.over(error)),
            Out::End(SessionEnd::Closed { code, reason }) => {
                let Close { reason, .. } = Close::normal(&reason);
                Err(Over::With(Close { code: code.0, reason }))
            }
        }
    }

    fn take(&mut self, incoming: Incoming) -> std::result::Result<(), Over> {
        match incoming {
            Incoming::Message { bytes, is_text } => {
                self.received(&bytes, is_text);
                Ok(())
            }
            Incoming::Close { code, reason } => {
                self.ending = (code, reason);
                Err(Over::With(Close::normal("")))
            }
            Incoming::Gone => Err(Over::Gone),
            Incoming::TooLong(size) => {
                Err(self.over(ProtocolError::IncomingTooLong { size, limit: LIMIT }.into()))
            }
            Incoming::Sign | Incoming::NotText | Incoming::Broken => Ok(()),
        }
    }

    fn end(&mut self, _: &mut WebSocket) {
        if self.is_open && !self.is_silent {
            let (code, reason) = &self.ending;
            let args = json!({
                "socket": self.raw.number(),
                "code": code,
                "reason": reason,
                "wasClean": *code == Close::NORMAL,
            });
            // Refused where the actor's side has ended it (invariant 1 of the parent module).
            self.call(CLOSED, args.to_string().into(), Reply::new(|_| {}));
        }
        self.session.close();
        self.outbox.close();
    }
}

fn opening(number: u64, restored: bool) -> Bytes {
    json!({ "socket": number, "restored": restored }).to_string().into()
}
