//! Rows of a workflow, stored together with the state of its actor: bytes to bytes, in a
//! table of the actor's own file that its SQL can read and write.
//!
//! # Invariants
//!
//! 1. A flush is stored whole, with the state as it is serialised for it, or not at all.
//! 2. Limits are checked before anything is stored.
//! 3. A key gets the prefix of the table exactly once, here.

use bytes::{BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::actor::WorkRegion;
use super::actor::activity::WorkKind;
use super::behavior::Reply;
use super::context::ActorContext;
use crate::error::{Coded, ErrorCode, Result};
use crate::store::RowOp;

/// The longest value, in bytes: 256 KiB.
pub const MAX_VALUE_BYTES: usize = 262_144;
/// How many rows one flush may have, the two of the state included.
pub const MAX_ROWS: usize = 128;
/// How many bytes its keys, its values and the state may have together: 512 KiB.
pub const MAX_BYTES: usize = 524_288;
/// What stands before each key in the table.
const PREFIX: [u8; 2] = [6, 1];
/// An actor and its state are a row each.
const STATE_ROWS: usize = 2;

/// What is refused (storage.md 6.3).
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkflowError {
    /// A value is too long.
    #[error("workflow kv value exceeds {MAX_VALUE_BYTES} bytes: it has {size}")]
    ValueTooLarge {
        /// Its length.
        size: usize,
    },
    /// There are too many rows, those of the state included.
    #[error("a workflow flush has {rows} rows, the limit is {MAX_ROWS}")]
    TooManyRows {
        /// How many.
        rows: usize,
    },
    /// It is too long as a whole, the state included.
    #[error("a workflow flush has {size} bytes, the limit is {MAX_BYTES}")]
    BatchTooLarge {
        /// Its length.
        size: usize,
    },
}

impl Coded for WorkflowError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::ValueTooLarge { .. } => ErrorCode::new("workflow", "value_too_large"),
            Self::TooManyRows { .. } => ErrorCode::new("workflow", "too_many_rows"),
            Self::BatchTooLarge { .. } => ErrorCode::new("workflow", "batch_too_large"),
        }
    }

    fn metadata(&self) -> Option<Value> {
        Some(match self {
            Self::ValueTooLarge { size } => json!({ "size": size, "limit": MAX_VALUE_BYTES }),
            Self::TooManyRows { rows } => json!({ "rows": rows, "limit": MAX_ROWS }),
            Self::BatchTooLarge { size } => json!({ "size": size, "limit": MAX_BYTES }),
        })
    }
}

/// The rows of one flush.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkflowRows {
    ops: Vec<RowOp>,
    bytes: usize,
}

impl WorkflowRows {
    /// Takes keys and values as the caller has them.
    pub(crate) fn new(writes: Vec<(Bytes, Bytes)>) -> Result<Self, WorkflowError> {
        if let Some(size) =
            writes.iter().map(|(_, value)| value.len()).find(|&size| size > MAX_VALUE_BYTES)
        {
            return Err(WorkflowError::ValueTooLarge { size });
        }
        let mut rows = Self::default();
        for (key, value) in writes {
            let mut stored = BytesMut::with_capacity(PREFIX.len() + key.len());
            stored.put_slice(&PREFIX);
            stored.put_slice(&key);
            rows.bytes += stored.len() + value.len();
            rows.ops.push(RowOp::PutWorkflow { key: stored.freeze(), value });
        }
        rows.check(None).map(|()| rows)
    }

    /// Whether they may be stored in one go with a state of so many bytes, if there is one.
    pub(crate) fn check(&self, state: Option<usize>) -> Result<(), WorkflowError> {
        let rows = self.ops.len() + state.map_or(0, |_| STATE_ROWS);
        if rows > MAX_ROWS {
            return Err(WorkflowError::TooManyRows { rows });
        }
        let size = self.bytes + state.unwrap_or(0);
        if size > MAX_BYTES {
            return Err(WorkflowError::BatchTooLarge { size });
        }
        Ok(())
    }

    pub(crate) fn into_ops(self) -> Vec<RowOp> {
        self.ops
    }
}

impl ActorContext {
    /// Stores the state as it is serialised next, and rows of the actor's workflow, in one
    /// commit; resolves when that is durable. Keys are given without the prefix of the
    /// table; of one that comes twice the last value counts. Flushes are stored one after
    /// another, in the order of the calls. The first one gives the actor a file.
    ///
    /// # Errors
    ///
    /// [`WorkflowError`] when it is too large, `actor/not_ready` where nothing of the kind
    /// can be stored, `actor/stopping` when the actor ends before it could be, `storage/*`;
    /// nothing of it is stored then, unless it says `storage/outcome_unknown`.
    pub fn save_state_and_workflow_batch(
        &self,
        writes: Vec<(Bytes, Bytes)>,
    ) -> BoxFuture<'static, Result<()>> {
        let rows = match WorkflowRows::new(writes) {
            Ok(rows) => rows,
            Err(error) => return futures::future::ready(Err(error.into())).boxed(),
        };
        let region = WorkRegion::new(&self.0, WorkKind::InternalKeepAwake);
        let (reply, outcome) = Reply::channel();
        self.0.flush_workflow(rows, reply);
        async move {
            let outcome = outcome.await;
            drop(region);
            outcome
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, value: usize) -> Result<WorkflowRows, WorkflowError> {
        let value = Bytes::from(vec![0; value]);
        WorkflowRows::new((0..count).map(|_| (Bytes::new(), value.clone())).collect())
    }

    #[test]
    fn the_rows_of_the_state_count() {
        assert_eq!(rows(129, 0).unwrap_err(), WorkflowError::TooManyRows { rows: 129 });
        let most = rows(128, 0).unwrap();
        assert_eq!(most.check(Some(0)), Err(WorkflowError::TooManyRows { rows: 130 }));
        assert_eq!(
            rows(127, 0).unwrap().check(Some(0)),
            Err(WorkflowError::TooManyRows { rows: 129 })
        );
        assert_eq!(rows(126, 0).unwrap().check(Some(0)), Ok(()));
    }

    #[test]
    fn keys_values_and_state_count_together() {
        let half = rows(1, MAX_BYTES / 2 - PREFIX.len()).unwrap();

        assert_eq!(half.check(Some(MAX_BYTES / 2)), Ok(()));
        let size = MAX_BYTES + 1;
        assert_eq!(half.check(Some(MAX_BYTES / 2 + 1)), Err(WorkflowError::BatchTooLarge { size }));
    }

    #[test]
    fn one_value_alone_may_be_as_long_as_it_says() {
        assert!(rows(1, MAX_VALUE_BYTES).is_ok());
        let size = MAX_VALUE_BYTES + 1;
        assert_eq!(rows(1, size).unwrap_err(), WorkflowError::ValueTooLarge { size });
    }
}
