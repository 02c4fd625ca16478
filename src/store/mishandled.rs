//! One generation's place, with mishaps: what it commits meets what a test has planned.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::mishaps::Ordeal;
use super::{
    ActorFile, ActorRecord, ActorStore, ActorStoreRef, CommitDone, DeadLetter, HistoryRow, KvQuery,
    MessageId, SqlTransaction, StoreError, WriteBatch,
};
use crate::ids::Generation;

/// This place, whose commits go through an ordeal.
pub(super) fn mishandled(inner: ActorStoreRef, ordeal: Ordeal) -> ActorStoreRef {
    Arc::new(Mishandled { inner, ordeal })
}

struct Mishandled {
    inner: ActorStoreRef,
    ordeal: Ordeal,
}

impl ActorStore for Mishandled {
    fn commit(&self, batch: WriteBatch, done: CommitDone) {
        self.ordeal.meet(batch.fails_generation, done, |done| self.inner.commit(batch, done));
    }

    fn commit_with(
        &self,
        statements: SqlTransaction,
        batch: WriteBatch,
        done: CommitDone,
    ) -> BoxFuture<'static, ()> {
        let (fails_generation, given_up) = (batch.fails_generation, statements.clone());
        let mut committing = None;
        self.ordeal.meet(fails_generation, done, |done| {
            committing = Some(self.inner.commit_with(statements, batch, done));
        });
        committing.unwrap_or_else(|| {
            drop(given_up.roll_back());
            futures::future::ready(()).boxed()
        })
    }

    fn own_file(
        &self,
        generation: Generation,
    ) -> BoxFuture<'static, Result<ActorFile, StoreError>> {
        let (moved, ordeal) = (self.inner.own_file(generation), self.ordeal.clone());
        async move { moved.await.map(|file| file.through(ordeal)) }.boxed()
    }

    fn own_file_now(&self, generation: Generation) -> Result<ActorFile, StoreError> {
        let moved = self.inner.own_file_now(generation);
        moved.map(|file| file.through(self.ordeal.clone()))
    }

    fn rest(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        self.inner.rest()
    }

    fn secret(&self) -> Option<[u8; 32]> {
        self.inner.secret()
    }

    fn file(&self) -> Option<ActorFile> {
        self.inner.file().map(|file| file.through(self.ordeal.clone()))
    }

    fn load(&self) -> BoxFuture<'static, Result<ActorRecord, StoreError>> {
        self.inner.load()
    }

    fn kv_get(
        &self,
        keys: Vec<Bytes>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.inner.kv_get(keys)
    }

    fn kv_list(
        &self,
        query: KvQuery,
    ) -> BoxFuture<'static, Result<Vec<(Bytes, Bytes)>, StoreError>> {
        self.inner.kv_list(query)
    }

    fn message_bodies(
        &self,
        ids: Vec<MessageId>,
    ) -> BoxFuture<'static, Result<Vec<Option<Bytes>>, StoreError>> {
        self.inner.message_bodies(ids)
    }

    fn dead_letters(
        &self,
        after: MessageId,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<DeadLetter>, StoreError>> {
        self.inner.dead_letters(after, limit)
    }

    fn schedule_history(
        &self,
        schedule_id: String,
        limit: u32,
    ) -> BoxFuture<'static, Result<Vec<HistoryRow>, StoreError>> {
        self.inner.schedule_history(schedule_id, limit)
    }
}
