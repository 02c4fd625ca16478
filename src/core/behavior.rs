//! What a language runtime provides: the author's code.
//!
//! The core hands over [`ActorEvent`]s and hears of their outcome through the
//! [`Reply`] inside, or, for actions, through the actor's context
//! ([`ActorContext::begin_call`], [`ActorContext::finish_call`]).
//!
//! # Invariants
//!
//! 1. Events of one actor are handed over in the order in which they happened,
//!    and nothing is handed over after [`ActorEvent::Stopped`].
//! 2. A reply is answered exactly once: one that is dropped answers
//!    `actor/dropped_reply`.
//! 3. [`Behavior::deliver`] returns at once, and no lock of the actor is held
//!    while it runs.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::actor::gate::CommitNumber;
use super::actor::lifecycle::StopReason;
use super::config::ActorConfig;
use super::connections::{ConnHandle, ConnHook, ConnHooks, ConnId, RequestHead};
use super::context::ActorContext;
use super::schedule::FireInfo;
use crate::error::{Error, ErrorCode, Result};

/// A type of actor: its options, and how a generation of it begins.
pub trait BehaviorFactory: Send + Sync + 'static {
    /// The options of this type.
    fn config(&self) -> &Arc<ActorConfig>;

    /// Which hooks the author wrote; the others are not handed over.
    fn hooks(&self) -> Hooks;

    /// Makes the author's side of one generation.
    fn attach(&self, context: ActorContext) -> Arc<dyn Behavior>;

    /// Whether a raw socket that came with this request outlives a sleep of its actor. What
    /// the options say, unless the author decides. Dropping the future gives the question up.
    fn hibernates(&self, request: &RequestHead) -> BoxFuture<'static, Result<bool>> {
        let _ = request;
        std::future::ready(Ok(self.config().can_hibernate_websocket)).boxed()
    }
}

/// The author's side of one generation.
pub trait Behavior: Send + Sync + 'static {
    /// Takes one event. See the invariants of this module.
    fn deliver(&self, event: ActorEvent);

    /// The number by which the author's side knows the generation; 0 where it has none.
    fn number(&self) -> u64 {
        0
    }
}

/// Which hooks an author wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// [`Hook::Migrate`].
    pub migrate: bool,
    /// [`Hook::CreateState`].
    pub create_state: bool,
    /// [`Hook::Create`].
    pub create: bool,
    /// [`Hook::CreateVars`].
    pub create_vars: bool,
    /// [`Hook::Wake`].
    pub wake: bool,
    /// [`Hook::BeforeStart`].
    pub before_start: bool,
    /// [`Hook::Sleep`].
    pub sleep: bool,
    /// [`Hook::Destroy`].
    pub destroy: bool,
    /// [`ActorEvent::Run`].
    pub run: bool,
    /// [`ActorEvent::SerializeState`].
    pub serialize_state: bool,
    /// [`ActorEvent::Connection`].
    pub connections: ConnHooks,
}

/// One of the author's functions around an actor's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Before any other, on every start.
    Migrate {
        /// Whether the actor was never initialised.
        is_new: bool,
    },
    /// Makes the first state; its reply is the encoded state.
    CreateState {
        /// What the creator passed.
        input: Option<Bytes>,
    },
    /// Once in an actor's life, after its first state.
    Create {
        /// What the creator passed.
        input: Option<Bytes>,
    },
    /// Makes what lives as long as the generation.
    CreateVars,
    /// On every start, new or not.
    Wake,
    /// The last step before the actor takes work.
    BeforeStart,
    /// When the actor goes to sleep.
    Sleep,
    /// When the actor is destroyed.
    Destroy,
}

impl Hook {
    /// The name for errors and logs.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Migrate { .. } => "on_migrate",
            Self::CreateState { .. } => "create_state",
            Self::Create { .. } => "on_create",
            Self::CreateVars => "create_vars",
            Self::Wake => "on_wake",
            Self::BeforeStart => "on_before_actor_start",
            Self::Sleep => "on_sleep",
            Self::Destroy => "on_destroy",
        }
    }
}

/// The number of a call within its generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// Who calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// A client over the network.
    Client,
    /// Another actor, or the actor itself.
    Actor,
    /// Code of the same process outside any actor.
    Local,
    /// A schedule.
    Schedule,
}

/// A change of durable state that the author's side hands over for a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateDelta {
    /// The whole state, encoded.
    ActorState(Bytes),
    /// The whole state of a connection, encoded. It takes the place of what the handle
    /// has; of a connection that is gone, or is removed in the same commit, nothing is
    /// stored.
    ConnectionState {
        /// Which.
        id: ConnId,
        /// Its state.
        state: Bytes,
    },
    /// A connection is to be stored no more. It beats every update of the same commit.
    ConnectionRemoved {
        /// Which.
        id: ConnId,
    },
}

impl StateDelta {
    /// The bytes of its payload; a removal has none.
    pub const fn payload_len(&self) -> usize {
        match self {
            Self::ActorState(bytes) | Self::ConnectionState { state: bytes, .. } => bytes.len(),
            Self::ConnectionRemoved { .. } => 0,
        }
    }
}

/// Why the state is serialised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SerializeReason {
    /// To be stored.
    Save,
    /// To be shown; must not count as saved.
    Inspector,
}

/// Why a generation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StopOutcome {
    /// It sleeps; the next call starts another generation.
    Slept,
    /// The actor is gone. Its row is deleted by the host.
    Destroyed,
    /// The start failed.
    StartFailed(Error),
    /// What was in memory can no longer be stored, so it was thrown away; the
    /// next call starts from what is durable.
    Broken(Error),
}

/// What the core hands to the author's side.
#[derive(Debug)]
pub enum ActorEvent {
    /// Run a hook; the reply is its encoded result, `None` for none.
    Hook {
        /// Which.
        hook: Hook,
        /// Answered when it ended.
        reply: Reply<Option<Bytes>>,
    },
    /// Run the author's `run`; answered when it ended.
    Run {
        /// Answered when it ended: `false` when the moment that it was woken for is to
        /// come once more.
        reply: Reply<bool>,
    },
    /// Run a hook of a connection; the reply is its encoded result, `None` for none.
    Connection {
        /// Which.
        hook: ConnHook,
        /// Whose.
        connection: ConnHandle,
        /// Answered when it ended.
        reply: Reply<Option<Bytes>>,
    },
    /// Run an action. The author's side says [`ActorContext::begin_call`] when
    /// it begins and [`ActorContext::finish_call`] when it ended.
    Action {
        /// The number of the call.
        call: CallId,
        /// The action.
        name: String,
        /// Its encoded arguments.
        args: Bytes,
        /// Who calls.
        caller: Caller,
        /// Over which connection, if over one.
        connection: Option<ConnHandle>,
        /// A number by which whoever submitted the call knows it; 0 for none.
        origin: u64,
        /// Why it runs, if a schedule calls.
        fire: Option<FireInfo>,
    },
    /// A call whose caller holds the answer may begin: all that was accepted before
    /// it was handed over. The author's side says [`ActorContext::begin_call`] and
    /// [`ActorContext::finish_in_place`].
    BeginHeld {
        /// Which.
        call: CallId,
    },
    /// Nobody waits for this call any more.
    CancelCall {
        /// Which.
        call: CallId,
        /// Its deadline passed; otherwise its caller gave up, or its generation
        /// ended.
        timed_out: bool,
        /// What a caller whose answer the author's side holds is told; absent where
        /// that follows from the rest.
        error: Option<Error>,
    },
    /// Encode what is to be stored or shown.
    SerializeState {
        /// What for.
        reason: SerializeReason,
        /// The changes; empty when nothing changed.
        reply: Reply<Vec<StateDelta>>,
    },
    /// A commit ended. Outputs that the author's side holds for this number or
    /// a lower one may leave, or have failed.
    Committed {
        /// Which.
        number: CommitNumber,
        /// How it ended.
        result: Result<()>,
    },
    /// The actor begins to stop: the author's abort signal fires.
    Abort(StopReason),
    /// The grace period is used up: hooks that still run are given up.
    DeadlineReached,
    /// The last event: the generation ended and its memory may be dropped.
    Stopped(StopOutcome),
}

impl ActorEvent {
    /// The name for logs.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Hook { hook, .. } => hook.label(),
            Self::Connection { hook, .. } => hook.label(),
            Self::Run { .. } => "run",
            Self::Action { .. } => "action",
            Self::BeginHeld { .. } => "begin_held",
            Self::CancelCall { .. } => "cancel_call",
            Self::SerializeState { reason: SerializeReason::Save, .. } => "serialize_state_save",
            Self::SerializeState { .. } => "serialize_state_inspector",
            Self::Committed { .. } => "committed",
            Self::Abort(_) => "abort",
            Self::DeadlineReached => "deadline_reached",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// The waiting side of an event: called once with the outcome (invariant 2).
pub struct Reply<T>(Option<Answer<T>>);

/// What a [`Reply`] calls with the outcome.
type Answer<T> = Box<dyn FnOnce(Result<T>) + Send>;

impl<T> Reply<T> {
    /// Calls `answer` with the outcome.
    pub fn new(answer: impl FnOnce(Result<T>) + Send + 'static) -> Self {
        Self(Some(Box::new(answer)))
    }

    /// A reply, and the future that resolves with its outcome.
    pub fn channel() -> (Self, impl Future<Output = Result<T>> + Send + 'static)
    where
        T: Send + 'static,
    {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let reply = Self::new(move |result| drop(sender.send(result)));
        let outcome = async move { receiver.await.unwrap_or_else(|_| Err(dropped_reply())) };
        (reply, outcome)
    }

    /// Answers.
    pub fn send(mut self, result: Result<T>) {
        if let Some(answer) = self.0.take() {
            answer(result);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer(Err(dropped_reply()));
        }
    }
}

impl<T> std::fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}

/// `actor/dropped_reply`: whoever was to answer went away.
pub fn dropped_reply() -> Error {
    Error::new(
        ErrorCode::new("actor", "dropped_reply"),
        "actor reply channel was dropped without a response",
    )
}

/// `actor/aborted`: whoever called gave the call up.
pub fn call_given_up() -> Error {
    Error::new(ErrorCode::new("actor", "aborted"), "the call was cancelled")
}

/// `actor/aborted`: the actor begins to stop, or has stopped.
pub fn actor_stops() -> Error {
    Error::new(ErrorCode::new("actor", "aborted"), "the actor stops")
}
