//! The threads that use the connections of files.

use std::sync::Arc;

use super::Files;
use super::line::Next;
use super::slot::Slot;
use crate::store::job::guarded;

/// Work for the pool.
pub(super) enum Job {
    /// Something is to be done for this file.
    Serve(Arc<Slot>),
    /// Something that blocks.
    Run(Box<dyn FnOnce() + Send>),
    /// More files are open than may be.
    Trim,
    /// Files want looking after.
    Keep,
}

impl Files {
    /// Serves until the store is closed.
    pub(super) fn work(&self) {
        loop {
            match self.ready.next(self.patience()) {
                Next::Work(Job::Serve(slot)) => guarded("the work on a file", || slot.serve()),
                Next::Work(Job::Run(run)) => guarded("the work on files", run),
                Next::Work(Job::Trim) => self.trim(),
                Next::Work(Job::Keep) | Next::Idle => {}
                Next::Closed => return,
            }
            self.refuse_overdue();
            self.keep();
        }
    }
}
