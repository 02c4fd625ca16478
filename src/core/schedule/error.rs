//! What is refused of a schedule, and what is stored of a fire that failed.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::error::{Coded, Error, ErrorCode, INTERNAL_MESSAGE};
use crate::store::FaultRow;

/// What is refused of a schedule (storage.md 4.2).
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum ScheduleError {
    /// The name of a job is empty or too long.
    #[error("invalid schedule name: {reason}")]
    InvalidName {
        /// Which rule it breaks.
        reason: String,
    },
    /// The key of a one-shot is empty or too long.
    #[error("invalid schedule key: {reason}")]
    InvalidKey {
        /// Which rule it breaks.
        reason: String,
    },
    /// Not a cron expression, or one that never comes.
    #[error("invalid cron expression: {reason}")]
    InvalidCronExpression {
        /// What is wrong.
        reason: String,
    },
    /// Not a zone of the IANA database.
    #[error("invalid timezone {timezone:?}")]
    InvalidTimezone {
        /// What was given.
        timezone: String,
    },
    /// An interval is too short.
    #[error("an interval of {interval_ms} ms is shorter than {minimum_ms} ms")]
    InvalidInterval {
        /// What was given.
        interval_ms: i64,
        /// The shortest.
        minimum_ms: i64,
    },
    /// How much history is to be kept or read is out of range.
    #[error("a history of {max_history} is not within the limit of {maximum}")]
    InvalidMaxHistory {
        /// What was given.
        max_history: i64,
        /// The most.
        maximum: u32,
    },
    /// A delay or a moment is not a finite number.
    #[error("invalid time {value}: it must be a finite number of milliseconds")]
    InvalidTime {
        /// What was given.
        value: String,
    },
    /// How a fire is to be retried is out of range.
    #[error("invalid retry: {reason}")]
    InvalidRetry {
        /// Which rule it breaks.
        reason: String,
    },
    /// The actor has as many schedules as it may.
    #[error("the actor has {maximum} schedules already")]
    MaxSchedulesExceeded {
        /// How many it may have.
        maximum: usize,
    },
    /// What is stored breaks its rules.
    #[error("schedule {schedule_id:?} is not readable: {reason}")]
    InvalidScheduleRow {
        /// Which.
        schedule_id: String,
        /// Which rule it breaks.
        reason: String,
    },
    /// A fire had begun when its generation ended.
    #[error("the generation ended while the action ran")]
    Interrupted,
}

impl Coded for ScheduleError {
    fn code(&self) -> ErrorCode {
        let code = match self {
            Self::InvalidName { .. } => "invalid_name",
            Self::InvalidKey { .. } => "invalid_key",
            Self::InvalidCronExpression { .. } => "invalid_cron_expression",
            Self::InvalidTimezone { .. } => "invalid_timezone",
            Self::InvalidInterval { .. } => "invalid_interval",
            Self::InvalidMaxHistory { .. } => "invalid_max_history",
            Self::InvalidTime { .. } => "invalid_time",
            Self::InvalidRetry { .. } => "invalid_retry",
            Self::MaxSchedulesExceeded { .. } => "max_schedules_exceeded",
            Self::InvalidScheduleRow { .. } => "invalid_schedule_row",
            Self::Interrupted => "interrupted",
        };
        ErrorCode::new("schedule", code)
    }

    fn metadata(&self) -> Option<Value> {
        Some(match self {
            Self::InvalidName { reason }
            | Self::InvalidKey { reason }
            | Self::InvalidCronExpression { reason }
            | Self::InvalidRetry { reason } => json!({ "reason": reason }),
            Self::InvalidTimezone { timezone } => json!({ "timezone": timezone }),
            Self::InvalidInterval { interval_ms, minimum_ms } => {
                json!({ "interval_ms": interval_ms, "minimum_ms": minimum_ms })
            }
            Self::InvalidMaxHistory { max_history, maximum } => {
                json!({ "max_history": max_history, "maximum": maximum })
            }
            Self::InvalidTime { value } => json!({ "value": value }),
            Self::MaxSchedulesExceeded { maximum } => json!({ "maximum": maximum }),
            Self::InvalidScheduleRow { schedule_id, reason } => {
                json!({ "reason": reason, "schedule_id": schedule_id })
            }
            Self::Interrupted => return None,
        })
    }

    fn public_status(&self) -> Option<u16> {
        Some(400)
    }
}

/// What is stored of an error: what a client may know of it.
pub(super) fn stored_fault(error: &Error) -> FaultRow {
    if !error.is_public() {
        let ErrorCode { group, code } = ErrorCode::INTERNAL;
        return FaultRow {
            group: group.to_owned(),
            code: code.to_owned(),
            message: INTERNAL_MESSAGE.to_owned(),
            metadata: None,
        };
    }
    FaultRow {
        group: error.group.clone().into_owned(),
        code: error.code.clone().into_owned(),
        message: error.message.clone(),
        metadata: error.metadata.as_ref().map(encode),
    }
}

fn encode(value: &Value) -> Bytes {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("a JSON value has a CBOR form, and memory");
    bytes.into()
}

/// The error of which this was stored. Metadata that cannot be read is left out.
pub(super) fn read_fault(row: FaultRow) -> StoredFault {
    let metadata = row.metadata.and_then(|bytes| ciborium::from_reader(&bytes[..]).ok());
    StoredFault { group: row.group, code: row.code, message: row.message, metadata }
}

/// An error as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFault {
    /// The part of the system that the fault belongs to.
    pub group: String,
    /// The fault within the group.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Named values for programs.
    pub metadata: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_private_error_is_never_stored() {
        let private = Error::new(ErrorCode::new("app", "x"), "secret").with_metadata(json!(["s"]));

        let stored = stored_fault(&private);

        assert_eq!((stored.group.as_str(), stored.code.as_str()), ("core", "internal_error"));
        assert_eq!((stored.message.as_str(), stored.metadata), (INTERNAL_MESSAGE, None));
    }

    #[test]
    fn a_public_error_is_stored_with_its_metadata() {
        let metadata = json!({ "attempt": 2, "retryable": false });
        let public =
            Error::new(ErrorCode::new("user", "x"), "told").with_metadata(metadata.clone());

        let read = read_fault(stored_fault(&public));

        let expected = ("user".to_owned(), "x".to_owned(), "told".to_owned(), Some(metadata));
        assert_eq!((read.group, read.code, read.message, read.metadata), expected);
    }
}
