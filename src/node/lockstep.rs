//! JavaScript and Rust by turns, for tests: while JavaScript runs, Rust only gathers; when
//! JavaScript takes its jobs, everything that Rust can do by itself is done, one thread
//! after the other.
//!
//! So nothing depends on which thread is faster, and "nothing happens any more" is a
//! question with an answer.
//!
//! # Invariants
//!
//! 1. Tasks run on one worker thread of their own, and only while the gate is open. It is
//!    open within [`Lockstep::settle`] alone.
//! 2. A store does one thing at a time, what is to be done for files of actors included,
//!    within [`Lockstep::settle`], on its thread, while the gate is closed. So whoever it
//!    wakes waits in the order of waking. JavaScript that waits for a file in the middle of a turn has it
//!    done then and there.
//! 3. A worker that is parked while no task waits in the queue of the runtime has nothing
//!    to do: whoever gives it a task puts that into the queue first, and it is at the gate
//!    before it takes one.
//! 4. Whoever has something to do while it may not rings JavaScript, whose next take lets
//!    it.
//! 5. The runtime ends with the environment, or else its tasks would keep each other.

use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};

use super::hub::Hub;
use crate::core::spawner::Spawner;
use crate::error::{Error, Result};
use crate::store::SharedStore;

/// The one of an environment, from its first test runtime on.
pub(super) struct Lockstep {
    spawner: Spawner,
    gate: Arc<Gate>,
    /// Taken when the environment ends (invariant 5).
    runtime: Mutex<Option<Runtime>>,
    /// Those of all test runtimes of the environment, in the order of opening. Changed by
    /// `watch` and `settle`.
    stores: Mutex<Vec<Weak<SharedStore>>>,
}

impl Lockstep {
    /// Starts the worker.
    ///
    /// # Errors
    ///
    /// `core/internal_error` when the system gives no thread.
    pub(super) fn new(hub: Weak<Hub>) -> Result<Arc<Self>> {
        let gate = Arc::new(Gate { state: Mutex::default(), moved: Condvar::new(), hub });
        let (parks, unparks) = (Arc::clone(&gate), Arc::clone(&gate));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("greenroom-test")
            .on_thread_park(move || parks.park())
            .on_thread_unpark(move || unparks.pass())
            .build()
            .map_err(|error| Error::internal(format!("could not start a thread: {error}")))?;
        let spawner = Spawner::new(runtime.handle().clone());
        let runtime = Mutex::new(Some(runtime));
        Ok(Arc::new(Self { spawner, gate, runtime, stores: Mutex::default() }))
    }

    /// Where tasks begin.
    pub(super) fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// What a store calls that has something to do (invariant 4).
    pub(super) fn caller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let gate = Arc::clone(&self.gate);
        Arc::new(move || gate.ring())
    }

    /// From now on this store is served. It was opened to wait for its turn.
    pub(super) fn watch(&self, store: &Arc<SharedStore>) {
        self.stores.lock().push(Arc::downgrade(store));
    }

    /// Blocks until nothing more happens by itself. For the JavaScript thread, which
    /// nothing here waits for.
    pub(super) fn settle(&self) {
        loop {
            self.gate.open_until(|| self.spawner.handle().metrics().global_queue_depth() == 0);
            if !self.serve_one() {
                return;
            }
        }
    }

    /// Has the first store that has something to do do one thing. False when none has.
    fn serve_one(&self) -> bool {
        let stores: Vec<_> = {
            let mut stores = self.stores.lock();
            stores.retain(|store| store.strong_count() > 0);
            stores.iter().filter_map(Weak::upgrade).collect()
        };
        stores.iter().any(|store| store.serve_one())
    }

    /// The environment ends.
    pub(super) fn end(&self) {
        self.gate.end();
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// Where the worker waits for its turn.
struct Gate {
    state: Mutex<State>,
    /// Told of each change of the state.
    moved: Condvar,
    hub: Weak<Hub>,
}

#[derive(Default)]
struct State {
    /// Changed by the JavaScript thread.
    is_open: bool,
    /// Changed by the worker.
    is_parked: bool,
    /// Set once, when the environment ends.
    has_ended: bool,
}

impl Gate {
    /// The worker found nothing to do.
    fn park(&self) {
        self.state.lock().is_parked = true;
        self.moved.notify_all();
    }

    /// The worker was woken: it waits until the gate is open.
    fn pass(&self) {
        let is_closed = {
            let mut state = self.state.lock();
            let is_closed = !state.is_open && !state.has_ended;
            state.is_parked = is_closed;
            is_closed
        };
        if !is_closed {
            return;
        }
        self.ring();
        let mut state = self.state.lock();
        while !state.is_open && !state.has_ended {
            self.moved.wait(&mut state);
        }
        state.is_parked = false;
    }

    /// Opens the gate until the worker is parked and `none_waits`; the order of the two
    /// questions does not matter, since only the worker itself gives it tasks meanwhile.
    fn open_until(&self, none_waits: impl Fn() -> bool) {
        let mut state = self.state.lock();
        if state.is_parked && none_waits() {
            return;
        }
        state.is_open = true;
        self.moved.notify_all();
        while !(state.has_ended || (state.is_parked && none_waits())) {
            self.moved.wait(&mut state);
        }
        state.is_open = false;
    }

    fn ring(&self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.call();
        }
    }

    fn end(&self) {
        self.state.lock().has_ended = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::store::{ActorNumber, StoreLocation, StoreOptions};
    use crate::time::Clock;

    fn lockstep() -> (Arc<Hub>, Arc<AtomicUsize>, Arc<Lockstep>) {
        let rings = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&rings);
        let ring = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            true
        };
        let hub = Arc::new(Hub::new(1, Arc::new(ring)));
        let lockstep = Lockstep::new(Arc::downgrade(&hub)).unwrap();
        lockstep.settle();
        (hub, rings, lockstep)
    }

    #[test]
    fn tasks_that_wake_each_other_are_all_done_by_the_next_settling_and_not_before() {
        let (_hub, rings, lockstep) = lockstep();
        let (count, spawner) = (Arc::new(AtomicUsize::new(0)), lockstep.spawner().clone());
        let counter = Arc::clone(&count);
        lockstep.spawner().spawn("first", async move {
            for _ in 0..200 {
                let (tell, told) = tokio::sync::oneshot::channel();
                let counter = Arc::clone(&counter);
                spawner.spawn("second", async move {
                    counter.fetch_add(1, Ordering::SeqCst);
                    tell.send(()).unwrap();
                });
                told.await.unwrap();
            }
        });
        while rings.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(count.load(Ordering::SeqCst), 0);

        lockstep.settle();

        assert_eq!(count.load(Ordering::SeqCst), 200);
        lockstep.end();
    }

    #[test]
    fn what_a_store_answers_and_what_follows_from_it_is_done() {
        let (_hub, _, lockstep) = lockstep();
        let mut options = StoreOptions::new(Clock::manual(0).clock());
        options.waits_for_turn = Some(lockstep.caller());
        let store = SharedStore::open(StoreLocation::Memory, options).unwrap();
        lockstep.watch(&store);
        let count = Arc::new(AtomicUsize::new(0));
        let (counter, reader) = (Arc::clone(&count), Arc::clone(&store));
        lockstep.spawner().spawn("reads", async move {
            for _ in 0..20 {
                reader.alarm_of(ActorNumber(1)).await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });

        lockstep.settle();

        assert_eq!(count.load(Ordering::SeqCst), 20);
        lockstep.end();
    }

    #[test]
    fn a_store_that_has_something_to_do_rings() {
        let (hub, rings, lockstep) = lockstep();
        hub.begin_taking();
        let before = rings.load(Ordering::SeqCst);
        let mut options = StoreOptions::new(Clock::manual(0).clock());
        options.waits_for_turn = Some(lockstep.caller());
        let store = SharedStore::open(StoreLocation::Memory, options).unwrap();

        let read = store.alarm_of(ActorNumber(1));
        while rings.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }

        drop(read);
        lockstep.end();
    }

    #[test]
    fn after_the_end_there_is_nothing_to_wait_for() {
        let (_hub, _, lockstep) = lockstep();

        lockstep.end();

        lockstep.settle();
    }
}
