//! A store whose actors may have files of their own.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use greenroom::ids::Generation;
use greenroom::store::{
    ActorFile, ActorNumber, ActorRecord, ActorStoreRef, Faults, FileFaults, FileLimits, Place,
    RowOp, SharedStore, StoreError, StoreLocation, StoreOptions, Turn, WriteBatch,
};
use greenroom::time::Clock;
use tempfile::TempDir;

use crate::support::{PATIENCE, Pending, id, make, options, send, state, wait};

/// A store in a folder and a few live actors.
pub struct Files {
    /// Where it is; the folder goes with `owned`.
    pub path: PathBuf,
    owned: Option<TempDir>,
    pub store: Arc<SharedStore>,
    pub faults: FileFaults,
    pub actors: Vec<(ActorNumber, Generation)>,
}

/// Few threads, more files than any test has but those that ask for less.
pub fn limits() -> FileLimits {
    FileLimits { open_files: 64, pool_threads: 2, sync_threads: 2, ..FileLimits::default() }
}

impl Files {
    pub fn new(actors: u64) -> Self {
        Self::with_limits(actors, limits())
    }

    pub fn with_limits(actors: u64, limits: FileLimits) -> Self {
        Self::open(tempfile::tempdir().unwrap(), actors, limits)
    }

    /// Opens the store of a folder; makes the actors that are missing, and begins a
    /// generation of each.
    pub fn open(dir: TempDir, actors: u64, limits: FileLimits) -> Self {
        let path = dir.path().to_owned();
        Self { owned: Some(dir), ..Self::open_at(path, actors, limits) }
    }

    /// The store of a folder that somebody else deletes.
    pub fn open_at(path: PathBuf, actors: u64, limits: FileLimits) -> Self {
        Self::open_with(path, actors, limits, Faults::default())
    }

    /// A store whose shared database meets these faults.
    pub fn with_faults(actors: u64, faults: Faults) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        Self { owned: Some(dir), ..Self::open_with(path, actors, limits(), faults) }
    }

    /// A store with one actor, on this clock.
    pub fn on_clock(clock: Clock, limits: FileLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let mut options = options();
        options.clock = clock;
        options.files = limits;
        Self { owned: Some(dir), ..Self::open_by(path, 1, options) }
    }

    fn open_with(path: PathBuf, actors: u64, limits: FileLimits, store_faults: Faults) -> Self {
        let mut options = options();
        options.files = limits;
        options.faults = store_faults;
        Self::open_by(path, actors, options)
    }

    fn open_by(path: PathBuf, actors: u64, mut options: StoreOptions) -> Self {
        let faults = FileFaults::default();
        options.file_faults = faults.clone();
        let store = SharedStore::open(StoreLocation::Folder(path.clone()), options).unwrap();
        let actors = (0..actors).map(|n| {
            let found = wait(store.find_by_id(id(n))).unwrap();
            let number = found.unwrap_or_else(|| make(&store, n)).number;
            (number, store.open_generation(number))
        });
        let actors = actors.collect();
        Self { path, owned: None, store, faults, actors }
    }

    /// Closes the store and keeps the folder.
    pub fn close(self) -> TempDir {
        wait(self.store.close());
        self.owned.expect("the folder is this test's own")
    }

    /// Closes the store; the folder is somebody else's.
    pub fn close_here(self) -> PathBuf {
        wait(self.store.close());
        self.path
    }

    pub fn reopen(self) -> Self {
        let actors = self.actors.len() as u64;
        Self::open(self.close(), actors, limits())
    }

    pub fn actor(&self, n: usize) -> ActorStoreRef {
        self.store.actor(self.actors[n].0)
    }

    pub fn file(&self, n: usize) -> ActorFile {
        self.actor(n).file().expect("it is promoted")
    }

    pub fn promote(&self, n: usize) -> Result<(), StoreError> {
        let (number, generation) = self.actors[n];
        wait(self.store.promote(number, generation)).map(drop)
    }

    pub fn send(&self, n: usize, bytes: impl Into<Bytes>) -> Pending {
        let (number, generation) = self.actors[n];
        send(&self.store, number, state(generation, bytes))
    }

    pub fn save(&self, n: usize, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        self.send(n, bytes).wait()
    }

    pub fn batch(&self, n: usize, ops: Vec<RowOp>) -> WriteBatch {
        WriteBatch { generation: self.actors[n].1, ops, alarm: None, fails_generation: false }
    }

    pub fn send_ops(&self, n: usize, ops: Vec<RowOp>) -> Pending {
        send(&self.store, self.actors[n].0, self.batch(n, ops))
    }

    pub fn write(&self, n: usize, ops: Vec<RowOp>) -> Result<(), StoreError> {
        self.send_ops(n, ops).wait()
    }

    /// Puts a state and an alarm.
    pub fn arm(&self, n: usize, alarm: Option<i64>) -> Result<(), StoreError> {
        let batch = WriteBatch { alarm: Some(alarm), ..self.batch(n, Vec::new()) };
        send(&self.store, self.actors[n].0, batch).wait()
    }

    pub fn put(&self, n: usize, key: &str, value: &str) -> Result<(), StoreError> {
        let (key, value) = (Bytes::from(key.to_owned()), Bytes::from(value.to_owned()));
        self.write(n, vec![RowOp::PutKv { key, value }])
    }

    pub fn get(&self, n: usize, key: &str) -> Option<Bytes> {
        wait(self.actor(n).kv_get(vec![Bytes::from(key.to_owned())])).unwrap().remove(0)
    }

    pub fn load(&self, n: usize) -> ActorRecord {
        wait(self.actor(n).load()).unwrap()
    }

    pub fn state(&self, n: usize) -> Option<Bytes> {
        self.load(n).state
    }

    pub fn turn(&self, n: usize) -> Turn {
        self.file(n).turn(self.actors[n].1).unwrap()
    }

    pub fn commit_turn(&self, n: usize, turn: Turn, bytes: &'static str) -> Ending {
        self.commit_turn_of(self.actors[n].1, turn, bytes)
    }

    pub fn commit_turn_of(
        &self,
        generation: Generation,
        turn: Turn,
        bytes: &'static str,
    ) -> Ending {
        end_turn(turn, state(generation, bytes))
    }

    pub fn place(&self, n: usize) -> Place {
        wait(self.store.find_by_id(id(n as u64))).unwrap().unwrap().place
    }

    /// The names of the actor's files without its id, sorted.
    pub fn files_of(&self, n: usize) -> Vec<String> {
        let prefix = format!("{}.", id(n as u64));
        let Ok(entries) = std::fs::read_dir(self.path.join("actors")) else { return Vec::new() };
        let mut names: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_prefix(&prefix).map(str::to_owned)
            })
            .collect();
        names.sort();
        names
    }

    /// Lets the threads of the store do what they can: another actor's batch passes.
    pub fn others_run(&self) {
        let other = make(&self.store, 1_000_000 + self.store.stats().commits).number;
        let generation = self.store.open_generation(other);
        wait(self.store.promote(other, generation)).unwrap();
        send(&self.store, other, state(generation, "x")).wait().unwrap();
    }

    /// The alarm of an actor as the directory has it.
    pub fn alarm(&self, n: usize) -> Option<i64> {
        let alarms = wait(self.store.earliest_alarms(u32::MAX)).unwrap();
        alarms.into_iter().find(|(number, _)| *number == self.actors[n].0).map(|(_, at)| at)
    }
}

/// The answer to the end of a turn.
pub struct Ending(mpsc::Receiver<Result<(), StoreError>>);

pub fn end_turn(turn: Turn, batch: WriteBatch) -> Ending {
    let (tell, told) = mpsc::channel();
    turn.commit(batch, Box::new(move |result| drop(tell.send(result))));
    Ending(told)
}

impl Ending {
    /// An answer, and who gives it.
    pub fn new() -> (Self, impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        let (tell, told) = mpsc::channel();
        (Self(told), move |result| drop(tell.send(result)))
    }

    pub fn wait(self) -> Result<(), StoreError> {
        self.0.recv_timeout(PATIENCE).expect("every turn is answered")
    }

    pub fn is_unanswered(&self) -> bool {
        self.0.try_recv().is_err()
    }
}
