//! What crosses into JavaScript: the kinds of jobs, and their flat encoding.
//!
//! A batch is one array: a buffer or null, then records, each `kind, actor, ticket`
//! followed by the fields of its kind; [`FIELDS`] says how many. `ts/native/jobs.ts`
//! mirrors the table, and a test compares the two.
//!
//! Bytes are a buffer of their own, or where there are few of them a number that says
//! where they lie in the one buffer of the batch: making one costs more than copying
//! a kilobyte.
//!
//! # Invariants
//!
//! 1. A job that expects an answer holds its [`Reply`] until JavaScript takes
//!    it, so one that is dropped is answered all the same.
//! 2. Bytes are copied into JavaScript: it never sees memory of Rust.

use bytes::Bytes;
use napi::bindgen_prelude::{BufferSlice, Null, ToNapiValue};
use napi::{Env, sys};

use super::error::to_record;
use super::sessions::Heard;
use crate::core::actor::gate::CommitNumber;
use crate::core::actor::lifecycle::StopReason;
use crate::core::behavior::{
    CallId, Caller, Hook, Reply, SerializeReason, StateDelta, StopOutcome,
};
use crate::core::connections::{ConnHandle, ConnHook};
use crate::core::context::ActorContext;
use crate::core::schedule::FireInfo;
use crate::error::{Error, Result};

/// The name of each kind and how many fields follow `kind, actor, ticket`. The
/// number of a kind is its place in this table, counted from one.
pub(super) const FIELDS: &[(&str, usize)] = &[
    ("START", 2),
    ("HOOK", 3),
    ("RUN", 0),
    ("ACTION", 4),
    ("CANCEL", 2),
    ("SERIALIZE", 1),
    ("COMMITTED", 2),
    ("ABORT", 1),
    ("DEADLINE", 0),
    ("STOPPED", 2),
    ("SETTLED", 2),
    ("LOG", 5),
    ("FORGOTTEN", 1),
    ("BEGIN", 0),
    ("FIRED", 3),
    ("CONNECTION", 4),
    ("OVER", 5),
    ("SESSION", 4),
    ("ASKED", 3),
    ("UNASKED", 0),
];

/// One thing for JavaScript to do or to know.
#[derive(Debug)]
pub(super) enum Job {
    /// A generation begins.
    Start { actor: u64, factory: u64, context: ActorContext },
    /// Run a hook.
    Hook { actor: u64, hook: Hook, reply: Reply<Option<Bytes>> },
    /// Run the author's `run`.
    Run { actor: u64, reply: Reply<bool> },
    /// Run an action. `origin` is the ticket of whoever submitted it, if that
    /// was the same environment, else 0.
    Action { actor: u64, call: CallId, name: String, args: Bytes, caller: Caller, origin: u64 },
    /// Run an action because of a schedule. A kind of its own, so that no other call
    /// has a field more.
    Fired { actor: u64, call: CallId, name: String, args: Bytes, fire: Box<FireInfo> },
    /// Run a hook of a connection.
    Connection { actor: u64, hook: ConnHook, connection: ConnHandle, reply: Reply<Option<Bytes>> },
    /// Run an action that was called over a connection. A kind of its own, as above.
    Over { actor: u64, connection: ConnHandle, action: Box<OverAction> },
    /// A session of this environment has heard something.
    Session { session: u64, heard: Heard },
    /// A call that its caller holds may begin.
    Begin { actor: u64, call: CallId },
    /// Nobody waits for an action any more.
    Cancel { actor: u64, call: CallId, timed_out: bool, error: Option<Error> },
    /// Encode the state.
    Serialize { actor: u64, reason: SerializeReason, reply: Reply<Vec<StateDelta>> },
    /// A commit ended.
    Committed { actor: u64, number: CommitNumber, result: Result<()> },
    /// The actor begins to stop.
    Abort { actor: u64, reason: StopReason },
    /// The grace period is used up.
    Deadline { actor: u64 },
    /// The generation ended.
    Stopped { actor: u64, outcome: StopOutcome },
    /// What a ticket of JavaScript was waiting for has come.
    Settled { ticket: u64, result: Result<Option<Bytes>> },
    /// Something to log.
    Log(Box<LogLine>),
    /// Nothing runs by a registration of a factory any more, and nothing will.
    Forgotten { factory: u64 },
    /// Answer a request for an application of the author's, or a question to a factory.
    Asked { whom: Whom, asked: u64, request: Bytes },
    /// Nobody waits for that answer any more.
    Unasked { asked: u64 },
}

/// Whom JavaScript is to ask, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whom {
    /// The application of a gateway.
    Application(u64),
    /// A type of actors.
    Factory(u64),
}

/// An action that is called over a connection; otherwise as [`Job::Action`].
#[derive(Debug)]
pub(super) struct OverAction {
    pub(super) call: CallId,
    pub(super) name: String,
    pub(super) args: Bytes,
    pub(super) caller: Caller,
    pub(super) origin: u64,
}

/// A line of the log.
#[derive(Debug)]
pub(super) struct LogLine {
    pub(super) level: &'static str,
    pub(super) target: String,
    pub(super) message: String,
    /// The named values, as a JSON object.
    pub(super) fields: String,
    /// How many lines were dropped before this one.
    pub(super) lost: u64,
}

impl Job {
    /// The actor that it concerns; 0 for none.
    #[cfg(test)]
    pub(super) fn actor(&self) -> u64 {
        match self {
            Self::Start { actor, .. }
            | Self::Hook { actor, .. }
            | Self::Run { actor, .. }
            | Self::Action { actor, .. }
            | Self::Fired { actor, .. }
            | Self::Connection { actor, .. }
            | Self::Over { actor, .. }
            | Self::Begin { actor, .. }
            | Self::Cancel { actor, .. }
            | Self::Serialize { actor, .. }
            | Self::Committed { actor, .. }
            | Self::Abort { actor, .. }
            | Self::Deadline { actor }
            | Self::Stopped { actor, .. } => *actor,
            Self::Session { .. }
            | Self::Settled { .. }
            | Self::Log(_)
            | Self::Asked { .. }
            | Self::Unasked { .. }
            | Self::Forgotten { .. } => 0,
        }
    }

    /// Answers, for an environment that is gone, what the job carries.
    pub(super) fn refuse(self) {
        let gone = super::error::environment_gone;
        match self {
            Self::Hook { reply, .. } | Self::Connection { reply, .. } => reply.send(Err(gone())),
            Self::Run { reply, .. } => reply.send(Err(gone())),
            Self::Serialize { reply, .. } => reply.send(Err(gone())),
            // Its caller is answered when the generation breaks; the others
            // only tell what nobody is left to hear.
            Self::Action { .. }
            | Self::Over { .. }
            | Self::Session { .. }
            | Self::Fired { .. }
            | Self::Start { .. }
            | Self::Begin { .. }
            | Self::Cancel { .. }
            | Self::Committed { .. }
            | Self::Abort { .. }
            | Self::Deadline { .. }
            | Self::Stopped { .. }
            | Self::Settled { .. }
            | Self::Log(_)
            | Self::Asked { .. }
            | Self::Unasked { .. }
            | Self::Forgotten { .. } => {}
        }
    }
}

/// The longest bytes that share the buffer of their batch. Whoever keeps some keeps all,
/// which is 256 times as much at most.
const SHARED_UP_TO: usize = 1_024;

/// What a place in the shared buffer is multiplied with before the length is added.
const PLACE: usize = 65_536;

/// Writes records into one JavaScript array.
pub(super) struct Records {
    env: sys::napi_env,
    array: sys::napi_value,
    len: u32,
    /// The buffer of the batch.
    shared: Vec<u8>,
}

impl Records {
    /// An empty array.
    pub(super) fn new(env: &Env) -> napi::Result<Self> {
        let mut array = std::ptr::null_mut();
        let env = env.raw();
        // SAFETY: `env` is the environment of the call that is running.
        napi::check_status!(unsafe { sys::napi_create_array(env, &mut array) })?;
        let mut records = Self { env, array, len: 0, shared: Vec::new() };
        // The place of the buffer.
        records.push(Null)?;
        Ok(records)
    }

    /// What every record begins with.
    pub(super) fn begin(&mut self, kind: Kind, actor: u64, ticket: u64) -> napi::Result<()> {
        self.small(kind as i32)?;
        self.number(actor)?;
        self.number(ticket)
    }

    /// A small integer.
    pub(super) fn small(&mut self, value: i32) -> napi::Result<()> {
        self.push(value)
    }

    /// A number that JavaScript reads exactly below 2^53.
    pub(super) fn number(&mut self, value: u64) -> napi::Result<()> {
        match i32::try_from(value) {
            Ok(small) => self.push(small),
            Err(_) => self.push(value as f64),
        }
    }

    /// A string.
    pub(super) fn text(&mut self, value: &str) -> napi::Result<()> {
        self.push(value)
    }

    /// A string, or null.
    pub(super) fn text_or_null(&mut self, value: Option<&str>) -> napi::Result<()> {
        match value {
            Some(text) => self.push(text),
            None => self.push(Null),
        }
    }

    /// A copy of bytes (invariant 2), or null.
    pub(super) fn bytes(&mut self, value: Option<&Bytes>) -> napi::Result<()> {
        match value {
            Some(bytes) if bytes.len() <= SHARED_UP_TO => {
                let place = self.shared.len() * PLACE + bytes.len();
                self.shared.extend_from_slice(bytes);
                self.number(place as u64)
            }
            Some(bytes) => {
                let copy = BufferSlice::copy_from(&Env::from_raw(self.env), bytes)?;
                self.push(&copy)
            }
            None => self.push(Null),
        }
    }

    /// The record of an error, or null.
    pub(super) fn error(&mut self, value: Option<&crate::error::Error>) -> napi::Result<()> {
        match value {
            Some(error) => {
                let record = String::from_utf8(to_record(error)).unwrap_or_default();
                self.text(&record)
            }
            None => self.push(Null),
        }
    }

    /// The array.
    pub(super) fn finish(mut self) -> napi::Result<sys::napi_value> {
        if !self.shared.is_empty() {
            let shared = BufferSlice::copy_from(&Env::from_raw(self.env), &self.shared)?;
            self.len = 0;
            self.push(&shared)?;
        }
        Ok(self.array)
    }

    fn push<V: ToNapiValue>(&mut self, value: V) -> napi::Result<()> {
        // SAFETY: `env` and `array` belong to the call that is running.
        unsafe {
            let value = V::to_napi_value(self.env, value)?;
            napi::check_status!(sys::napi_set_element(self.env, self.array, self.len, value))?;
        }
        self.len += 1;
        Ok(())
    }
}

/// The numbers of [`FIELDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Kind {
    Start = 1,
    Hook,
    Run,
    Action,
    Cancel,
    Serialize,
    Committed,
    Abort,
    Deadline,
    Stopped,
    Settled,
    Log,
    Forgotten,
    Begin,
    Fired,
    Connection,
    Over,
    Session,
    Asked,
    Unasked,
}

/// The number of a caller's kind.
pub(super) fn caller_number(caller: Caller) -> i32 {
    match caller {
        Caller::Client => 0,
        Caller::Actor => 1,
        Caller::Local => 2,
        Caller::Schedule => 3,
    }
}

/// The caller's kind of a number; an unknown one is code of this process.
pub(super) fn caller_of(number: u32) -> Caller {
    match number {
        0 => Caller::Client,
        1 => Caller::Actor,
        3 => Caller::Schedule,
        _ => Caller::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_numbers_agree() {
        let kinds = [
            Kind::Start,
            Kind::Hook,
            Kind::Run,
            Kind::Action,
            Kind::Cancel,
            Kind::Serialize,
            Kind::Committed,
            Kind::Abort,
            Kind::Deadline,
            Kind::Stopped,
            Kind::Settled,
            Kind::Log,
            Kind::Forgotten,
            Kind::Begin,
            Kind::Fired,
            Kind::Connection,
            Kind::Over,
            Kind::Session,
            Kind::Asked,
            Kind::Unasked,
        ];

        assert_eq!(kinds.len(), FIELDS.len());
        for (kind, (name, _)) in kinds.iter().zip(FIELDS) {
            assert_eq!(format!("{kind:?}").to_uppercase(), *name);
        }
        assert!(kinds.iter().enumerate().all(|(place, kind)| *kind as usize == place + 1));
    }

    #[test]
    fn a_callers_kind_reads_back() {
        for caller in [Caller::Client, Caller::Actor, Caller::Local, Caller::Schedule] {
            let number = u32::try_from(caller_number(caller)).unwrap();

            assert_eq!(caller_of(number), caller);
        }
    }

    #[test]
    fn a_job_for_an_environment_that_is_gone_answers_that_it_may_be_repeated() {
        let (reply, answered) = Reply::channel();

        Job::Run { actor: 1, reply }.refuse();

        let error = futures::executor::block_on(answered).unwrap_err();
        assert!(error.is("actor", "environment_gone"));
        assert_eq!(error.metadata, Some(serde_json::json!({ "retryable": true })));
    }
}
