//! Commits that fail and processes that die at a named point, for tests by authors: a store
//! around the real one, in every build, on hosts that are opened for tests.
//!
//! # Invariants
//!
//! 1. A commit that fails here never reaches the store, and neither does anything that the
//!    same generation commits afterwards, where a failure ends it: so an error that says
//!    "not committed" stays true.
//! 2. After a crash nothing is committed, and nobody hears how a commit ended until the
//!    dead are buried: what was on its way is lost as it would be.
//! 3. Nothing is called under the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::{
    ActorFile, ActorRecord, ActorStore, ActorStoreRef, CommitDone, DeadLetter, HistoryRow, KvQuery,
    MessageId, SqlTransaction, StoreError, WriteBatch,
};
/// Where the process can be made to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// Before the next commit is written: nothing of it is durable.
    BeforeCommit,
    /// When the next commit is durable, and nobody has heard of it.
    AfterCommit,
}

/// Called once when the crash comes.
type Crashed = Box<dyn FnOnce() + Send>;

/// What is to go wrong with the commits of a host. Cheap to clone.
#[derive(Clone, Default)]
pub struct Mishaps(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    /// How many of the next commits fail.
    failures: u32,
    /// Taken by the commit that meets it.
    crash: Option<(CrashPoint, Crashed)>,
    /// From the crash on.
    is_off: bool,
    /// Those who are not to hear how their commits ended (invariant 2).
    unheard: Vec<CommitDone>,
}

/// What becomes of a commit.
enum Fate {
    Passes,
    Fails,
    Lost,
    Dies(Crashed),
    DiesAfter(Crashed),
}

impl Mishaps {
    /// Has one more of the next commits fail with `storage/full`.
    pub fn fail_next_commit(&self) {
        self.0.lock().failures += 1;
    }

    /// Has the next commit meet its end at `point`; `crashed` is called then, at most once,
    /// and has to end all generations. Replaces what was planned before.
    pub fn crash_at(&self, point: CrashPoint, crashed: impl FnOnce() + Send + 'static) {
        let replaced = self.0.lock().crash.replace((point, Box::new(crashed)));
        drop(replaced);
    }

    /// Lets nothing be committed any more.
    pub fn power_off(&self) {
        self.0.lock().is_off = true;
    }

    /// All generations are over: whoever heard nothing hears that the store is closed, and
    /// what was planned is forgotten. The power stays off.
    pub fn bury(&self) {
        let before = {
            let mut plan = self.0.lock();
            std::mem::replace(&mut *plan, Plan { is_off: true, ..Plan::default() })
        };
        for done in before.unheard {
            done(Err(StoreError::Closed));
        }
        drop(before.crash);
    }

    /// The place that keeps an actor, with these mishaps.
    pub fn around(&self, inner: ActorStoreRef) -> ActorStoreRef {
        Arc::new(Mishandled { inner, mishaps: self.clone(), ended: AtomicBool::new(false) })
    }

    fn fate(&self) -> Fate {
        let mut plan = self.0.lock();
        if plan.is_off {
            return Fate::Lost;
        }
        if plan.failures > 0 {
            plan.failures -= 1;
            return Fate::Fails;
        }
        match plan.crash.take() {
            None => Fate::Passes,
            Some((CrashPoint::BeforeCommit, crashed)) => {
                plan.is_off = true;
                Fate::Dies(crashed)
            }
            Some((CrashPoint::AfterCommit, crashed)) => Fate::DiesAfter(crashed),
        }
    }

    fn keep_unheard(&self, done: CommitDone) {
        self.0.lock().unheard.push(done);
    }

    /// The word of a commit that passed, unless the power went off meanwhile.
    fn heard(&self, done: CommitDone) -> CommitDone {
        let mishaps = self.clone();
        Box::new(move |result| {
            if mishaps.0.lock().is_off {
                mishaps.keep_unheard(done);
            } else {
                done(result);
            }
        })
    }
}

/// One generation's place, with mishaps.
struct Mishandled {
    inner: ActorStoreRef,
    mishaps: Mishaps,
    /// A failure has ended the generation's writing (invariant 1).
    ended: AtomicBool,
}

impl ActorStore for Mishandled {
    fn commit(&self, batch: WriteBatch, done: CommitDone) {
        if self.ended.load(Ordering::Acquire) {
            return done(Err(StoreError::Stale));
        }
        match self.mishaps.fate() {
            Fate::Passes => self.inner.commit(batch, self.mishaps.heard(done)),
            Fate::Fails => {
                if batch.fails_generation {
                    self.ended.store(true, Ordering::Release);
                }
                done(Err(StoreError::Full { path: "failNextCommit()".to_owned() }));
            }
            Fate::Lost => self.mishaps.keep_unheard(done),
            Fate::Dies(crashed) => {
                self.mishaps.keep_unheard(done);
                crashed();
            }
            Fate::DiesAfter(crashed) => {
                let mishaps = self.mishaps.clone();
                let durable = move |_: Result<(), StoreError>| {
                    mishaps.power_off();
                    mishaps.keep_unheard(done);
                    crashed();
                };
                self.inner.commit(batch, Box::new(durable));
            }
        }
    }

    fn commit_with(
        &self,
        statements: SqlTransaction,
        batch: WriteBatch,
        done: CommitDone,
    ) -> BoxFuture<'static, ()> {
        let fate =
            if self.ended.load(Ordering::Acquire) { None } else { Some(self.mishaps.fate()) };
        let crashed = match fate {
            Some(Fate::Passes) => {
                return self.inner.commit_with(statements, batch, self.mishaps.heard(done));
            }
            Some(Fate::DiesAfter(crashed)) => {
                let mishaps = self.mishaps.clone();
                let durable = move |_: Result<(), StoreError>| {
                    mishaps.power_off();
                    mishaps.keep_unheard(done);
                    crashed();
                };
                return self.inner.commit_with(statements, batch, Box::new(durable));
            }
            None => {
                done(Err(StoreError::Stale));
                None
            }
            Some(Fate::Fails) => {
                if batch.fails_generation {
                    self.ended.store(true, Ordering::Release);
                }
                done(Err(StoreError::Full { path: "failNextCommit()".to_owned() }));
                None
            }
            Some(Fate::Lost) => {
                self.mishaps.keep_unheard(done);
                None
            }
            Some(Fate::Dies(crashed)) => {
                self.mishaps.keep_unheard(done);
                Some(crashed)
            }
        };
        drop(statements.roll_back());
        if let Some(crashed) = crashed {
            crashed();
        }
        futures::future::ready(()).boxed()
    }

    fn rest(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        self.inner.rest()
    }

    fn file(&self) -> Option<ActorFile> {
        self.inner.file()
    }

    fn load(&self) -> BoxFuture<'static, Result<ActorRecord, StoreError>> {
        self.inner.load()
    }

    fn kv_get(
        &self,
        keys: Vec<Bytes>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.inner.kv_get(keys)
    }

    fn kv_list(
        &self,
        query: KvQuery,
    ) -> BoxFuture<'static, Result<Vec<(Bytes, Bytes)>, StoreError>> {
        self.inner.kv_list(query)
    }

    fn message_bodies(
        &self,
        ids: Vec<MessageId>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.inner.message_bodies(ids)
    }

    fn dead_letters(
        &self,
        after: MessageId,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<DeadLetter>, StoreError>> {
        self.inner.dead_letters(after, limit)
    }

    fn schedule_history(
        &self,
        schedule_id: String,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<HistoryRow>, StoreError>> {
        self.inner.schedule_history(schedule_id, limit)
    }
}
