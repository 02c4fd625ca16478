//! What a client sends, on its way to a generation.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{MAX_WAITING, MAX_WAITING_BYTES};
use crate::core::behavior::{CallId, Reply, call_given_up};
use crate::core::connections::{ConnId, ConnectionError};
use crate::core::context::{ActorContext, CallRequest};
use crate::error::{Error, ErrorCode};
use crate::ids::ActorId;

/// What a client sends.
#[derive(Debug)]
pub(super) enum Message {
    /// It calls an action.
    Call { request: CallRequest, ticket: Option<Arc<Ticket>> },
    /// It wants to hear events of a name, or no more.
    Subscribe { event: String, wanted: bool, reply: Reply<()> },
    /// Nothing of its own: a generation has found the connection again.
    Reopen,
    /// It has gone. Nothing follows.
    Gone,
}

impl Message {
    /// What it counts of [`MAX_WAITING_BYTES`].
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Call { request, .. } => request.name.len() + request.args.len(),
            Self::Subscribe { event, .. } => event.len(),
            Self::Reopen | Self::Gone => 0,
        }
    }

    /// Answers with the error.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Call { request, .. } => request.reply.send(Err(error)),
            Self::Subscribe { reply, .. } => reply.send(Err(error)),
            Self::Reopen | Self::Gone => {}
        }
    }
}

/// What is left of a session that ended.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    pub(super) actor: Option<ActorId>,
    pub(super) connection: Option<ConnId>,
    pub(super) waiting: Vec<Message>,
    /// Dropped with this, after the unlock: the way to the generation.
    pub(super) _stage: Option<super::state::Stage>,
}

/// A way to give a call up.
#[derive(Debug, Default)]
pub struct Ticket(Mutex<Standing>);

/// Where a call is.
#[derive(Debug, Default)]
enum Standing {
    /// No generation has taken it.
    #[default]
    Waiting,
    /// One has.
    Taken(ActorContext, CallId),
    /// It is given up, or is over.
    Void,
}

impl Ticket {
    /// Gives the call up: whoever waits is told `actor/aborted`, a function that has begun
    /// goes on and is told. Harmless when the call has ended.
    pub fn cancel(&self) {
        let standing = std::mem::replace(&mut *self.0.lock(), Standing::Void);
        if let Standing::Taken(actor, call) = standing {
            actor.cancel_call(call);
        }
    }

    /// Notes who took the call. One that was given up meanwhile is given up there.
    pub(super) fn taken(&self, actor: &ActorContext, call: CallId) {
        let is_void = {
            let mut standing = self.0.lock();
            let is_void = matches!(*standing, Standing::Void);
            if !is_void {
                *standing = Standing::Taken(actor.clone(), call);
            }
            is_void
        };
        if is_void {
            actor.cancel_call(call);
        }
    }

    pub(super) fn is_void(&self) -> bool {
        matches!(*self.0.lock(), Standing::Void)
    }
}

/// `connection/not_found`: the session is over.
pub(super) fn over(connection: Option<&ConnId>) -> Error {
    match connection {
        Some(id) => ConnectionError::NotFound { id: id.clone() }.into(),
        None => call_given_up(),
    }
}

/// `actor/overloaded`: too much waits for the actor already.
pub(super) fn overloaded() -> Error {
    Error::new(
        ErrorCode::new("actor", "overloaded"),
        format!(
            "{MAX_WAITING} messages or {MAX_WAITING_BYTES} bytes of this connection wait already"
        ),
    )
}
