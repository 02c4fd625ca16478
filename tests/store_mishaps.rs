//! Commits that fail and processes that die because a test asked for it, and memory that
//! the next store finds again.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use greenroom::ids::Generation;
use greenroom::store::{
    ActorNumber, ActorStoreRef, CrashPoint, KeptMemory, Mishaps, SharedStore, StoreError,
    StoreLocation, WriteBatch,
};
use support::*;

struct Scene {
    store: Arc<SharedStore>,
    number: ActorNumber,
    generation: Generation,
    mishaps: Mishaps,
    place: ActorStoreRef,
}

fn scene() -> Scene {
    let (store, mishaps) = (open_memory(), Mishaps::default());
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    let place = mishaps.around(store.actor(number));
    Scene { store, number, generation, mishaps, place }
}

impl Scene {
    fn batch(&self, text: &'static str) -> WriteBatch {
        WriteBatch { fails_generation: true, ..state(self.generation, text.as_bytes()) }
    }

    /// Commits; nothing comes of it while nobody hears.
    fn commit(&self, text: &'static str) -> mpsc::Receiver<Result<(), StoreError>> {
        let (tell, told) = mpsc::channel();
        self.place.commit(self.batch(text), Box::new(move |result| drop(tell.send(result))));
        // Reads come behind every batch: what was taken before is answered.
        drop(wait(self.store.actor(self.number).load()));
        told
    }

    fn stored(&self) -> Option<bytes::Bytes> {
        stored(&self.store, self.number)
    }

    fn count_crashes(&self, point: CrashPoint) -> Arc<AtomicUsize> {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        self.mishaps.crash_at(point, move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        count
    }
}

#[test]
fn a_commit_that_is_to_fail_fails_and_none_of_its_generation_passes_afterwards() {
    let scene = scene();
    scene.commit("kept").recv().unwrap().unwrap();
    scene.mishaps.fail_next_commit();

    let failed = scene.commit("lost").recv().unwrap();
    let later = scene.commit("later").recv().unwrap();

    assert!(matches!(failed, Err(StoreError::Full { .. })), "{failed:?}");
    assert_eq!(later, Err(StoreError::Stale));
    assert_eq!(scene.stored().as_deref(), Some(&b"kept"[..]));
}

#[test]
fn a_failure_that_ends_no_generation_stops_only_itself() {
    let scene = scene();
    let once = |text: &'static str| {
        let batch = state(scene.generation, text.as_bytes());
        wait(greenroom::store::commit(scene.place.as_ref(), batch))
    };
    scene.mishaps.fail_next_commit();

    assert!(once("lost").is_err());
    assert_eq!(once("kept"), Ok(()));
}

#[test]
fn a_crash_before_a_commit_loses_it_and_all_behind_it_without_a_word() {
    let scene = scene();
    scene.commit("kept").recv().unwrap().unwrap();
    let crashes = scene.count_crashes(CrashPoint::BeforeCommit);

    let (lost, later) = (scene.commit("lost"), scene.commit("later"));

    assert_eq!(crashes.load(Ordering::SeqCst), 1);
    assert!(lost.try_recv().is_err() && later.try_recv().is_err());
    assert_eq!(scene.stored().as_deref(), Some(&b"kept"[..]));
    scene.mishaps.bury();
    assert_eq!(lost.recv().unwrap(), Err(StoreError::Closed));
    assert_eq!(later.recv().unwrap(), Err(StoreError::Closed));
}

#[test]
fn a_crash_after_a_commit_keeps_it_without_a_word() {
    let scene = scene();
    let crashes = scene.count_crashes(CrashPoint::AfterCommit);

    let kept = scene.commit("kept");
    let lost = scene.commit("lost");

    assert_eq!(crashes.load(Ordering::SeqCst), 1);
    assert!(kept.try_recv().is_err() && lost.try_recv().is_err());
    assert_eq!(scene.stored().as_deref(), Some(&b"kept"[..]));
    scene.mishaps.bury();
    assert_eq!(kept.recv().unwrap(), Err(StoreError::Closed));
}

#[test]
fn kept_memory_is_there_for_the_next_store_which_is_another_epoch() {
    let memory = StoreLocation::Kept(KeptMemory::new().unwrap());
    let first = SharedStore::open(memory.clone(), options()).unwrap();
    let number = make(&first, 1).number;
    let generation = first.open_generation(number);
    save(&first, number, generation, "kept").unwrap();
    wait(first.close());

    let second = SharedStore::open(memory, options()).unwrap();

    assert_eq!(stored(&second, number).as_deref(), Some(&b"kept"[..]));
    assert_eq!(second.epoch(), first.epoch() + 1);
    assert!(second.open_generation(number) > generation);
}
