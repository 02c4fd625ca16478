//! What the tests of the store share.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use greenroom::ids::{ActorId, ActorKey, ActorName, Generation, IdSource};
use greenroom::store::{
    ActorNumber, ActorRow, ListFilter, NewActor, RowOp, SharedStore, StoreError, StoreLocation,
    StoreOptions, WriteBatch,
};
use greenroom::time::Clock;

/// Far longer than anything takes; reaching it fails the test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The usual options on the system's clock.
pub fn options() -> StoreOptions {
    StoreOptions::new(Clock::system())
}

/// The usual options of a store that keeps every actor, however large its batches are.
pub fn keeping_large_actors() -> StoreOptions {
    let mut options = options();
    options.files.shared_batch_bytes = usize::MAX;
    options
}

/// Opens the store of a folder.
pub fn open(path: &Path) -> Arc<SharedStore> {
    try_open(path).expect("the folder is sound and free")
}

/// Opens the store of a folder, if it can be.
pub fn try_open(path: &Path) -> Result<Arc<SharedStore>, StoreError> {
    open_with(path, options())
}

/// Opens the store of a folder with these options.
pub fn open_with(path: &Path, options: StoreOptions) -> Result<Arc<SharedStore>, StoreError> {
    SharedStore::open(StoreLocation::Folder(path.to_owned()), options)
}

/// Opens a store in memory.
pub fn open_memory() -> Arc<SharedStore> {
    SharedStore::open(StoreLocation::Memory, options()).expect("memory is always there")
}

/// Waits for a future on this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime without any driver").block_on(future)
}

pub fn name(name: &str) -> ActorName {
    ActorName::new(name).unwrap()
}

pub fn key(parts: &[&str]) -> ActorKey {
    ActorKey::of(parts.iter().copied()).unwrap()
}

/// The n-th id.
pub fn id(n: u64) -> ActorId {
    IdSource::seeded(n).actor_id()
}

/// An actor of the type `counter` with the n-th id.
pub fn new_actor(n: u64, parts: &[&str]) -> NewActor {
    NewActor {
        id: id(n),
        name: name("counter"),
        key: key(parts),
        input: Some(Bytes::from_static(b"input")),
        created_at_ms: 1_700_000_000_000,
    }
}

/// Makes an actor of the type `counter` whose id and key follow from `n`.
pub fn make(store: &SharedStore, n: u64) -> ActorRow {
    let made = wait(store.create(new_actor(n, &[&n.to_string()]))).unwrap();
    assert!(made.created);
    made.row
}

/// Every actor.
pub fn all() -> ListFilter {
    ListFilter { name: None, key_prefix: ActorKey::default(), after: None, limit: u32::MAX }
}

/// A batch that puts a state.
pub fn state(generation: Generation, state: impl Into<Bytes>) -> WriteBatch {
    WriteBatch {
        generation,
        ops: vec![RowOp::PutState(state.into())],
        alarm: None,
        fails_generation: false,
    }
}

/// Puts a state and waits until it is durable.
pub fn save(
    store: &Arc<SharedStore>,
    number: ActorNumber,
    generation: Generation,
    bytes: impl Into<Bytes>,
) -> Result<(), StoreError> {
    send(store, number, state(generation, bytes)).wait()
}

/// The stored state.
pub fn stored(store: &Arc<SharedStore>, number: ActorNumber) -> Option<Bytes> {
    wait(store.actor(number).load()).unwrap().state
}

/// The answer to a batch that is on its way.
pub struct Pending(mpsc::Receiver<Result<(), StoreError>>);

/// Takes a batch without waiting for it.
pub fn send(store: &Arc<SharedStore>, number: ActorNumber, batch: WriteBatch) -> Pending {
    let (tell, told) = mpsc::channel();
    store.actor(number).commit(batch, Box::new(move |result| drop(tell.send(result))));
    Pending(told)
}

impl Pending {
    /// The answer, which must come.
    pub fn wait(self) -> Result<(), StoreError> {
        self.0.recv_timeout(PATIENCE).expect("every batch is answered")
    }

    /// Whether no answer has come.
    pub fn is_unanswered(&self) -> bool {
        self.0.try_recv().is_err()
    }
}

/// Asks until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::system();
    let start = clock.now();
    while !is_so() {
        assert!(clock.now().since(start) < PATIENCE, "never came: {what}");
        std::thread::yield_now();
    }
}
