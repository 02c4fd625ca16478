//! What the shared store costs: durable saves with so many in flight, loads and
//! creations. The folder is on the disk of the temporary directory; compare runs
//! of one machine only.

#![allow(clippy::unwrap_used, reason = "a failure ends the run")]

use std::sync::Arc;
use std::sync::mpsc;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use greenroom::ids::{ActorKey, ActorName, Generation, IdSource};
use greenroom::store::{
    ActorStoreRef, NewActor, RowOp, SharedStore, StoreLocation, StoreOptions, WriteBatch,
};
use greenroom::time::Clock;

/// Actors that are present; the busy ones are scattered among them.
const PRESENT: usize = 10_000;
const BUSY: usize = 100;

fn main() {
    divan::main();
}

struct Setup {
    _dir: tempfile::TempDir,
    store: Arc<SharedStore>,
    busy: Vec<(ActorStoreRef, Generation)>,
    ids: IdSource,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = StoreLocation::Folder(dir.path().to_owned());
        let store = SharedStore::open(location, StoreOptions::new(Clock::system())).unwrap();
        let ids = IdSource::seeded(1);
        let made: Vec<_> = (0..PRESENT).map(|n| store.create(actor(&ids, n))).collect();
        let numbers: Vec<_> = made.into_iter().map(|made| wait(made).unwrap().row.number).collect();
        let busy = numbers
            .into_iter()
            .step_by(PRESENT / BUSY)
            .map(|number| (store.actor(number), store.open_generation(number)))
            .collect();
        Self { _dir: dir, store, busy, ids }
    }

    /// Saves so many states of so many bytes at once and waits for all of them.
    fn save(&self, states: usize, bytes: usize, salt: u8) {
        let (tell, told) = mpsc::channel();
        for (actor, generation) in self.busy.iter().cycle().take(states) {
            let ops = vec![RowOp::PutState(Bytes::from(vec![salt; bytes]))];
            let batch =
                WriteBatch { generation: *generation, ops, alarm: None, fails_generation: false };
            let tell = tell.clone();
            actor.commit(batch, Box::new(move |result| tell.send(result).unwrap()));
        }
        drop(tell);
        told.iter().for_each(Result::unwrap);
    }
}

fn actor(ids: &IdSource, n: usize) -> NewActor {
    NewActor {
        id: ids.actor_id(),
        name: ActorName::new("bench").unwrap(),
        key: ActorKey::of([n.to_string()]).unwrap(),
        input: None,
        created_at_ms: 0,
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// Durable states of 100 bytes, so many in flight.
#[divan::bench(args = [1, 8, 64, 256], max_time = 3)]
fn save(bencher: Bencher<'_, '_>, in_flight: usize) {
    let setup = Setup::new();
    let mut salt = 0u8;
    bencher.counter(ItemsCount::new(in_flight)).bench_local(|| {
        salt = salt.wrapping_add(1);
        setup.save(in_flight, 100, salt);
    });
}

/// One durable state of so many bytes.
#[divan::bench(args = [100, 10_000, 1_000_000], max_time = 3)]
fn save_of_size(bencher: Bencher<'_, '_>, bytes: usize) {
    let setup = Setup::new();
    let mut salt = 0u8;
    bencher.bench_local(|| {
        salt = salt.wrapping_add(1);
        setup.save(1, bytes, salt);
    });
}

/// What a start reads.
#[divan::bench(max_time = 3)]
fn load(bencher: Bencher<'_, '_>) {
    let setup = Setup::new();
    setup.save(BUSY, 1_000, 1);
    let mut next = setup.busy.iter().cycle();
    bencher.bench_local(|| wait(next.next().unwrap().0.load()).unwrap());
}

/// A new actor, one at a time.
#[divan::bench(max_time = 3)]
fn create(bencher: Bencher<'_, '_>) {
    let setup = Setup::new();
    let mut n = PRESENT;
    bencher.bench_local(|| {
        n += 1;
        wait(setup.store.create(actor(&setup.ids, n))).unwrap()
    });
}
