//! What a change of an actor's machine makes necessary outside its lock.

use std::sync::Arc;

use bytes::Bytes;

use super::gate::CommitNumber;
use super::lifecycle::StopReason;
use super::turn_sql::OpenTurn;
use crate::core::behavior::{ActorEvent, Reply, StopOutcome};
use crate::core::connections::{Conn, Event, Pending};
use crate::core::queue::WaiterId;
use crate::error::{Error, Result};
use crate::store::{MessageId, SqlTransaction, WriteBatch};
use crate::time::Instant;

/// Something to do after the unlock, in the order in which it was decided.
#[derive(Debug)]
pub(super) enum Effect {
    /// Hand an event to the author's side.
    Deliver(ActorEvent),
    /// Drop an event that comes too late, which answers its reply.
    Discard(ActorEvent),
    /// Hand a batch to the store, or commit it with an author's statements.
    Commit { number: CommitNumber, batch: WriteBatch, origin: CommitOrigin, with: With },
    /// Give the connection of a turn back, without what it wrote.
    EndTurn(OpenTurn),
    /// Undo the statements of a state transaction, as its deadline does or as its owner.
    EndTransaction { sql: SqlTransaction, expired: bool },
    /// Have the machine ticked at this moment.
    Arm(Instant),
    /// Tell the host the next intent.
    SendIntent,
    /// Let an output leave.
    Release(Output),
    /// Tell those who waited for the commit before this to be with the store.
    Begun(Vec<Reply<()>>),
    /// Read the bodies of messages for a wait.
    ReadMessages { waiter: WaiterId, ids: Vec<MessageId> },
    /// Tell whoever waited on the clock that it is time.
    EndWait(Reply<()>),
    /// Write to the log.
    Log(LogLine),
    /// Begin the task that waits for the grace period to end.
    BeginGrace(StopReason),
    /// End what is overdue of the author's statements.
    TickSql,
    /// End the generation: its memory is void.
    Break(Error),
    /// Tell the host that the generation ended.
    Stopped(StopOutcome),
}

/// Which statements of the author are committed with a batch.
#[derive(Debug)]
pub(super) enum With {
    /// None.
    Nothing,
    /// Those of a turn.
    Turn(OpenTurn),
    /// Those of a state transaction.
    Transaction(SqlTransaction),
}

/// A line of the log that was decided on under the lock and is written after it.
pub(super) struct LogLine(pub(super) Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for LogLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogLine")
    }
}

/// Which save of the state a commit is, up to the newest request that it satisfies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveOf {
    /// One that the machine asked the author's side for.
    Pulled(u64),
    /// One that the author's side pushed.
    Pushed(u64),
    /// None: it carries rows only.
    Rows,
}

/// Where a commit comes from, and what it publishes.
#[derive(Clone, Debug)]
pub(super) struct CommitOrigin {
    /// Which save it is.
    pub(super) save: SaveOf,
    /// The state that it stores, if it stores one.
    pub(super) state: Option<Bytes>,
    /// It carries changes that memory has made already and that nothing undoes.
    pub(super) in_memory: bool,
    /// What it took of the changes of connections.
    pub(super) connections: Pending,
}

/// Something that lets the outside learn of a change, and so waits for the gate.
#[derive(Debug)]
pub(super) enum Output {
    /// The answer to a call.
    Answer(Reply<Bytes>, Result<Bytes>),
    /// An event for these clients, in order.
    Event { event: Arc<Event>, to: Vec<Arc<Conn>> },
    /// Somebody asked to hear when everything so far is durable.
    Flushed(Reply<()>, Result<()>),
}

impl Output {
    /// Sends it.
    pub(super) fn leave(self) {
        match self {
            Self::Answer(reply, result) => reply.send(result),
            Self::Event { event, to } => {
                for conn in to {
                    conn.deliver(&event);
                }
            }
            Self::Flushed(reply, result) => reply.send(result),
        }
    }

    /// Makes it say `error` in place of what it was to say; an event is told to nobody.
    pub(super) fn fail(self, error: Error) -> Self {
        match self {
            Self::Answer(reply, _) => Self::Answer(reply, Err(error)),
            Self::Event { event, .. } => Self::Event { event, to: Vec::new() },
            Self::Flushed(reply, _) => Self::Flushed(reply, Err(error)),
        }
    }
}
