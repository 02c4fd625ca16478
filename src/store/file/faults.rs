//! Named ways in which an actor's file can be made to fail, for tests only: without the
//! feature `faults` every hook is an empty function.

#[cfg(feature = "faults")]
pub use self::armed::FileFaults;
#[cfg(not(feature = "faults"))]
pub use self::unarmed::FileFaults;

/// What of a promotion is done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromotionStep {
    /// Everything that the actor had queued in the shared store is answered.
    Drained,
    /// The file is written and synced, its name is not.
    Written,
    /// The file's name is synced.
    Created,
    /// The rows are committed in the file.
    Copied,
    /// The log of the file is synced.
    Synced,
    /// The directory names the file.
    Switched,
}

/// What of an import is done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportStep {
    /// The actor has a number.
    Reserved,
    /// Its file has a name and nothing in it.
    Claimed,
    /// The file has everything, and is the actor's.
    Adopted,
    /// It is synced, and its name is.
    Synced,
    /// The directory has the actor.
    Entered,
}

/// What of a commit in a file is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// Everything is applied, nothing is committed.
    Applied,
    /// It is committed.
    Committed,
    /// It is synced, nobody has been answered.
    Synced,
}

#[cfg(not(feature = "faults"))]
mod unarmed {
    use super::{FileStep, ImportStep, PromotionStep};

    /// Faults to come: none in this build.
    #[derive(Clone, Debug, Default)]
    pub struct FileFaults(());

    impl FileFaults {
        pub(in crate::store) fn promotion(&self, _: PromotionStep) -> std::io::Result<()> {
            Ok(())
        }

        pub(in crate::store) fn import(&self, _: ImportStep) -> std::io::Result<()> {
            Ok(())
        }

        pub(in crate::store) fn step(&self, _: FileStep) {}

        pub(in crate::store) fn sync(&self) -> std::io::Result<()> {
            Ok(())
        }

        pub(in crate::store) fn commit(
            &self,
            commit: impl FnOnce() -> rusqlite::Result<()>,
        ) -> rusqlite::Result<()> {
            commit()
        }
    }
}

#[cfg(feature = "faults")]
mod armed {
    use std::collections::VecDeque;
    use std::io;
    use std::sync::Arc;

    use parking_lot::{Condvar, Mutex};
    use rusqlite::ffi;

    use super::{FileStep, ImportStep, PromotionStep};
    use crate::store::faults::CommitFault;

    /// Faults to come. Clones are the same faults.
    #[derive(Clone, Debug, Default)]
    pub struct FileFaults(Arc<Shared>);

    #[derive(Debug, Default)]
    struct Shared {
        /// Changed by tests and by the threads that meet the faults.
        state: Mutex<State>,
        /// Told when syncs go on.
        released: Condvar,
    }

    #[derive(Debug, Default)]
    struct State {
        crash_in_promotion: Option<PromotionStep>,
        fail_promotion: Option<PromotionStep>,
        crash_in_import: Option<ImportStep>,
        fail_import: Option<ImportStep>,
        crash_at: Option<FileStep>,
        failing_syncs: u32,
        syncs_held: bool,
        commits: VecDeque<CommitFault>,
    }

    impl FileFaults {
        /// Aborts the process right after `step` of the next promotion.
        pub fn crash_in_promotion(&self, step: PromotionStep) {
            self.0.state.lock().crash_in_promotion = Some(step);
        }

        /// Makes the next promotion fail right after `step`.
        pub fn fail_promotion(&self, step: PromotionStep) {
            self.0.state.lock().fail_promotion = Some(step);
        }

        /// Aborts the process right after `step` of the next import.
        pub fn crash_in_import(&self, step: ImportStep) {
            self.0.state.lock().crash_in_import = Some(step);
        }

        /// Makes the next import fail right after `step`.
        pub fn fail_import(&self, step: ImportStep) {
            self.0.state.lock().fail_import = Some(step);
        }

        /// Aborts the process right after `step` of the next commit in a file.
        pub fn crash_at(&self, step: FileStep) {
            self.0.state.lock().crash_at = Some(step);
        }

        /// Makes the next `count` syncs of files fail.
        pub fn fail_syncs(&self, count: u32) {
            self.0.state.lock().failing_syncs = count;
        }

        /// Keeps syncs from ending, or lets them go on.
        pub fn hold_syncs(&self, held: bool) {
            self.0.state.lock().syncs_held = held;
            self.0.released.notify_all();
        }

        /// Makes the next commit in a file fail, after those this was said of before.
        pub fn fail_commit(&self, fault: CommitFault) {
            self.0.state.lock().commits.push_back(fault);
        }

        pub(in crate::store) fn promotion(&self, step: PromotionStep) -> io::Result<()> {
            let mut state = self.0.state.lock();
            if state.crash_in_promotion == Some(step) {
                std::process::abort();
            }
            match state.fail_promotion.take_if(|failing| *failing == step) {
                Some(_) => Err(io::Error::other("injected")),
                None => Ok(()),
            }
        }

        pub(in crate::store) fn import(&self, step: ImportStep) -> io::Result<()> {
            let mut state = self.0.state.lock();
            if state.crash_in_import == Some(step) {
                std::process::abort();
            }
            match state.fail_import.take_if(|failing| *failing == step) {
                Some(_) => Err(io::Error::other("injected")),
                None => Ok(()),
            }
        }

        pub(in crate::store) fn step(&self, step: FileStep) {
            if self.0.state.lock().crash_at == Some(step) {
                std::process::abort();
            }
        }

        pub(in crate::store) fn sync(&self) -> io::Result<()> {
            let mut state = self.0.state.lock();
            while state.syncs_held {
                self.0.released.wait(&mut state);
            }
            if state.failing_syncs == 0 {
                return Ok(());
            }
            state.failing_syncs -= 1;
            Err(io::Error::other("injected"))
        }

        pub(in crate::store) fn commit(
            &self,
            commit: impl FnOnce() -> rusqlite::Result<()>,
        ) -> rusqlite::Result<()> {
            let fault = self.0.state.lock().commits.pop_front();
            let Some(fault) = fault else { return commit() };
            let (kept, code) = match fault {
                CommitFault::Busy => (false, ffi::SQLITE_BUSY),
                CommitFault::Full => (false, ffi::SQLITE_FULL),
                CommitFault::SyncFailed { kept } => (kept, ffi::SQLITE_IOERR_FSYNC),
                CommitFault::IndexCannotGrow { kept } => (kept, ffi::SQLITE_IOERR_SHMSIZE),
            };
            if kept {
                commit()?;
            }
            Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("injected".into())))
        }
    }
}
