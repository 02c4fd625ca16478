//! The life of one generation as a pure state machine: its phase, what was
//! requested of it, and what it still has to tell its host.
//!
//! # Invariants
//!
//! 1. A phase only moves forward; [`Phase::Terminated`] is the end.
//! 2. A generation is told to be destroyed at most once, and
//!    [`Lifecycle::destroy_requested`] never becomes false again.
//! 3. Intents leave in the order of their requests, and none follows a destroy.
//! 4. Of errored stops that were not yet told, the newest message is told, once;
//!    a destroy takes their place. So a crash is never told as a destroy and a
//!    destroy never as a crash.
//!
//! An errored stop is a crash report: the host puts the actor to sleep, so the
//! teardown is that of a sleep.

use std::borrow::Cow;

use crate::core::warnings::WarningKind;
use crate::error::{Coded, ErrorCode};

/// The longest message of an errored stop that is kept whole, in bytes.
pub const MAX_STOP_ERROR_LEN: usize = 2_048;
/// What follows a message that was cut; it comes on top of the limit.
pub const TRUNCATED_SUFFIX: &str = "... (truncated)";

/// Where a generation is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Its record is being loaded and its first hooks run.
    #[default]
    Loading,
    /// It takes work.
    Started,
    /// It is going to sleep and still takes work.
    SleepGrace,
    /// Its last state is being saved before it sleeps.
    SleepFinalize,
    /// It is going to be destroyed and finishes what it has begun.
    DestroyGrace,
    /// It is being destroyed.
    Destroying,
    /// It is over.
    Terminated,
}

impl Phase {
    /// The name in logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Started => "started",
            Self::SleepGrace => "sleep_grace",
            Self::SleepFinalize => "sleep_finalize",
            Self::DestroyGrace => "destroy_grace",
            Self::Destroying => "destroying",
            Self::Terminated => "terminated",
        }
    }

    /// Why it is stopping; `None` when it is not, or is over.
    pub const fn stop_reason(self) -> Option<StopReason> {
        match self {
            Self::SleepGrace | Self::SleepFinalize => Some(StopReason::Sleep),
            Self::DestroyGrace | Self::Destroying => Some(StopReason::Destroy),
            Self::Loading | Self::Started | Self::Terminated => None,
        }
    }
}

/// Why a generation stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It will wake again.
    Sleep,
    /// It will not.
    Destroy,
}

impl StopReason {
    /// The name in logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Destroy => "destroy",
        }
    }
}

/// What a generation asks of its host. The host answers with a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It wants to sleep.
    Sleep {
        /// What it crashed with, if that is why.
        error: Option<String>,
    },
    /// It wants to be destroyed.
    Destroy,
}

/// Why a generation refuses a request or work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LifecycleError {
    /// It has not finished starting and cannot be asked to stop yet.
    #[error("actor is starting")]
    Starting,
    /// It has not finished starting and takes no work yet.
    #[error("actor is not ready")]
    NotReady,
    /// It is stopping.
    #[error("actor is stopping")]
    Stopping,
    /// It is being destroyed.
    #[error("actor is destroying")]
    Destroying,
}

impl Coded for LifecycleError {
    fn code(&self) -> ErrorCode {
        let code = match self {
            Self::Starting => "starting",
            Self::NotReady => "not_ready",
            Self::Stopping => "stopping",
            Self::Destroying => "destroying",
        };
        ErrorCode::new("actor", code)
    }
}

/// Whether an accepted request is the first of its kind. If so, the caller
/// cancels the idle timer and, unless it is a plain sleep, has state saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the first request cancels the idle timer"]
pub struct First(pub bool);

/// Why work is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the caller is told.
    pub error: LifecycleError,
    /// What is worth a line in the log.
    pub warning: Option<WarningKind>,
}

/// A change of phase, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The phase that was left.
    pub old: Phase,
    /// The phase that was entered.
    pub new: Phase,
}

/// What a stop command finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The grace period begins now.
    Entered,
    /// It is stopping, or over; the command changes nothing.
    Already {
        /// The command's reason differs from that of the stop that is going on.
        conflicting: bool,
    },
    /// It has not finished starting: keep the command until it has.
    NotStarted,
}

/// Whether the end of a generation is the end of its actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Destruction {
    /// Not decided, or not done.
    #[default]
    Open,
    /// The actor is gone.
    Completed,
    /// The generation is over, and the actor is still there.
    Missed,
}

/// The phase and the requests of one generation.
#[derive(Debug, Default)]
pub struct Lifecycle {
    /// Changed by the transitions only.
    phase: Phase,
    /// Set by the first sleep or errored stop, cleared by a start.
    sleep_requested: bool,
    /// Set by the first destroy of either side, never cleared (invariant 2).
    destroy_requested: bool,
    /// Decided once, by the host.
    destruction: Destruction,
    /// Set when the next generation is to serve whoever comes, never cleared.
    closed: bool,
    /// A plain sleep that the host was not yet told of. It always precedes
    /// `stop_untold`: once an errored stop or a destroy is accepted, a plain
    /// sleep asks for nothing more (invariant 3).
    sleep_untold: bool,
    /// An errored stop or a destroy that the host was not yet told of
    /// (invariant 4).
    stop_untold: Option<Intent>,
}

impl Lifecycle {
    /// A generation that is loading and of which nothing was requested.
    pub fn new() -> Self {
        Self::default()
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it runs: it has started and not yet begun its last save.
    pub fn started(&self) -> bool {
        matches!(self.phase, Phase::Started | Phase::SleepGrace)
    }

    /// Whether a sleep or an errored stop was requested from inside.
    pub fn sleep_requested(&self) -> bool {
        self.sleep_requested
    }

    /// Whether a destroy was requested, from inside or by the host.
    pub fn destroy_requested(&self) -> bool {
        self.destroy_requested
    }

    /// Whether the end of the generation was the end of the actor.
    pub fn destruction(&self) -> Destruction {
        self.destruction
    }

    /// Asks for a sleep. A repetition, or one after a destroy, changes nothing.
    ///
    /// # Errors
    ///
    /// `starting` before the start, `stopping` once it no longer runs.
    pub fn request_sleep(&mut self) -> Result<First, LifecycleError> {
        if !self.started() {
            return Err(self.not_started());
        }
        if self.sleep_requested || self.destroying() {
            return Ok(First(false));
        }
        self.sleep_requested = true;
        // The host that put it into its grace period need not be asked for it.
        self.sleep_untold = self.phase == Phase::Started;
        Ok(First(true))
    }

    /// Asks for a destroy. It takes the place of an errored stop that the host
    /// was not yet told of.
    ///
    /// # Errors
    ///
    /// `starting` before the start, `stopping` when a destroy was requested
    /// before or the generation is over.
    pub fn request_destroy(&mut self) -> Result<First, LifecycleError> {
        self.admit_stop()?;
        self.destroy_requested = true;
        self.stop_untold = Some(Intent::Destroy);
        Ok(First(true))
    }

    /// Reports a crash, which makes the host put the actor to sleep. `message` is
    /// cut by [`truncate_stop_error`]; it replaces one that was not yet told.
    ///
    /// # Errors
    ///
    /// Those of [`Lifecycle::request_destroy`].
    pub fn request_stop_with_error(&mut self, message: &str) -> Result<First, LifecycleError> {
        self.admit_stop()?;
        let first = !self.sleep_requested;
        self.sleep_requested = true;
        let error = Some(truncate_stop_error(message).into_owned());
        self.stop_untold = Some(Intent::Sleep { error });
        Ok(First(first))
    }

    /// Notes that the host has decided to destroy it. Tells the host nothing and
    /// leaves an untold errored stop as it is. Once completed, nothing changes.
    pub fn mark_destroy_requested(&mut self) -> First {
        let first = !self.destroy_requested;
        self.destroy_requested = true;
        First(first)
    }

    /// Notes how a generation that is over ended; the first word holds. Whoever waits
    /// for that is told afterwards, and the host after them.
    pub fn mark_destruction(&mut self, destroyed: bool) {
        if self.destruction == Destruction::Open {
            self.destruction = if destroyed { Destruction::Completed } else { Destruction::Missed };
        }
    }

    /// From here on no work is taken, not even while it falls asleep.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The next thing to tell the host, in the order of the requests.
    pub fn take_intent(&mut self) -> Option<Intent> {
        if std::mem::take(&mut self.sleep_untold) {
            return Some(Intent::Sleep { error: None });
        }
        self.stop_untold.take()
    }

    /// Whether work may be taken now.
    ///
    /// # Errors
    ///
    /// What the caller is told, and which warning it is worth.
    pub fn admit(&self) -> Result<(), Refusal> {
        let error = match self.phase {
            _ if self.destroy_requested => LifecycleError::Destroying,
            Phase::Started | Phase::SleepGrace if !self.closed => return Ok(()),
            Phase::Started | Phase::SleepGrace | Phase::SleepFinalize | Phase::DestroyGrace => {
                LifecycleError::Stopping
            }
            Phase::Destroying | Phase::Terminated => LifecycleError::Destroying,
            Phase::Loading => LifecycleError::NotReady,
        };
        let kind = match error {
            LifecycleError::NotReady => WarningKind::SelfCallRisk,
            _ => WarningKind::WorkSentToStoppingInstance,
        };
        // Whoever comes to one that makes room for the next did nothing wrong.
        Err(Refusal { error, warning: (!self.closed).then_some(kind) })
    }

    /// Ends the loading. `None`, and no change, unless it was loading: a failed
    /// start has terminated it meanwhile, or it has started before.
    pub fn become_started(&mut self) -> Option<Transition> {
        if self.phase != Phase::Loading {
            return None;
        }
        self.sleep_requested = false;
        Some(self.enter(Phase::Started))
    }

    /// Takes the host's stop command.
    pub fn enter_grace(&mut self, reason: StopReason) -> Grace {
        match self.phase {
            Phase::Loading => Grace::NotStarted,
            Phase::Started => {
                self.enter(match reason {
                    StopReason::Sleep => Phase::SleepGrace,
                    StopReason::Destroy => Phase::DestroyGrace,
                });
                Grace::Entered
            }
            stopping => {
                let conflicting = stopping.stop_reason().is_some_and(|going_on| going_on != reason);
                Grace::Already { conflicting }
            }
        }
    }

    /// Ends the grace period. `None`, and no change, outside of one.
    pub fn finalize(&mut self) -> Option<Transition> {
        let next = match self.phase {
            Phase::SleepGrace => Phase::SleepFinalize,
            Phase::DestroyGrace => Phase::Destroying,
            _ => return None,
        };
        Some(self.enter(next))
    }

    /// Ends the generation, from whatever phase. `None` when it was over.
    pub fn terminate(&mut self) -> Option<Transition> {
        (self.phase != Phase::Terminated).then(|| self.enter(Phase::Terminated))
    }

    fn enter(&mut self, new: Phase) -> Transition {
        let old = std::mem::replace(&mut self.phase, new);
        Transition { old, new }
    }

    fn destroying(&self) -> bool {
        self.destroy_requested || self.phase.stop_reason() == Some(StopReason::Destroy)
    }

    /// What a request is told that needs a generation which runs.
    fn not_started(&self) -> LifecycleError {
        if self.phase == Phase::Loading && !self.destroy_requested {
            LifecycleError::Starting
        } else {
            LifecycleError::Stopping
        }
    }

    /// A destroy and an errored stop are legal while a sleep is under way, but not
    /// once it is over: nobody would take their intent any more.
    fn admit_stop(&self) -> Result<(), LifecycleError> {
        if self.phase == Phase::Loading || self.phase == Phase::Terminated {
            return Err(self.not_started());
        }
        if self.destroying() {
            return Err(LifecycleError::Stopping);
        }
        Ok(())
    }
}

/// Cuts a message that is longer than [`MAX_STOP_ERROR_LEN`] at the last character
/// that ends at or before the limit, and says so.
pub fn truncate_stop_error(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_STOP_ERROR_LEN {
        return Cow::Borrowed(message);
    }
    let mut end = MAX_STOP_ERROR_LEN;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}{TRUNCATED_SUFFIX}", &message[..end]))
}

#[cfg(test)]
mod tests;
