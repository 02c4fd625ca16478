//! What an actor's file is asked to do.

use rusqlite::Connection;

use super::lease::Lease;
use crate::store::job::{Read, Reply};
use crate::store::{StoreError, WriteBatch};

/// One thing to do with the connection of a file.
pub(in crate::store) enum Task {
    /// Changes of rows, in a transaction of their own.
    Commit { batch: WriteBatch, reply: Reply<()> },
    /// A reading of rows. It waits for the commits that came before it, and for no
    /// transaction of the author's: those do not touch what it reads.
    Read(Read),
    /// The reading that a generation begins with. A transaction that the one before left
    /// open is undone first.
    Load(Read),
    /// A step of a copy of everything, which has nothing of an open transaction.
    Copy(Read),
    /// An author's statement, or a part of a transaction that spans turns.
    Run(Run),
    /// Waits until the directory says that the alarm is open.
    OpenAlarm { reply: Reply<()> },
    /// The end of a generation's writing: the directory learns the alarm.
    Settle { reply: Reply<()> },
}

/// Something that uses the connection as it is.
pub(in crate::store) type Run = Box<dyn FnOnce(Result<&mut Lease, StoreError>) + Send>;

impl Task {
    /// What it weighs while it waits, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Commit { batch, .. } => batch.weight(),
            Self::Read(_)
            | Self::Load(_)
            | Self::Copy(_)
            | Self::Run(_)
            | Self::OpenAlarm { .. }
            | Self::Settle { .. } => 0,
        }
    }

    /// Whether it may be done while a transaction that spans turns is open. `behind`:
    /// a commit came before it that may not.
    pub(super) fn may_join(&self, behind: bool) -> bool {
        match self {
            Self::Run(_) | Self::Load(_) | Self::OpenAlarm { .. } => true,
            Self::Read(_) => !behind,
            Self::Commit { .. } | Self::Copy(_) | Self::Settle { .. } => false,
        }
    }

    /// Ends it undone.
    pub(in crate::store) fn refuse(self, error: StoreError) {
        match self {
            Self::Commit { reply, .. } | Self::OpenAlarm { reply } | Self::Settle { reply } => {
                reply.send(Err(error));
            }
            Self::Read(read) | Self::Load(read) | Self::Copy(read) => read(Err(error)),
            Self::Run(run) => run(Err(error)),
        }
    }
}

/// Undoes what a transaction left, if one is open.
pub(super) fn undo(sqlite: &Connection) -> rusqlite::Result<()> {
    if sqlite.is_autocommit() { Ok(()) } else { sqlite.execute_batch("ROLLBACK") }
}
