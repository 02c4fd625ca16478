//! An author's keys and values: bytes to bytes, in the order of the bytes of the keys.
//!
//! # Invariants
//!
//! 1. A call begins when it is made, not when its future is polled: a later call sees
//!    what an earlier one wrote, awaited or not.
//! 2. A call writes everything or nothing, together with whatever else its turn
//!    changes; its future resolves when that is durable.
//! 3. Limits are checked for all entries before any is written, on writing only.
//! 4. Within a transaction a call changes what the transaction will change, resolves at
//!    once, and is seen by the transaction alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::actor::Actor;
use super::actor::rows::{Readable, Rows};
use super::behavior::Reply;
use super::context::ActorContext;
use super::transaction::StateTransaction;
use crate::error::{Coded, ErrorCode, Result};
use crate::store::{KeyRange, KvQuery, RowOp};

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 2_048;
/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 131_072;

/// What is refused (storage.md 2.2).
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum KvError {
    /// A key is too long.
    #[error("a key has {size} bytes, the limit is {MAX_KEY_BYTES}")]
    KeyTooLarge {
        /// Its length.
        size: usize,
    },
    /// A value is too long.
    #[error("a value has {size} bytes, the limit is {MAX_VALUE_BYTES}")]
    ValueTooLarge {
        /// Its length.
        size: usize,
    },
}

impl Coded for KvError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::KeyTooLarge { .. } => ErrorCode::new("kv", "key_too_large"),
            Self::ValueTooLarge { .. } => ErrorCode::new("kv", "value_too_large"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        Some(match self {
            Self::KeyTooLarge { size } => json!({ "size": size, "limit": MAX_KEY_BYTES }),
            Self::ValueTooLarge { size } => json!({ "size": size, "limit": MAX_VALUE_BYTES }),
        })
    }

    fn public_status(&self) -> Option<u16> {
        Some(400)
    }
}

/// Keys and values, in the order of the keys.
pub type Entries = Vec<(Bytes, Bytes)>;

/// A handle on the keys and values of one generation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ActorKv(Arc<Actor>, Option<StateTransaction>);

impl ActorContext {
    /// The author's keys and values.
    pub fn kv(&self) -> ActorKv {
        ActorKv(Arc::clone(&self.0), None)
    }
}

impl ActorKv {
    /// A handle through which a transaction changes them.
    pub(super) fn within(actor: Arc<Actor>, transaction: StateTransaction) -> Self {
        Self(actor, Some(transaction))
    }

    /// The values of `keys`, in their order, `None` for those that are not there.
    ///
    /// # Errors
    ///
    /// `storage/*`, or why the generation ended.
    pub fn get(&self, keys: Vec<Bytes>) -> BoxFuture<'static, Result<Vec<Option<Bytes>>>> {
        let changes = match self.changes() {
            Ok(changes) => changes,
            Err(error) => return futures::future::ready(Err(error)).boxed(),
        };
        self.read(move |rows| match rows {
            Readable::Store(store) => async move {
                let mut found = store.kv_get(keys.clone()).await?;
                for (key, value) in keys.iter().zip(&mut found) {
                    overlay(&changes, key, value);
                }
                Ok(found)
            }
            .boxed(),
            Readable::Unstored(ops) => {
                let entries = replay(&ops);
                let found = keys.iter().map(|key| entries.get(key).cloned()).collect();
                futures::future::ready(Ok(found)).boxed()
            }
        })
    }

    /// The keys of a range and their values.
    ///
    /// # Errors
    ///
    /// `storage/*`, or why the generation ended.
    pub fn list(&self, query: KvQuery) -> BoxFuture<'static, Result<Entries>> {
        let changes = match self.changes() {
            Ok(changes) => changes,
            Err(error) => return futures::future::ready(Err(error)).boxed(),
        };
        self.read(move |rows| match rows {
            Readable::Store(store) if changes.is_empty() => {
                store.kv_list(query).map(|found| Ok(found?)).boxed()
            }
            Readable::Store(store) => async move {
                // What the transaction deletes makes room below the limit.
                let all = KvQuery { range: query.range.clone(), reverse: false, limit: None };
                let mut entries = store.kv_list(all).await?.into_iter().collect();
                apply(&changes, &mut entries);
                Ok(select(entries, &query))
            }
            .boxed(),
            Readable::Unstored(ops) => {
                futures::future::ready(Ok(select(replay(&ops), &query))).boxed()
            }
        })
    }

    /// Sets values; of a key that comes twice the last one counts.
    ///
    /// # Errors
    ///
    /// [`KvError`] for an entry that is too long: then none is set. `actor/stopping` or
    /// `storage/*` when they could not be stored.
    pub fn put(&self, entries: Entries) -> BoxFuture<'static, Result<()>> {
        for (key, value) in &entries {
            if let Err(error) = check(key, value) {
                return futures::future::ready(Err(error.into())).boxed();
            }
        }
        let puts = entries.into_iter().map(|(key, value)| RowOp::PutKv { key, value });
        self.write(puts.collect())
    }

    /// Deletes keys; those that are not there are none.
    ///
    /// # Errors
    ///
    /// `actor/stopping` or `storage/*` when that could not be stored.
    pub fn delete(&self, keys: Vec<Bytes>) -> BoxFuture<'static, Result<()>> {
        self.write(keys.into_iter().map(RowOp::DeleteKv).collect())
    }

    /// Deletes all keys of a range.
    ///
    /// # Errors
    ///
    /// `actor/stopping` or `storage/*` when that could not be stored.
    pub fn delete_range(&self, range: KeyRange) -> BoxFuture<'static, Result<()>> {
        self.write(vec![RowOp::DeleteKvRange(range)])
    }

    fn write(&self, ops: Vec<RowOp>) -> BoxFuture<'static, Result<()>> {
        if ops.is_empty() {
            return futures::future::ready(Ok(())).boxed();
        }
        if let Some(transaction) = &self.1 {
            return futures::future::ready(transaction.write_kv(ops)).boxed();
        }
        let (reply, outcome) = Reply::channel();
        self.0.write_rows(Rows { ops, in_memory: false }, reply);
        outcome.boxed()
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(Readable) -> BoxFuture<'static, Result<T>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        match &self.1 {
            Some(_) => {
                let rows = self.0.stored_rows();
                async move { read(rows.await?).await }.boxed()
            }
            None => {
                let rows = self.0.readable_rows();
                async move { read(rows.await?).await }.boxed()
            }
        }
    }

    /// What the transaction of this handle will change.
    fn changes(&self) -> Result<Vec<RowOp>> {
        self.1.as_ref().map_or_else(|| Ok(Vec::new()), StateTransaction::kv_changes)
    }
}

fn check(key: &Bytes, value: &Bytes) -> Result<(), KvError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(KvError::KeyTooLarge { size: key.len() });
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(KvError::ValueTooLarge { size: value.len() });
    }
    Ok(())
}

/// What changes from nothing come to.
fn replay(ops: &[RowOp]) -> BTreeMap<Bytes, Bytes> {
    let mut entries = BTreeMap::new();
    apply(ops, &mut entries);
    entries
}

/// Makes changes.
fn apply(ops: &[RowOp], entries: &mut BTreeMap<Bytes, Bytes>) {
    for op in ops {
        match op {
            RowOp::PutKv { key, value } => {
                entries.insert(key.clone(), value.clone());
            }
            RowOp::DeleteKv(key) => {
                entries.remove(key);
            }
            RowOp::DeleteKvRange(range) => entries.retain(|key, _| !range.contains(key)),
            _ => {}
        }
    }
}

/// Makes of the value of a key what changes make of it.
fn overlay(ops: &[RowOp], key: &Bytes, value: &mut Option<Bytes>) {
    for op in ops {
        match op {
            RowOp::PutKv { key: put, value: new } if put == key => *value = Some(new.clone()),
            RowOp::DeleteKv(deleted) if deleted == key => *value = None,
            RowOp::DeleteKvRange(range) if range.contains(key) => *value = None,
            _ => {}
        }
    }
}

fn select(entries: BTreeMap<Bytes, Bytes>, query: &KvQuery) -> Entries {
    let mut found: Entries =
        entries.into_iter().filter(|(key, _)| query.range.contains(key)).collect();
    if query.reverse {
        found.reverse();
    }
    if let Some(limit) = query.limit {
        found.truncate(limit as usize);
    }
    found
}
