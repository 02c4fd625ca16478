//! What actor files cost: durable commits with so many in flight over so many files,
//! promotions, and reopening. The folder is on the disk of the temporary directory;
//! compare runs of one machine only.

#![allow(clippy::unwrap_used, reason = "a failure ends the run")]

use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use greenroom::ids::{ActorKey, ActorName, Generation, IdSource};
use greenroom::store::{
    ActorNumber, ActorStoreRef, FileLimits, NewActor, RowOp, SharedStore, StoreLocation,
    StoreOptions, WriteBatch,
};
use greenroom::time::Clock;

const FILES: usize = 100;
const FOR: Duration = Duration::from_secs(3);
const PROMOTIONS: usize = 500;

fn main() {
    // Under a test run the benchmarks are only built.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let clock = Clock::system();
    for in_flight in [1, 8, 64, 256] {
        commits(&clock, FILES, in_flight);
    }
    commits(&clock, 1, 64);
    promotions(&clock, 0);
    promotions(&clock, 50);
    reopening(&clock);
}

struct Setup {
    _dir: tempfile::TempDir,
    store: Arc<SharedStore>,
    ids: IdSource,
}

impl Setup {
    fn new(files: FileLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = StoreLocation::Folder(dir.path().to_owned());
        let options = StoreOptions { files, ..StoreOptions::new(Clock::system()) };
        let store = SharedStore::open(location, options).unwrap();
        Self { _dir: dir, store, ids: IdSource::seeded(1) }
    }

    fn make(&self, n: usize) -> (ActorNumber, Generation) {
        let actor = NewActor {
            id: self.ids.actor_id(),
            name: ActorName::new("bench").unwrap(),
            key: ActorKey::of([n.to_string()]).unwrap(),
            input: None,
            created_at_ms: 0,
        };
        let number = wait(self.store.create(actor)).unwrap().row.number;
        (number, self.store.open_generation(number))
    }

    fn promoted(&self, count: usize) -> Vec<(ActorStoreRef, Generation)> {
        (0..count)
            .map(|n| {
                let (number, generation) = self.make(n);
                wait(self.store.promote(number, generation)).unwrap();
                (self.store.actor(number), generation)
            })
            .collect()
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn save(generation: Generation, salt: u8) -> WriteBatch {
    let ops = vec![RowOp::PutState(Bytes::from(vec![salt; 100]))];
    WriteBatch { generation, ops, alarm: None, fails_generation: false }
}

/// States of 100 bytes, so many in flight at any moment.
fn commits(clock: &Clock, files: usize, in_flight: usize) {
    let setup = Setup::new(FileLimits::default());
    let actors = setup.promoted(files);
    let (tell, told) = mpsc::channel();
    let mut took = Vec::new();
    let start = clock.now();
    let mut next = 0;
    let mut send = || {
        let (actor, generation) = &actors[next % actors.len()];
        next += 1;
        let (began, tell) = (clock.now(), tell.clone());
        actor.commit(
            save(*generation, u8::try_from(next % 251).unwrap()),
            Box::new(move |result| tell.send(result.map(|()| began)).unwrap()),
        );
    };
    (0..in_flight).for_each(|_| send());
    while clock.now().since(start) < FOR {
        let began = told.recv().unwrap().unwrap();
        took.push(clock.now().since(began));
        send();
    }
    let per_second = took.len() as u128 * 1_000 / clock.now().since(start).as_millis();
    for _ in 0..in_flight {
        told.recv().unwrap().unwrap();
    }
    report(&format!("commits, {in_flight} in flight over {files} files"), took);
    println!("    {per_second} per second");
}

/// Actors with so many keys that get a file, one after the other.
fn promotions(clock: &Clock, keys: usize) {
    let setup = Setup::new(FileLimits::default());
    let took = (0..PROMOTIONS).map(|n| {
        let (number, generation) = setup.make(n);
        let ops = (0..keys).map(|key| RowOp::PutKv {
            key: Bytes::from(format!("key {key}")),
            value: Bytes::from_static(&[7; 100]),
        });
        let batch =
            WriteBatch { generation, ops: ops.collect(), alarm: None, fails_generation: false };
        let (tell, told) = mpsc::channel();
        setup.store.actor(number).commit(batch, Box::new(move |result| tell.send(result).unwrap()));
        told.recv().unwrap().unwrap();
        let began = clock.now();
        wait(setup.store.promote(number, generation)).unwrap();
        clock.now().since(began)
    });
    let took = took.collect();
    report(&format!("promotion with {keys} keys"), took);
}

/// Reading an actor whose file is closed, where each file that opens closes another.
fn reopening(clock: &Clock) {
    let setup = Setup::new(FileLimits { open_files: 10, ..FileLimits::default() });
    let actors = setup.promoted(FILES);
    let took = actors.iter().cycle().take(10 * FILES).map(|(actor, _)| {
        let began = clock.now();
        wait(actor.load()).unwrap();
        clock.now().since(began)
    });
    let took = took.collect();
    report("reading a closed file", took);
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 1_000].as_secs_f64() * 1_000.0;
    println!(
        "{what}: p50 {:.2} p99 {:.2} p99.9 {:.2} max {:.2} ms",
        at(500),
        at(990),
        at(999),
        at(1_000)
    );
}
