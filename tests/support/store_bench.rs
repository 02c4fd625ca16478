//! A store that meets faults, for the tests of group commit.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use greenroom::ids::Generation;
use greenroom::store::faults::Faults;
use greenroom::store::{
    ActorNumber, SharedStore, StoreError, StoreLimits, StoreLocation, StoreObserver,
};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};

use crate::support::*;

/// A store in a folder, the faults that it will meet, and a few live actors.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub store: Arc<SharedStore>,
    pub faults: Faults,
    pub told: Arc<Told>,
    pub actors: Vec<(ActorNumber, Generation)>,
}

/// What the observer was told, in order.
#[derive(Default)]
pub struct Told {
    pub words: Mutex<Vec<String>>,
    pub revoked: Mutex<Vec<(ActorNumber, Generation)>>,
    /// Called when the store has stopped and is not reopened yet.
    pub on_stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl StoreObserver for Told {
    fn failed_stop(&self, revoked: &[(ActorNumber, Generation)]) {
        self.words.lock().push("stopped".into());
        self.revoked.lock().extend(revoked);
        let on_stop = self.on_stop.lock().take();
        if let Some(on_stop) = on_stop {
            on_stop();
        }
    }

    fn reopened(&self) {
        self.words.lock().push("reopened".into());
    }

    fn down(&self, error: &StoreError) {
        self.words.lock().push(format!("down: {error}"));
    }
}

impl Bench {
    pub fn new(actors: u64) -> Self {
        Self::with_limits(actors, StoreLimits::default())
    }

    pub fn with_limits(actors: u64, limits: StoreLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let told = Arc::new(Told::default());
        let mut options = keeping_large_actors();
        options.faults = faults.clone();
        options.observer = Some(told.clone());
        options.limits = limits;
        let store = SharedStore::open(StoreLocation::Folder(dir.path().into()), options).unwrap();
        let actors = (0..actors).map(|n| {
            let number = make(&store, n).number;
            let generation = store.open_generation(number);
            save(&store, number, generation, "first").unwrap();
            (number, generation)
        });
        let actors = actors.collect();
        Self { dir, store, faults, told, actors }
    }

    /// Takes a state of the n-th actor.
    pub fn send(&self, n: usize, bytes: impl Into<Bytes>) -> Pending {
        let (number, generation) = self.actors[n];
        send(&self.store, number, state(generation, bytes))
    }

    pub fn save(&self, n: usize, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        self.send(n, bytes).wait()
    }

    pub fn stored(&self, n: usize) -> Bytes {
        stored(&self.store, self.actors[n].0).unwrap()
    }

    /// One group of the given states, one for each of the first actors.
    pub fn group(&self, states: &[&'static str]) -> Vec<Result<(), StoreError>> {
        let held = self.store.hold_writer();
        let sent: Vec<_> = (0..).zip(states).map(|(n, &state)| self.send(n, state)).collect();
        drop(held);
        sent.into_iter().map(Pending::wait).collect()
    }

    /// What a crash at this moment would leave of the n-th actor.
    pub fn after_a_crash(&self, n: usize) -> Option<Bytes> {
        state_in_copy(self.dir.path(), self.actors[n].0)
    }
}

/// Copies database and log and lets a fresh connection recover them. Another
/// process copies: closing a descriptor of the file would drop SQLite's locks.
pub fn state_in_copy(folder: &Path, number: ActorNumber) -> Option<Bytes> {
    let copy = tempfile::tempdir().unwrap();
    for file in ["actors.db", "actors.db-wal"] {
        if folder.join(file).exists() {
            let copied = Command::new("cp").arg(folder.join(file)).arg(copy.path()).status();
            assert!(copied.unwrap().success());
        }
    }
    let sqlite = Connection::open(copy.path().join("actors.db")).unwrap();
    let sound: String = sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    sqlite
        .query_row("SELECT state FROM _gr_state WHERE num = ?1", [number.0], |row| {
            row.get::<_, Vec<u8>>(0)
        })
        .optional()
        .unwrap()
        .map(Bytes::from)
}

/// Whether it is that error.
pub fn is_unknown(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::OutcomeUnknown { .. }))
}

/// Whether it is that error.
pub fn is_full(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::Full { .. }))
}
