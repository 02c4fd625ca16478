//! Group commit: many writes, one COMMIT.
//!
//! # Invariants
//!
//! 1. No write hears of success before the COMMIT that holds it has succeeded.
//! 2. A write that fails harms no other of its group: it is undone by its
//!    savepoint; when SQLite threw the whole transaction away, or there was no
//!    room to commit it, each write is tried once more in a transaction of its own.
//! 3. After each error SQLite is asked whether the transaction still lives. An
//!    error may have ended it, and the next savepoint would then begin one that
//!    commits by itself.
//! 4. A COMMIT that failed other than by FULL or BUSY may have happened. Nothing
//!    is tried after it.

use std::collections::HashSet;

use rusqlite::Connection;

use super::connection::{Database, WriteConnection, is_certain};
use super::directory::{self, ApplyError};
use super::faults::{CrashPoint, Faults};
use super::fence::{Fence, Standing, epoch_of};
use super::job::{Adopted, Write};
use super::place::{self, PlaceChange};
use super::stats::Counters;
use super::{ActorNumber, StoreError, WriteBatch, rows};
use crate::ids::Generation;

/// How many rows of destroyed actors one commit sweeps.
const SWEEP_ROWS: u32 = 1_000;

/// What a group is committed with.
pub(super) struct Committer<'a> {
    pub(super) connection: &'a WriteConnection,
    pub(super) database: &'a Database,
    pub(super) fence: &'a Fence,
    pub(super) faults: &'a Faults,
    pub(super) counters: &'a Counters,
}

/// Hears how writes of the group ended, those of one commit together.
pub(super) type Settle<'a> = &'a mut dyn FnMut(Vec<(Write, Result<(), StoreError>)>);

/// How a group ended.
pub(super) enum GroupEnd {
    /// Every write has been settled.
    Settled {
        /// Whether any write was committed.
        committed: bool,
        /// Whether the last attempt found no room.
        full: bool,
    },
    /// A COMMIT may or may not have happened. These writes are not settled.
    Unknown {
        /// The writes, the ones in doubt among them.
        unsettled: Vec<Write>,
        /// What SQLite said.
        reason: String,
        /// Whether a commit before it succeeded.
        committed: bool,
    },
}

/// How an attempt to commit some writes ended.
enum Attempt {
    /// Committed, but for those writes that have an error.
    Committed,
    /// Certainly not committed.
    Failed(StoreError),
    /// Nobody knows.
    Unknown(String),
}

impl Committer<'_> {
    /// Commits the writes and settles each of them, unless the outcome is unknown.
    pub(super) fn commit(&self, mut group: Vec<Write>, settle: Settle<'_>) -> GroupEnd {
        self.faults.before_group(self.sqlite());
        if group.len() == 1 {
            return self.one_by_one(group, settle);
        }
        let mut errors = vec![None; group.len()];
        let attempt = self.together(&mut group, &mut errors);
        let fulls = errors.iter().flatten().filter(|error| is_full(error)).count();
        self.counters.full.add(fulls);
        if let Attempt::Committed = attempt {
            let committed = errors.iter().any(Option::is_none);
            self.count_commit(group.len());
            settle(group.into_iter().zip(errors.into_iter().map(result)).collect());
            return GroupEnd::Settled { committed, full: false };
        }
        // Those that failed by themselves have failed for certain.
        let (failed, others): (Vec<_>, Vec<_>) =
            group.into_iter().zip(errors).partition(|(_, error)| error.is_some());
        let others = others.into_iter().map(|(write, _)| write).collect();
        settle(failed.into_iter().map(|(write, error)| (write, result(error))).collect());
        match attempt {
            Attempt::Unknown(reason) => {
                GroupEnd::Unknown { unsettled: others, reason, committed: false }
            }
            Attempt::Failed(_) | Attempt::Committed => {
                self.counters.replays.add(1);
                self.one_by_one(others, settle)
            }
        }
    }

    /// Gives each write a transaction of its own, in order.
    fn one_by_one(&self, group: Vec<Write>, settle: Settle<'_>) -> GroupEnd {
        let (mut committed, mut full) = (false, false);
        let mut left = group.into_iter();
        while let Some(mut write) = left.next() {
            let result = match self.alone(&mut write) {
                Attempt::Committed => {
                    self.count_commit(1);
                    (committed, full) = (true, false);
                    Ok(())
                }
                Attempt::Failed(error) => {
                    if is_full(&error) {
                        self.counters.full.add(1);
                        full = true;
                    }
                    Err(error)
                }
                Attempt::Unknown(reason) => {
                    let unsettled = std::iter::once(write).chain(left).collect();
                    return GroupEnd::Unknown { unsettled, reason, committed };
                }
            };
            settle(vec![(write, result)]);
        }
        GroupEnd::Settled { committed, full }
    }

    /// One transaction for all; an error of one write alone goes into `errors`.
    fn together(&self, group: &mut [Write], errors: &mut [Option<StoreError>]) -> Attempt {
        if let Err(error) = self.run("BEGIN IMMEDIATE") {
            return Attempt::Failed(self.database.fault(&error));
        }
        let mut destroyed = HashSet::new();
        for (write, slot) in group.iter_mut().zip(errors) {
            let applied = match self.apply_in_savepoint(write, &destroyed) {
                Ok(applied) => applied,
                Err(error) => return self.roll_back(self.database.fault(&error)),
            };
            let error = applied.err().map(|error| self.meaning(error));
            if self.sqlite().is_autocommit() {
                // Invariant 3. This write is tried again like the others.
                let error = error.unwrap_or_else(|| StoreError::Sqlite {
                    reason: "the transaction ended by itself".into(),
                });
                return Attempt::Failed(error);
            }
            if let (None, Write::Destroy { number, .. }) = (&error, &*write) {
                destroyed.insert(*number);
            }
            *slot = error;
        }
        self.finish()
    }

    /// Applies a write so that it leaves nothing when it fails. An error of its
    /// own is the inner one; with the outer one, the savepoint itself failed and
    /// the transaction must not be committed.
    fn apply_in_savepoint(
        &self,
        write: &mut Write,
        destroyed: &HashSet<ActorNumber>,
    ) -> rusqlite::Result<Result<(), ApplyError>> {
        self.run("SAVEPOINT batch")?;
        let applied = self.apply(write, destroyed);
        if self.sqlite().is_autocommit() {
            return Ok(applied);
        }
        if applied.is_err() {
            self.run("ROLLBACK TO batch")?;
        }
        self.run("RELEASE batch")?;
        Ok(applied)
    }

    fn alone(&self, write: &mut Write) -> Attempt {
        if let Err(error) = self.run("BEGIN IMMEDIATE") {
            return Attempt::Failed(self.database.fault(&error));
        }
        match self.apply(write, &HashSet::new()) {
            Ok(()) => self.finish(),
            Err(error) => self.roll_back(self.meaning(error)),
        }
    }

    fn meaning(&self, error: ApplyError) -> StoreError {
        match error {
            ApplyError::Refused(error) => error,
            ApplyError::Sqlite(error) => self.database.fault(&error),
        }
    }

    /// COMMIT, and what its answer means.
    fn finish(&self) -> Attempt {
        self.faults.crash_if_at(CrashPoint::Applied);
        match self.faults.commit(self.sqlite(), |_| self.run("COMMIT")) {
            Ok(()) => {
                self.faults.crash_if_at(CrashPoint::Committed);
                Attempt::Committed
            }
            Err(error) if is_certain(&error) => self.roll_back(self.database.fault(&error)),
            Err(error) => Attempt::Unknown(error.to_string()),
        }
    }

    /// Ends a transaction that is not to be, unless SQLite has ended it.
    fn roll_back(&self, error: StoreError) -> Attempt {
        if self.sqlite().is_autocommit() {
            return Attempt::Failed(error);
        }
        match self.run("ROLLBACK") {
            Ok(()) => Attempt::Failed(error),
            // A transaction that can be neither committed nor undone: only a new
            // connection helps.
            Err(error) => Attempt::Unknown(error.to_string()),
        }
    }

    fn apply(&self, write: &mut Write, destroyed: &HashSet<ActorNumber>) -> Result<(), ApplyError> {
        self.faults.apply(self.sqlite())?;
        match write {
            Write::Commit { number, batch, .. } => {
                if destroyed.contains(number) {
                    return Err(ApplyError::Refused(StoreError::NotFound));
                }
                self.apply_batch(*number, batch)
            }
            Write::Create { actor, made, .. } => {
                *made = Some(directory::create(self.sqlite(), self.database, actor)?);
                Ok(())
            }
            Write::Reserve { number, .. } => {
                *number = Some(directory::reserve(self.sqlite())?);
                Ok(())
            }
            Write::Adopt(adopted) => {
                let Adopted { row, alarm, made, .. } = &mut **adopted;
                *made = Some(directory::adopt(self.sqlite(), self.database, row, *alarm)?);
                Ok(())
            }
            Write::Destroy { number, existed, file, .. } => {
                let destroyed = directory::destroy(self.sqlite(), self.database, *number)?;
                (*existed, *file) = (destroyed.is_some(), destroyed.flatten());
                Ok(())
            }
            Write::Place { number, change, .. } => {
                if destroyed.contains(number) {
                    return Err(ApplyError::Refused(StoreError::NotFound));
                }
                self.apply_place(*number, *change)
            }
            Write::Sweep { more } => {
                *more = rows::sweep(self.sqlite(), SWEEP_ROWS)?;
                Ok(())
            }
        }
    }

    fn apply_batch(&self, number: ActorNumber, batch: &WriteBatch) -> Result<(), ApplyError> {
        match self.fence.standing(number, batch.generation) {
            Standing::Confirmed => {}
            Standing::Unconfirmed if !batch.has_work() => {}
            Standing::Unconfirmed => self.enter(number, batch.generation)?,
            Standing::Stale => return Err(ApplyError::Refused(StoreError::Stale)),
            Standing::Unknown => return Err(self.absent(number)?),
        }
        for op in &batch.ops {
            rows::apply(self.sqlite(), number, op)?;
        }
        if let Some(alarm) = batch.alarm {
            directory::put_alarm(self.sqlite(), number, alarm)?;
        }
        Ok(())
    }

    fn apply_place(&self, number: ActorNumber, change: PlaceChange) -> Result<(), ApplyError> {
        let sqlite = self.sqlite();
        match change {
            PlaceChange::MoveToFile { generation, n } => {
                let standing = self.fence.standing(number, generation);
                let is_current = matches!(standing, Standing::Confirmed | Standing::Unconfirmed);
                if !is_current || !place::move_to_file(sqlite, number, n)? {
                    return Err(self.absent(number)?);
                }
            }
            PlaceChange::OpenAlarm => place::open_alarm(sqlite, number)?,
            PlaceChange::SettleAlarm { alarm } => place::settle_alarm(sqlite, number, alarm)?,
        }
        Ok(())
    }

    /// The first write of a generation: it finds out whether the actor is there.
    fn enter(&self, number: ActorNumber, generation: Generation) -> Result<(), ApplyError> {
        if !directory::put_generation(self.sqlite(), number, generation)? {
            return Err(self.absent(number)?);
        }
        let epoch = epoch_of(generation);
        if epoch != self.fence.epoch() {
            super::schema::raise_epoch_to(self.sqlite(), epoch)?;
        }
        Ok(())
    }

    /// Why an actor cannot be written here: it has no row, or, having one, has
    /// ended this generation or left the shared store.
    fn absent(&self, number: ActorNumber) -> rusqlite::Result<ApplyError> {
        let is_there = directory::exists(self.sqlite(), number)?;
        Ok(ApplyError::Refused(if is_there { StoreError::Stale } else { StoreError::NotFound }))
    }

    fn sqlite(&self) -> &Connection {
        &self.connection.sqlite
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.sqlite().prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn count_commit(&self, batches: usize) {
        self.counters.commits.add(1);
        self.counters.batches.add(batches);
        self.counters.largest_group.raise(batches);
        self.connection.count_frames(self.counters);
    }
}

fn is_full(error: &StoreError) -> bool {
    matches!(error, StoreError::Full { .. })
}

fn result(error: Option<StoreError>) -> Result<(), StoreError> {
    error.map_or(Ok(()), Err)
}
