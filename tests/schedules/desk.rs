//! An actor's schedules in a store in memory.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::schedule::{Changed, Dispatch, OneShot, Retry, Schedules};
use greenroom::ids::{ActorKey, ActorName, Generation, IdSource};
use greenroom::store::{
    ActorNumber, ActorStoreRef, NewActor, RowOp, SharedStore, StoreLocation, StoreOptions,
    WriteBatch, commit,
};
use greenroom::time::Clock;

/// When these tests begin.
pub const T: i64 = 1_700_000_000_000;

pub struct Desk {
    pub now: i64,
    pub schedules: Schedules,
    pub ids: IdSource,
    pub store: Arc<SharedStore>,
    pub actor: ActorStoreRef,
    pub number: ActorNumber,
    generation: Generation,
}

impl Desk {
    pub async fn new() -> Self {
        let options = StoreOptions::new(Clock::manual(T).clock());
        let store = SharedStore::open(StoreLocation::Memory, options).unwrap();
        let ids = IdSource::seeded(1);
        let new = NewActor {
            id: ids.actor_id(),
            name: ActorName::new("clock").unwrap(),
            key: ActorKey::of(["a"]).unwrap(),
            input: None,
            created_at_ms: T,
        };
        let number = store.create(new).await.unwrap().row.number;
        let actor = store.actor(number);
        let generation = store.open_generation(number);
        let stored = actor.load().await.unwrap().schedules;
        let (schedules, ops) = Schedules::load(stored, 1_000, T);
        assert_eq!(ops, []);
        Self { now: T, schedules, ids, store, actor, number, generation }
    }

    /// The generation ends without a word, and another one starts.
    pub async fn crash(&mut self) {
        self.generation = self.store.open_generation(self.number);
        let stored = self.actor.load().await.unwrap().schedules;
        let loaded = Schedules::load(stored, 1_000, self.now);
        self.schedules = self.write(loaded).await;
    }

    pub async fn write<A>(&self, (answer, ops): Changed<A>) -> A {
        self.write_ops(ops).await;
        answer
    }

    pub async fn write_ops(&self, ops: Vec<RowOp>) {
        if ops.is_empty() {
            return;
        }
        let generation = self.generation;
        let batch = WriteBatch { generation, ops, alarm: None, fails_generation: true };
        commit(&*self.actor, batch).await.unwrap();
    }

    pub async fn take(&mut self) -> Vec<Dispatch> {
        let taken = self.schedules.take_due(self.now, &self.ids);
        self.write(taken).await
    }

    pub async fn at(&mut self, trigger_at: i64, retry: Option<Retry>) -> String {
        let args = Bytes::from_static(b"args");
        let shot = OneShot { trigger_at, action: "ring".to_owned(), args, retry, key: None };
        let made = self.schedules.at(shot, &self.ids).unwrap();
        self.write(made).await
    }
}
