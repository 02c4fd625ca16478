//! Named ways in which a store can be made to fail, for tests only: without the
//! feature `faults` every hook is an empty function.
//!
//! The hooks do to SQLite what the real fault was seen to do: a commit that
//! returns FULL is rolled back; one whose sync failed is either in the log or
//! not, and the caller cannot tell.

#[cfg(feature = "faults")]
pub use self::armed::{CommitFault, CrashPoint, Faults};
#[cfg(not(feature = "faults"))]
pub(super) use self::unarmed::CrashPoint;
#[cfg(not(feature = "faults"))]
pub use self::unarmed::Faults;

#[cfg(not(feature = "faults"))]
mod unarmed {
    use rusqlite::Connection;

    /// Faults to come: none in this build.
    #[derive(Clone, Debug, Default)]
    pub struct Faults(());

    /// A moment at which the process could be made to die.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::store) enum CrashPoint {
        Applied,
        Committed,
        Answered,
    }

    impl Faults {
        pub(in crate::store) fn before_group(&self, _: &Connection) {}

        pub(in crate::store) fn apply(&self, _: &Connection) -> rusqlite::Result<()> {
            Ok(())
        }

        pub(in crate::store) fn commit(
            &self,
            sqlite: &Connection,
            commit: impl FnOnce(&Connection) -> rusqlite::Result<()>,
        ) -> rusqlite::Result<()> {
            commit(sqlite)
        }

        pub(in crate::store) fn reopen(&self) -> rusqlite::Result<()> {
            Ok(())
        }

        pub(in crate::store) fn crash_if_at(&self, _: CrashPoint) {}
    }
}

#[cfg(feature = "faults")]
mod armed {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use rusqlite::{Connection, ffi};

    /// How a COMMIT fails.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CommitFault {
        /// No room: rolled back.
        Full,
        /// Somebody else writes: the transaction stays open.
        Busy,
        /// The sync failed.
        SyncFailed {
            /// Whether the commit is in the log all the same.
            kept: bool,
        },
        /// The index of the log could not grow.
        IndexCannotGrow {
            /// Whether the commit is in the log all the same.
            kept: bool,
        },
    }

    /// A moment at which the process can be made to die.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CrashPoint {
        /// All of a group is applied, nothing is committed.
        Applied,
        /// The group is committed, nobody has been answered.
        Committed,
        /// Everybody has been answered.
        Answered,
    }

    /// Faults to come. Clones are the same faults.
    #[derive(Clone, Debug, Default)]
    pub struct Faults(Arc<Mutex<State>>);

    #[derive(Debug, Default)]
    struct State {
        /// What happens to the next commits, first one first.
        commits: std::collections::VecDeque<Option<CommitFault>>,
        /// How many writes are applied before one loses the transaction.
        applies_until_loss: Option<u32>,
        /// Where the group after the current one dies.
        crash_next: Option<CrashPoint>,
        /// Where the current group dies.
        crash_at: Option<CrashPoint>,
        failing_reopens: u32,
        /// The limit to set before the next group.
        max_pages: Option<u32>,
    }

    impl Faults {
        /// Makes `count` commits fail, after those that this was said of before.
        pub fn fail_commits(&self, count: usize, fault: CommitFault) {
            self.0.lock().commits.extend(std::iter::repeat_n(Some(fault), count));
        }

        /// Lets `count` commits pass before the faults that are ordered next.
        pub fn pass_commits(&self, count: usize) {
            self.0.lock().commits.extend(std::iter::repeat_n(None, count));
        }

        /// Makes the write after the next `skipped` ones fail with FULL and lose
        /// the whole transaction, as SQLite does.
        pub fn lose_transaction_after(&self, skipped: u32) {
            self.0.lock().applies_until_loss = Some(skipped);
        }

        /// Aborts the process at `point` of the group that begins next.
        pub fn crash_at(&self, point: CrashPoint) {
            self.0.lock().crash_next = Some(point);
        }

        /// Makes the next `count` attempts to reopen the database fail.
        pub fn fail_reopens(&self, count: u32) {
            self.0.lock().failing_reopens = count;
        }

        /// Limits the database to `pages` of 4 KiB from the next group on, so
        /// that SQLite itself finds it full.
        pub fn limit_pages(&self, pages: u32) {
            self.0.lock().max_pages = Some(pages);
        }

        pub(in crate::store) fn before_group(&self, sqlite: &Connection) {
            let pages = {
                let mut state = self.0.lock();
                state.crash_at = state.crash_next.take();
                state.max_pages.take()
            };
            let Some(pages) = pages else { return };
            sqlite
                .execute_batch(&format!("PRAGMA max_page_count={pages}"))
                .expect("a pragma that only sets a number");
        }

        pub(in crate::store) fn apply(&self, sqlite: &Connection) -> rusqlite::Result<()> {
            {
                let mut state = self.0.lock();
                match &mut state.applies_until_loss {
                    None => return Ok(()),
                    Some(0) => state.applies_until_loss = None,
                    Some(skipped) => {
                        *skipped -= 1;
                        return Ok(());
                    }
                }
            }
            sqlite.execute_batch("ROLLBACK")?;
            Err(failure(ffi::SQLITE_FULL))
        }

        pub(in crate::store) fn commit(
            &self,
            sqlite: &Connection,
            commit: impl FnOnce(&Connection) -> rusqlite::Result<()>,
        ) -> rusqlite::Result<()> {
            let fault = self.0.lock().commits.pop_front().flatten();
            let Some(fault) = fault else { return commit(sqlite) };
            let (kept, code) = match fault {
                CommitFault::Busy => return Err(failure(ffi::SQLITE_BUSY)),
                CommitFault::Full => (false, ffi::SQLITE_FULL),
                CommitFault::SyncFailed { kept } => (kept, ffi::SQLITE_IOERR_FSYNC),
                CommitFault::IndexCannotGrow { kept } => (kept, ffi::SQLITE_IOERR_SHMSIZE),
            };
            if kept {
                commit(sqlite)?;
            } else {
                sqlite.execute_batch("ROLLBACK")?;
            }
            Err(failure(code))
        }

        pub(in crate::store) fn reopen(&self) -> rusqlite::Result<()> {
            let mut state = self.0.lock();
            if state.failing_reopens == 0 {
                return Ok(());
            }
            state.failing_reopens -= 1;
            Err(failure(ffi::SQLITE_CANTOPEN))
        }

        pub(in crate::store) fn crash_if_at(&self, point: CrashPoint) {
            if self.0.lock().crash_at == Some(point) {
                std::process::abort();
            }
        }
    }

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("injected".into()))
    }
}
