//! Files of a store that waits for its turn: what the threads would do is done by whoever
//! gives the turns, and by whoever would otherwise wait for it in vain.

use std::sync::mpsc::{Receiver, TryRecvError};

use super::Files;
use super::pool::Job;
use crate::store::StoreError;
use crate::store::job::guarded;

impl Files {
    /// Does one thing that waits for a thread of the pool or for a sync. False when nothing
    /// waits, and where threads do it.
    pub(super) fn serve_one(&self) -> bool {
        if !self.by_turns {
            return false;
        }
        match self.ready.take() {
            Some(Job::Serve(slot)) => guarded("the work on a file", || slot.serve()),
            Some(Job::Run(run)) => guarded("the work on files", run),
            Some(Job::Trim) => self.trim(),
            // Nothing else here wants looking after: there are no logs.
            Some(Job::Keep) => drop(self.refuse_overdue()),
            None => match self.syncs.take() {
                Some(job) => job.perform(),
                // As time goes by, and nobody says so.
                None => return self.refuse_overdue(),
            },
        }
        true
    }

    /// Gives the store its turn for one thing. False when nothing waits for one.
    pub(in crate::store) fn help(&self) -> bool {
        self.queue.serve_one() || self.serve_one()
    }

    /// Blocks for an answer of the writer, for a thread of the pool.
    pub(super) fn hear<T>(
        &self,
        answered: &Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        loop {
            match answered.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Disconnected) => return Err(StoreError::Closed),
                Err(TryRecvError::Empty) => {}
            }
            if !self.queue.serve_one() {
                return answered.recv().unwrap_or(Err(StoreError::Closed));
            }
        }
    }
}
