//! What an actor is doing, and so: may it sleep, may its grace period end, and
//! what holds it.
//!
//! # Invariants
//!
//! 1. A count never goes below zero: ending what was not begun is refused.
//! 2. [`Activity::can_sleep`] and [`Activity::grace_drained`] follow the policy of
//!    each [`WorkKind`]; a kind appears in neither by hand where the policy says it.
//! 3. After every change of a field [`Activity::can_sleep`] may answer otherwise,
//!    so the machine asks again.

use crate::core::actor::lifecycle::StopReason;
use crate::metrics::UserTaskKind;

/// A kind of tracked work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// An action that was accepted and not yet answered.
    Action,
    /// Work that the author declared to keep the actor awake.
    KeepAwake,
    /// Work of the runtime itself.
    InternalKeepAwake,
    /// A promise passed to `waitUntil`.
    WaitUntil,
    /// A task that the author registered.
    RegisteredTask,
    /// A callback of a raw socket.
    WebSocketCallback,
    /// An `onDisconnect` that runs.
    DisconnectCallback,
}

/// How a kind of work bears on sleep and shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkPolicy {
    /// Whether the actor stays awake for it.
    pub blocks_idle_sleep: bool,
    /// Whether the grace period waits for it.
    pub holds_grace: bool,
    /// Whether the end of the grace period cancels it; otherwise it is joined.
    pub cancelled_at_deadline: bool,
    /// Under which kind of user task it is measured, if at all.
    pub user_task: Option<&'static str>,
}

impl WorkKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Action,
        Self::KeepAwake,
        Self::InternalKeepAwake,
        Self::WaitUntil,
        Self::RegisteredTask,
        Self::WebSocketCallback,
        Self::DisconnectCallback,
    ];

    /// The name in logs, reports and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::KeepAwake => "keep_awake",
            Self::InternalKeepAwake => "internal_keep_awake",
            Self::WaitUntil => "wait_until",
            Self::RegisteredTask => "registered_task",
            Self::WebSocketCallback => "websocket_callback",
            Self::DisconnectCallback => "disconnect_callback",
        }
    }

    /// The kind's row of the policy table.
    pub const fn policy(self) -> WorkPolicy {
        let (blocks_idle_sleep, cancelled_at_deadline) = match self {
            // The runtime's own work ends by itself and must not be torn apart.
            Self::InternalKeepAwake => (true, false),
            Self::WaitUntil | Self::RegisteredTask => (false, true),
            Self::Action | Self::KeepAwake | Self::WebSocketCallback | Self::DisconnectCallback => {
                (true, true)
            }
        };
        let user_task = match self.user_task() {
            Some(kind) => Some(kind.label()),
            None => None,
        };
        WorkPolicy { blocks_idle_sleep, holds_grace: true, cancelled_at_deadline, user_task }
    }

    /// The kind under which it is measured, if at all.
    pub const fn user_task(self) -> Option<UserTaskKind> {
        match self {
            Self::Action => Some(UserTaskKind::Action),
            Self::WaitUntil => Some(UserTaskKind::WaitUntil),
            Self::RegisteredTask => Some(UserTaskKind::RegisteredTask),
            Self::WebSocketCallback => Some(UserTaskKind::WebSocketCallback),
            Self::DisconnectCallback => Some(UserTaskKind::DisconnectCallback),
            Self::KeepAwake | Self::InternalKeepAwake => None,
        }
    }
}

/// Whether an actor may sleep, and if not, the first reason against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CanSleep {
    /// It may.
    Yes,
    /// It does not run.
    NotReady,
    /// Its settings forbid it.
    NoSleep,
    /// It has changes that are not saved.
    Dirty,
    /// It answers HTTP requests.
    ActiveHttpRequests,
    /// The author keeps it awake.
    ActiveKeepAwake,
    /// An action or the runtime itself keeps it awake.
    ActiveInternalKeepAwake,
    /// Its run handler works, or waits for its restart.
    ActiveRunHandler,
    /// An `onDisconnect` runs.
    ActiveDisconnectCallbacks,
    /// It has connections that keep it awake.
    ActiveConnections,
    /// A callback of a raw socket runs.
    ActiveWebSocketCallbacks,
}

impl CanSleep {
    /// The name in logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::NotReady => "not_ready",
            Self::NoSleep => "no_sleep",
            Self::Dirty => "dirty",
            Self::ActiveHttpRequests => "active_http_requests",
            Self::ActiveKeepAwake => "active_keep_awake",
            Self::ActiveInternalKeepAwake => "active_internal_keep_awake",
            Self::ActiveRunHandler => "active_run_handler",
            Self::ActiveDisconnectCallbacks => "active_disconnect_callbacks",
            Self::ActiveConnections => "active_connections",
            Self::ActiveWebSocketCallbacks => "active_websocket_callbacks",
        }
    }
}

/// One thing that an actor is busy with, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What it is.
    pub what: &'static str,
    /// How many of it there are.
    pub count: usize,
}

/// What one actor is doing. The machine changes it under its lock.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// By kind, in the order of [`WorkKind::ALL`]; changed by `begin` and `end`.
    work: [u32; WorkKind::ALL.len()],
    /// Running `onStateChange` callbacks; they count as keep-awake. Changed by
    /// `begin_state_change` and `end_state_change`.
    pub state_change_callbacks: usize,
    /// HTTP requests that are being answered.
    pub http_requests: usize,
    /// Whether the run handler runs.
    pub run_active: bool,
    /// Whether the run handler failed and waits for its restart.
    pub run_restarting: bool,
    /// How many receives of the queue wait for a message. A run handler that
    /// waits there does not keep the actor awake: the next generation starts it
    /// again.
    pub queue_waits: usize,
    /// Whether there are changes that are not saved.
    pub dirty: bool,
    /// How many connections keep the actor awake; hibernatable ones do not count.
    pub connections: usize,
    /// Hooks that the grace period called and that were not yet answered.
    pub core_hooks: usize,
}

impl Activity {
    /// Notes that work began.
    pub fn begin(&mut self, kind: WorkKind) {
        self.work[kind as usize] += 1;
    }

    /// Notes that work ended. `false`, and no change, when none had begun: a fault
    /// of the caller, worth a log line (invariant 1).
    #[must_use = "false is a fault of the caller"]
    pub fn end(&mut self, kind: WorkKind) -> bool {
        let count = &mut self.work[kind as usize];
        match count.checked_sub(1) {
            Some(less) => {
                *count = less;
                true
            }
            None => false,
        }
    }

    /// Notes that `onStateChange` was called.
    pub fn begin_state_change(&mut self) {
        self.state_change_callbacks += 1;
    }

    /// Notes that `onStateChange` ended. `false`, and no change, when none ran.
    #[must_use = "false is a fault of the caller"]
    pub fn end_state_change(&mut self) -> bool {
        match self.state_change_callbacks.checked_sub(1) {
            Some(less) => {
                self.state_change_callbacks = less;
                true
            }
            None => false,
        }
    }

    /// How much work of a kind is going on.
    pub fn count(&self, kind: WorkKind) -> usize {
        self.work[kind as usize] as usize
    }

    /// What the author keeps awake: declared work and running state-change
    /// callbacks.
    pub fn keep_awake_count(&self) -> usize {
        self.count(WorkKind::KeepAwake) + self.state_change_callbacks
    }

    /// What the runtime keeps awake: actions and its own work.
    pub fn internal_keep_awake_count(&self) -> usize {
        self.count(WorkKind::Action) + self.count(WorkKind::InternalKeepAwake)
    }

    /// Whether the actor may sleep; the first reason against it wins.
    pub fn can_sleep(&self, started: bool, no_sleep: bool) -> CanSleep {
        let blocks = |kind: WorkKind| kind.policy().blocks_idle_sleep && self.count(kind) > 0;
        let run_works = self.run_active && self.queue_waits == 0;
        let reasons = [
            (!started, CanSleep::NotReady),
            (no_sleep, CanSleep::NoSleep),
            (self.http_requests > 0, CanSleep::ActiveHttpRequests),
            (self.keep_awake_count() > 0, CanSleep::ActiveKeepAwake),
            (self.internal_keep_awake_count() > 0, CanSleep::ActiveInternalKeepAwake),
            (run_works || self.run_restarting, CanSleep::ActiveRunHandler),
            (blocks(WorkKind::DisconnectCallback), CanSleep::ActiveDisconnectCallbacks),
            (self.connections > 0, CanSleep::ActiveConnections),
            (blocks(WorkKind::WebSocketCallback), CanSleep::ActiveWebSocketCallbacks),
            (self.dirty, CanSleep::Dirty),
        ];
        let first = reasons.into_iter().find(|(against, _)| *against);
        first.map_or(CanSleep::Yes, |(_, reason)| reason)
    }

    /// Whether the grace period has nothing left to wait for. Connections and
    /// unsaved changes do not matter: the former are closed by hooks or survive,
    /// the latter are for the final save. A destroy does not wait for the run
    /// handler.
    pub fn grace_drained(&self, reason: StopReason) -> bool {
        let work = self.has_tracked_work();
        let run = reason == StopReason::Sleep && self.run_active;
        !work
            && !run
            && self.core_hooks == 0
            && self.state_change_callbacks == 0
            && self.http_requests == 0
    }

    /// Whether any tracked work holds the grace period. Its own hook does not count,
    /// so that the hook can wait for the rest.
    pub fn has_tracked_work(&self) -> bool {
        WorkKind::ALL.into_iter().any(|kind| kind.policy().holds_grace && self.count(kind) > 0)
    }

    /// Everything the actor is busy with, for a report of why it is awake or did
    /// not drain. Empty when there is nothing.
    pub fn holds(&self) -> Vec<Hold> {
        let run = match (self.run_active, self.queue_waits) {
            (true, 0) => ("run", 1),
            (true, _) => ("run (waiting for the queue)", 1),
            (false, _) => ("run (restarting)", usize::from(self.run_restarting)),
        };
        let others = [
            ("state_change_callback", self.state_change_callbacks),
            ("http_request", self.http_requests),
            run,
            ("connection", self.connections),
            ("hook", self.core_hooks),
            ("unsaved_state", usize::from(self.dirty)),
        ];
        WorkKind::ALL
            .into_iter()
            .map(|kind| (kind.label(), self.count(kind)))
            .chain(others)
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| Hold { what, count })
            .collect()
    }
}

#[cfg(test)]
mod tests;
