//! Whether the directory knows an actor's alarm.
//!
//! There is no transaction over the shared store and a file. So the directory says that
//! the alarm is open before it may change in the file, and is told the last one when the
//! actor sleeps; after a crash the open ones are read in their files.
//!
//! # Invariants
//!
//! 1. No alarm is committed in a file before the directory durably says that it is open.
//! 2. The directory is told an alarm only once the file has it durably, and nothing
//!    changes it meanwhile.

use std::sync::Arc;

use super::lease::Lease;
use super::routes::Route;
use super::schema;
use super::slot::Slot;
use super::sync::SyncJob;
use crate::store::job::{Reply, Write};
use crate::store::place::PlaceChange;
use crate::store::{ActorNumber, StoreError};

/// What the directory says of the alarm in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Books {
    /// It is this one.
    Exact,
    /// That it is open is on its way there.
    Opening,
    /// It is open.
    Open,
    /// The exact one is on its way there.
    Settling,
}

impl Books {
    /// Whether the directory is just being told.
    pub(super) fn is_moving(self) -> bool {
        matches!(self, Self::Opening | Self::Settling)
    }
}

impl Slot {
    /// Tells the directory that the alarm is open. The books are `Opening` already.
    pub(super) fn open_alarm(self: &Arc<Self>) {
        let slot = Arc::clone(self);
        self.tell_directory(PlaceChange::OpenAlarm, move |result| slot.alarm_opened(result));
    }

    fn alarm_opened(self: &Arc<Self>, result: Result<(), StoreError>) {
        let mut state = self.lock();
        let failed = match result {
            Ok(()) => {
                state.books = Books::Open;
                None
            }
            Err(error) => {
                state.books = Books::Exact;
                Some(error)
            }
        };
        if state.parked.is_some() {
            match failed {
                None => {
                    drop(state);
                    // This is the writer's thread, and authors' statements may have the pool.
                    self.files.syncs.push(SyncJob::Resume(Arc::clone(self)));
                }
                // Nor are there threads any more when the store is closed.
                Some(error) => {
                    let parked = state.parked.take();
                    drop(state);
                    if let Some(parked) = parked {
                        parked.refuse(error);
                    }
                }
            }
            return self.wake();
        }
        // What waited for it fails, and nothing that could go on without it.
        let waits = |at: &usize| state.waits_for_books(*at);
        // A turn asks before it is the next one's turn.
        let waited = state.next_task().filter(waits).or_else(|| state.first_unready());
        let refused =
            failed.zip(waited).and_then(|(error, at)| Some((state.tasks.remove(at)?.task, error)));
        self.schedule(state);
        self.wake();
        if let Some((task, error)) = refused {
            self.refuse(vec![task], &error);
        }
    }

    /// Reads the alarm and has the directory told once the file has it durably.
    pub(super) fn settle(self: &Arc<Self>, lease: &Lease, reply: Reply<()>) {
        let number = self.note_commit(false);
        if self.lock().books == Books::Exact {
            return self.wait_durable(number, reply);
        }
        let alarm = match schema::alarm(lease.sqlite()) {
            Ok(alarm) => alarm,
            Err(error) => return reply.send(Err(self.database.fault(&error))),
        };
        self.lock().books = Books::Settling;
        let slot = Arc::clone(self);
        let durable = move |result: Result<(), StoreError>| match result {
            Ok(()) => slot.tell_settled(alarm, reply),
            Err(error) => {
                slot.settled(&Err(error.clone()));
                reply.send(Err(error));
            }
        };
        self.wait_durable(number, Reply::new(Box::new(durable)));
    }

    fn tell_settled(self: &Arc<Self>, alarm: Option<i64>, reply: Reply<()>) {
        let slot = Arc::clone(self);
        self.tell_directory(PlaceChange::SettleAlarm { alarm }, move |result| {
            slot.settled(&result);
            reply.send(result);
        });
    }

    fn settled(self: &Arc<Self>, result: &Result<(), StoreError>) {
        let mut state = self.lock();
        state.books = match (result, &state.parked) {
            (Ok(()), None) => Books::Exact,
            (Ok(()), Some(_)) => Books::Opening,
            (Err(_), _) => Books::Open,
        };
        if state.parked.is_none() {
            self.schedule(state);
            return self.wake();
        }
        let is_open = state.books == Books::Open;
        drop(state);
        // A turn waits that changes the alarm again.
        if is_open { self.alarm_opened(Ok(())) } else { self.open_alarm() }
    }

    fn tell_directory(
        &self,
        change: PlaceChange,
        told: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        let reply = Reply::new(Box::new(told));
        self.files.queue.push(Write::Place { number: self.number, change, reply });
    }
}

impl super::Files {
    /// Whether an actor's file is closed and the directory knows its alarm.
    pub(in crate::store) fn is_at_rest(&self, number: ActorNumber) -> bool {
        let routes = self.routes.read();
        match routes.map.get(&number) {
            Some(Route::At(_)) => !routes.open_alarms.contains(&number),
            Some(Route::Open(slot)) => slot.lock().is_at_rest(),
            Some(Route::Leaving(_) | Route::Gone) | None => false,
        }
    }

    /// The actors whose alarm was open when the store was opened.
    pub(in crate::store) fn open_alarms(&self) -> Vec<ActorNumber> {
        self.routes.read().open_alarms.iter().copied().collect()
    }
}
