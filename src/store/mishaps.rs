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

use parking_lot::Mutex;

use super::mishandled::mishandled;
use super::{ActorStoreRef, CommitDone, StoreError};

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
        let ordeal = Ordeal { mishaps: self.clone(), ended: Arc::default() };
        mishandled(inner, ordeal)
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

    /// The process dies here, and nobody hears how a commit ended.
    fn die(&self, done: CommitDone, crashed: Crashed) {
        self.power_off();
        self.keep_unheard(done);
        crashed();
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

/// What the commits of one generation go through.
#[derive(Clone)]
pub(super) struct Ordeal {
    mishaps: Mishaps,
    /// A failure has ended the generation's writing (invariant 1).
    ended: Arc<AtomicBool>,
}

impl Ordeal {
    /// Has a commit meet what is planned: it is made by `commit`, or that is dropped.
    pub(super) fn meet(
        &self,
        fails_generation: bool,
        done: CommitDone,
        commit: impl FnOnce(CommitDone),
    ) {
        if self.ended.load(Ordering::Acquire) {
            drop(commit);
            return done(Err(StoreError::Stale));
        }
        match self.mishaps.fate() {
            Fate::Passes => commit(self.mishaps.heard(done)),
            Fate::Fails => {
                if fails_generation {
                    self.ended.store(true, Ordering::Release);
                }
                drop(commit);
                done(Err(failed()));
            }
            Fate::Lost => {
                drop(commit);
                self.mishaps.keep_unheard(done);
            }
            Fate::Dies(crashed) => {
                drop(commit);
                self.mishaps.keep_unheard(done);
                crashed();
            }
            Fate::DiesAfter(crashed) => {
                let mishaps = self.mishaps.clone();
                commit(Box::new(move |_| mishaps.die(done, crashed)));
            }
        }
    }

    /// Watches a step of an author's statements, whose commits only SQLite knows.
    pub(super) fn watch(&self) -> Watch {
        Watch { ordeal: self.clone(), met: Arc::default() }
    }
}

/// A step of an author's statements. The first of its commits that does not pass is the last.
#[derive(Clone)]
pub(super) struct Watch {
    ordeal: Ordeal,
    met: Arc<Mutex<Option<Fate>>>,
}

/// How a watched step is to be reported.
pub(super) enum Outcome {
    /// As it went.
    Plain,
    /// As failed, with this.
    Failed(StoreError),
    /// By nobody before the dead are buried.
    Unheard(Unheard),
}

/// The end of a step that nobody is to hear of.
pub(super) struct Unheard {
    mishaps: Mishaps,
    crashed: Option<Crashed>,
}

impl Watch {
    /// Asked by SQLite at each commit: whether it is to be undone.
    pub(super) fn refuses(&self) -> bool {
        let mut met = self.met.lock();
        if met.is_some() {
            return true;
        }
        let fate = if self.ordeal.ended.load(Ordering::Acquire) {
            Fate::Fails
        } else {
            self.ordeal.mishaps.fate()
        };
        let refuses = !matches!(fate, Fate::Passes | Fate::DiesAfter(_));
        if !matches!(fate, Fate::Passes) {
            *met = Some(fate);
        }
        refuses
    }

    /// The step is over.
    pub(super) fn end(&self) -> Outcome {
        let met = self.met.lock().take();
        let mishaps = self.ordeal.mishaps.clone();
        let crashed = match met {
            None | Some(Fate::Passes) => return Outcome::Plain,
            Some(Fate::Fails) => return Outcome::Failed(failed()),
            Some(Fate::Lost) => None,
            Some(Fate::Dies(crashed) | Fate::DiesAfter(crashed)) => Some(crashed),
        };
        Outcome::Unheard(Unheard { mishaps, crashed })
    }
}

impl Unheard {
    /// Keeps the report until the dead are buried.
    pub(super) fn keep(self, done: CommitDone) {
        match self.crashed {
            Some(crashed) => self.mishaps.die(done, crashed),
            None => self.mishaps.keep_unheard(done),
        }
    }
}

/// The error of a commit that was to fail.
fn failed() -> StoreError {
    StoreError::Full { path: "failNextCommit()".to_owned() }
}
