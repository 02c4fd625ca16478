//! JavaScript and Rust by turns, for tests: while JavaScript runs, Rust only gathers; when
//! JavaScript takes its jobs, everything that Rust can do by itself is done, on the thread
//! of JavaScript.
//!
//! So nothing depends on which thread is faster, "nothing happens any more" is a question
//! with an answer, and no thread waits for another.
//!
//! # Invariants
//!
//! 1. Tasks run within [`Lockstep::settle`] alone, on the thread that calls it.
//! 2. A store does one thing at a time, what is to be done for files of actors included,
//!    within [`Lockstep::settle`], while no task runs. So whoever it wakes waits in the order
//!    of waking. JavaScript that waits for a file in the middle of a turn has it done then
//!    and there.
//! 3. Whoever has something to do while it may not rings JavaScript, whose next take lets
//!    it.
//! 4. The runtime ends with the environment, or else its tasks would keep each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use super::hub::Hub;
use crate::core::spawner::Spawner;
use crate::error::{Error, Result};
use crate::store::SharedStore;

/// The one of an environment, from its first test runtime on.
pub(super) struct Lockstep {
    spawner: Spawner,
    bell: Arc<Bell>,
    rest: Arc<Rest>,
    /// Held while it runs. Taken when the environment ends (invariant 4).
    runtime: Mutex<Option<Runtime>>,
    /// Those of all test runtimes of the environment, in the order of opening. Changed by
    /// `watch` and `settle`.
    stores: Mutex<Vec<Weak<SharedStore>>>,
}

impl Lockstep {
    /// # Errors
    ///
    /// `core/internal_error` when the system does not give what a runtime needs.
    pub(super) fn new(hub: Weak<Hub>) -> Result<Arc<Self>> {
        let bell = Arc::new(Bell { is_settling: AtomicBool::new(false), hub });
        let rest = Arc::<Rest>::default();
        let found = Arc::clone(&rest);
        let runtime = Builder::new_current_thread()
            .on_thread_park(move || found.find())
            .build()
            .map_err(|error| Error::internal(format!("could not make a runtime: {error}")))?;
        let rings = Arc::clone(&bell);
        let spawner = Spawner::watched(runtime.handle().clone(), Arc::new(move || rings.ring()));
        let runtime = Mutex::new(Some(runtime));
        Ok(Arc::new(Self { spawner, bell, rest, runtime, stores: Mutex::default() }))
    }

    /// Where tasks begin.
    pub(super) fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// What a store calls that has something to do (invariant 3).
    pub(super) fn caller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let bell = Arc::clone(&self.bell);
        Arc::new(move || bell.ring())
    }

    /// From now on this store is served. It was opened to wait for its turn.
    pub(super) fn watch(&self, store: &Arc<SharedStore>) {
        self.stores.lock().push(Arc::downgrade(store));
    }

    /// Does what there is to do, until nothing more happens by itself. For the JavaScript
    /// thread.
    pub(super) fn settle(&self) {
        loop {
            self.bell.is_settling.store(true, Ordering::SeqCst);
            self.settle_once();
            self.bell.is_settling.store(false, Ordering::SeqCst);
            // What another thread has woken between the last look and here did not ring.
            if self.spawner.handle().metrics().global_queue_depth() == 0 {
                return;
            }
        }
    }

    fn settle_once(&self) {
        let runtime = self.runtime.lock();
        let Some(runtime) = &*runtime else { return };
        loop {
            runtime.block_on(self.rest.found());
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
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// That no task has anything to do.
#[derive(Default)]
struct Rest {
    is_found: AtomicBool,
    /// Who waits for that.
    waker: AtomicWaker,
}

impl Rest {
    /// The runtime is about to wait for somebody to wake a task.
    fn find(&self) {
        self.is_found.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    async fn found(&self) {
        self.is_found.store(false, Ordering::SeqCst);
        std::future::poll_fn(|context| {
            self.waker.register(context.waker());
            if self.is_found.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// By which JavaScript is asked to take.
struct Bell {
    /// Whether whatever comes is done anyway. Changed by the JavaScript thread.
    is_settling: AtomicBool,
    hub: Weak<Hub>,
}

impl Bell {
    fn ring(&self) {
        if !self.is_settling.load(Ordering::SeqCst)
            && let Some(hub) = self.hub.upgrade()
        {
            hub.call();
        }
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
        assert_eq!(rings.load(Ordering::SeqCst), 1);
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
