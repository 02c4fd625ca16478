//! The queue of jobs for one JavaScript environment, and its wake-up.
//!
//! # Invariants
//!
//! 1. Jobs leave in the order in which they came.
//! 2. `woken` is set under the lock by the push that wakes, and cleared before
//!    JavaScript begins to take: a job is never left behind without a wake-up.
//! 3. Once dead, a hub takes no job: whoever pushed has it back and answers it.
//!    Dying and taking what was queued is one step under the lock, so no push
//!    slips in between.
//! 4. Nothing is called out to, and nothing dropped, under the lock.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::job::Job;
use super::lockstep::Lockstep;
use super::runtime;
use crate::core::spawner::Spawner;
use crate::error::Error;

/// How many jobs JavaScript takes in one crossing at most.
pub(super) const TAKEN_AT_ONCE: usize = 256;

/// How many log lines wait for JavaScript at most; what comes beyond is counted.
const MAX_LOGS: usize = 1_024;

/// Asks JavaScript to take; false when its environment is closing.
pub(super) type Wake = Arc<dyn Fn() -> bool + Send + Sync>;

/// The jobs of one environment.
pub(super) struct Hub {
    environment: u64,
    state: Mutex<State>,
    /// Set by the first test runtime of the environment.
    lockstep: OnceLock<Arc<Lockstep>>,
}

struct State {
    /// Set once, by [`Hub::die`] or by a wake-up that found the environment closing.
    dead: bool,
    /// See invariant 2.
    woken: bool,
    jobs: VecDeque<Job>,
    /// Dropped by [`Hub::die`].
    wake: Option<Wake>,
    /// How many of `jobs` are log lines.
    logs: usize,
    /// How many log lines were refused since one was last taken.
    lost_logs: u64,
}

impl Hub {
    /// A hub that wakes its environment by `wake`.
    pub(super) fn new(environment: u64, wake: Wake) -> Self {
        let state = State {
            dead: false,
            woken: false,
            jobs: VecDeque::new(),
            wake: Some(wake),
            logs: 0,
            lost_logs: 0,
        };
        Self { environment, state: Mutex::new(state), lockstep: OnceLock::new() }
    }

    /// The number of its environment.
    pub(super) fn environment(&self) -> u64 {
        self.environment
    }

    /// From now on JavaScript and Rust go by turns.
    ///
    /// # Errors
    ///
    /// `core/internal_error` when the system gives no thread.
    pub(super) fn go_in_lockstep(self: &Arc<Self>) -> Result<(), Error> {
        if self.lockstep.get().is_none() {
            // Only the thread of the environment sets it, so it is still empty.
            drop(self.lockstep.set(Lockstep::new(Arc::downgrade(self))?));
        }
        Ok(())
    }

    /// How JavaScript and Rust go by turns, if they do.
    pub(super) fn lockstep(&self) -> Option<&Arc<Lockstep>> {
        self.lockstep.get()
    }

    /// Has JavaScript take, whether anything is queued or not.
    pub(super) fn call(&self) {
        let wake = self.state.lock().ask();
        self.ring(wake);
    }

    /// Where tasks begin that JavaScript waits for.
    pub(super) fn spawner(&self) -> Result<&Spawner, Error> {
        match self.lockstep.get() {
            Some(lockstep) => Ok(lockstep.spawner()),
            None => runtime::spawner(),
        }
    }

    /// Queues a job and wakes JavaScript where nobody has; a dead hub gives the
    /// job back (invariant 3).
    pub(super) fn push(&self, job: Job) -> Result<(), Job> {
        let wake = {
            let mut state = self.state.lock();
            if state.dead {
                drop(state);
                return Err(job);
            }
            state.jobs.push_back(job);
            state.ask()
        };
        self.ring(wake);
        Ok(())
    }

    /// Queues a log line, unless too many wait already.
    pub(super) fn push_log(&self, make: impl FnOnce(u64) -> Job) {
        let wake = {
            let mut state = self.state.lock();
            if state.dead {
                return;
            }
            if state.logs >= MAX_LOGS {
                state.lost_logs += 1;
                return;
            }
            let lost = std::mem::take(&mut state.lost_logs);
            state.logs += 1;
            state.jobs.push_back(make(lost));
            state.ask()
        };
        self.ring(wake);
    }

    /// JavaScript was woken and begins to take (invariant 2).
    pub(super) fn begin_taking(&self) {
        self.state.lock().woken = false;
    }

    /// The next jobs, at most [`TAKEN_AT_ONCE`].
    pub(super) fn take(&self) -> Vec<Job> {
        let mut state = self.state.lock();
        let count = state.jobs.len().min(TAKEN_AT_ONCE);
        let taken: Vec<Job> = state.jobs.drain(..count).collect();
        state.logs -= taken.iter().filter(|job| matches!(job, Job::Log(_))).count();
        taken
    }

    /// Ends the hub and returns what was queued; nothing the second time.
    pub(super) fn die(&self) -> VecDeque<Job> {
        let (jobs, wake) = {
            let mut state = self.state.lock();
            state.dead = true;
            (std::mem::take(&mut state.jobs), state.wake.take())
        };
        drop(wake);
        jobs
    }

    /// Whether its environment is gone.
    pub(super) fn is_dead(&self) -> bool {
        self.state.lock().dead
    }

    /// Wakes JavaScript after the unlock. An environment that is closing is as
    /// good as dead: it takes nothing more, and what it has stays for its cleanup
    /// hook, which answers it.
    fn ring(&self, wake: Option<Wake>) {
        if let Some(wake) = wake
            && !wake()
        {
            self.state.lock().dead = true;
        }
    }
}

impl State {
    fn ask(&mut self) -> Option<Wake> {
        if std::mem::replace(&mut self.woken, true) {
            return None;
        }
        self.wake.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::node::job::LogLine;

    fn counted() -> (Arc<Hub>, Arc<AtomicUsize>) {
        let rings = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&rings);
        let wake: Wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            true
        });
        (Arc::new(Hub::new(1, wake)), rings)
    }

    fn line(lost: u64) -> Job {
        Job::Log(Box::new(LogLine {
            level: "info",
            target: "t".into(),
            message: "m".into(),
            fields: "{}".into(),
            lost,
        }))
    }

    fn deadline(actor: u64) -> Job {
        Job::Deadline { actor }
    }

    #[test]
    fn one_wake_up_serves_all_until_javascript_begins_to_take() {
        let (hub, rings) = counted();

        hub.push(deadline(1)).unwrap();
        hub.push(deadline(2)).unwrap();
        assert_eq!(rings.load(Ordering::SeqCst), 1);

        hub.begin_taking();
        hub.push(deadline(3)).unwrap();
        assert_eq!(rings.load(Ordering::SeqCst), 2);
        assert_eq!(hub.take().len(), 3);
    }

    #[test]
    fn one_take_brings_256_jobs_at_most_and_in_order() {
        let (hub, _) = counted();
        for actor in 0..300 {
            hub.push(deadline(actor)).unwrap();
        }

        let first = hub.take();
        let second = hub.take();

        assert_eq!((first.len(), second.len()), (256, 44));
        let order: Vec<u64> = first.iter().chain(&second).map(Job::actor).collect();
        assert!(order.is_sorted());
    }

    #[test]
    fn a_dead_hub_hands_out_what_it_had_and_refuses_what_comes() {
        let (hub, rings) = counted();
        hub.push(deadline(1)).unwrap();

        assert_eq!(hub.die().len(), 1);

        assert!(hub.is_dead());
        assert_eq!(hub.push(deadline(2)).unwrap_err().actor(), 2);
        assert_eq!(hub.die().len(), 0);
        assert_eq!(rings.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_hub_whose_environment_is_closing_takes_one_job_at_most_and_keeps_it_for_the_end() {
        let hub = Hub::new(1, Arc::new(|| false));

        hub.push(deadline(1)).unwrap();

        assert_eq!(hub.push(deadline(2)).unwrap_err().actor(), 2);
        assert_eq!(hub.die().len(), 1);
    }

    #[test]
    fn logs_beyond_the_limit_are_counted_and_told_with_the_next() {
        let (hub, _) = counted();
        for _ in 0..MAX_LOGS + 5 {
            hub.push_log(line);
        }
        for _ in 0..MAX_LOGS / TAKEN_AT_ONCE {
            hub.take();
        }

        hub.push_log(line);

        match hub.take().pop() {
            Some(Job::Log(line)) => assert_eq!(line.lost, 5),
            other => panic!("expected a log line, got {other:?}"),
        }
    }
}
