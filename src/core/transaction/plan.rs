//! What a transaction will change, beside its state and its statements.

use crate::core::queue::{Change, Moment, Queue, QueueError};
use crate::core::schedule::{ScheduleError, Schedules};
use crate::store::RowOp;

/// A step of the queue, made when the transaction commits.
pub(crate) type QueueStep =
    Box<dyn FnOnce(&mut Queue, Moment) -> Result<Change, QueueError> + Send>;
/// A step of the schedules.
pub(crate) type ScheduleStep =
    Box<dyn FnOnce(&mut Schedules) -> Result<Vec<RowOp>, ScheduleError> + Send>;

/// The changes, each kind in the order of the calls. They are made again on the parts as
/// they are at the commit, since fires and consumers go on meanwhile.
#[derive(Default)]
pub(crate) struct Plan {
    /// Keys and values.
    pub(crate) kv: Vec<RowOp>,
    /// Messages.
    pub(crate) queue: Vec<QueueStep>,
    /// How many of those send one.
    pub(crate) sends: usize,
    /// Schedules.
    pub(crate) schedules: Vec<ScheduleStep>,
    /// The schedules as the transaction sees them, from the first look on.
    pub(crate) shadow: Option<Schedules>,
}
