//! The values of the labels.

/// A kind of work of the author's code that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserTaskKind {
    /// An action.
    Action,
    /// A promise passed to `waitUntil`.
    WaitUntil,
    /// A registered task.
    RegisteredTask,
    /// A callback of a raw socket.
    WebSocketCallback,
    /// An `onDisconnect`.
    DisconnectCallback,
    /// A raw HTTP request.
    Http,
    /// A raw socket from its opening to its end.
    WebSocketLifetime,
    /// A receive of the queue that waits.
    QueueWait,
    /// An action called by a schedule.
    ScheduledAction,
    /// A sleep that was asked for.
    SleepFinalize,
    /// A destroy or an errored stop that was asked for.
    DestroyRequest,
}

impl UserTaskKind {
    /// How many kinds there are.
    pub(super) const COUNT: usize = 11;

    /// The value of the label `kind`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::WaitUntil => "wait_until",
            Self::RegisteredTask => "registered_task",
            Self::WebSocketCallback => "websocket_callback",
            Self::DisconnectCallback => "disconnect_callback",
            Self::Http => "http",
            Self::WebSocketLifetime => "websocket_lifetime",
            Self::QueueWait => "queue_wait",
            Self::ScheduledAction => "scheduled_action",
            Self::SleepFinalize => "sleep_finalize",
            Self::DestroyRequest => "destroy_request",
        }
    }
}

/// Who keeps an actor awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeepAwakeKind {
    /// The author.
    User,
    /// The runtime, or an action.
    Internal,
}

impl KeepAwakeKind {
    pub(super) const ALL: [Self; 2] = [Self::User, Self::Internal];

    /// The value of the label `kind`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::User => "keep_awake",
            Self::Internal => "internal_keep_awake",
        }
    }
}

/// A place where things wait for an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inbox {
    /// Commands of the host.
    Lifecycle,
    /// Work of callers.
    Dispatch,
    /// Signals of the actor to itself.
    LifecycleEvent,
}

impl Inbox {
    pub(super) const ALL: [Self; 3] = [Self::Lifecycle, Self::Dispatch, Self::LifecycleEvent];

    /// The value of the label `inbox`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::Dispatch => "dispatch",
            Self::LifecycleEvent => "lifecycle_event",
        }
    }
}

/// Why the runtime's own fields of an actor's record changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateMutation {
    /// A loaded record was installed.
    InternalReplace,
    /// The schedules changed.
    ScheduledEventsUpdate,
    /// The input was set.
    InputSet,
    /// The mark of a finished initialisation changed.
    HasInitialized,
}

impl StateMutation {
    /// The value of the label `reason`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::InternalReplace => "internal_replace",
            Self::ScheduledEventsUpdate => "scheduled_events_update",
            Self::InputSet => "input_set",
            Self::HasInitialized => "has_initialized",
        }
    }
}

/// A step of an actor's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartupPhase {
    /// Its record is read.
    LoadPersisted,
    /// The runtime prepares itself.
    CoreInit,
    /// The author's hooks run.
    RuntimePreamble,
    /// What waited for the start is done.
    PostReady,
}

impl StartupPhase {
    /// The value of the label `phase`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::LoadPersisted => "load_persisted",
            Self::CoreInit => "core_init",
            Self::RuntimePreamble => "runtime_preamble",
            Self::PostReady => "post_ready",
        }
    }
}
