//! What may be set for a type of actors.
//!
//! # Invariants
//!
//! 1. A setting that was not given has the default of [`ActorConfig::default`].
//! 2. What was given is kept as it is: nothing is clamped.
//! 3. A host can only shorten the grace period, never extend it.

mod client_limits;
mod input;
mod inspector_tab;

use std::collections::HashMap;
use std::sync::Arc;

pub use self::client_limits::ClientLimits;
pub use self::input::ActorConfigInput;
pub use self::inspector_tab::{BUILT_IN_TABS, InspectorTab};
use crate::core::queue::QueuePolicy;
use crate::error::InvalidArgument;
use crate::time::Duration;

/// When an answer may leave the actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once every change made before it is durable.
    #[default]
    Reply,
    /// At once; state is saved at most every `state_save_interval`.
    Interval,
}

/// What a host imposes on all its actors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActorConfigOverrides {
    /// The longest grace period that the host grants.
    pub sleep_grace_period: Option<Duration>,
}

/// The settings of a type of actors. One value is shared by all of its actors.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorConfig {
    /// The name to display.
    pub name: Option<String>,
    /// The icon to display.
    pub icon: Option<String>,
    /// Whether the author declared a database; the inspector shows its tab then.
    pub has_database: bool,
    /// Whether its file is opened when an actor starts, and not only with its first statement.
    pub opens_database: bool,
    /// Whether to warn once of a transaction that is begun by hand.
    pub warns_of_manual_transactions: bool,
    /// Whether SQL goes to a remote executor.
    pub remote_sqlite: bool,
    /// Whether the actor offers a socket to other processes.
    pub enable_actor_runtime_socket: bool,
    /// Whether the author declared state; the inspector shows its tab then.
    pub has_state: bool,
    /// Whether raw sockets outlive a sleep.
    pub can_hibernate_websocket: bool,
    /// Whether a raw request has a connection of its own, with its hooks. Without, whoever
    /// answers it connects where that is wanted.
    pub connects_requests: bool,
    /// Whether the author's values have a form of their own, which somebody who looks has to
    /// have translated.
    pub own_values: bool,
    /// Whether connections of clients that speak the protocol outlive sleeps of the actor.
    pub hibernates_connections: bool,
    /// What one client may do.
    pub client_limits: ClientLimits,
    /// When answers may leave.
    pub durability: Durability,
    /// Whether a run handler that failed starts again, after 1 s, doubling to
    /// 60 s. If not, the failure is logged and the actor stays alive without it.
    pub restarts_run: bool,
    /// The least time between the starts of two saves that nobody hurries.
    pub state_save_interval: Duration,
    /// How long `createState` may take.
    pub create_state_timeout: Duration,
    /// How long `onCreate` may take.
    pub on_create_timeout: Duration,
    /// How long `createVars` may take.
    pub create_vars_timeout: Duration,
    /// How long `createConnState` may take.
    pub create_conn_state_timeout: Duration,
    /// How long `onBeforeConnect` may take.
    pub on_before_connect_timeout: Duration,
    /// How long `onConnect` may take.
    pub on_connect_timeout: Duration,
    /// How long `onMigrate` may take.
    pub on_migrate_timeout: Duration,
    /// How long `onWake` may take.
    pub on_wake_timeout: Duration,
    /// How long `onBeforeActorStart` may take.
    pub on_before_actor_start_timeout: Duration,
    /// How long an action may take.
    pub action_timeout: Duration,
    /// How long `onRequest` may take, if not as long as an action; read it
    /// through [`ActorConfig::request_timeout`].
    pub on_request_timeout: Option<Duration>,
    /// How long an actor stays awake with nothing to do.
    pub sleep_timeout: Duration,
    /// Whether idleness never puts the actor to sleep.
    pub no_sleep: bool,
    /// The one budget for the graceful part of a sleep or a destroy; read it
    /// through [`ActorConfig::effective_sleep_grace_period`].
    pub sleep_grace_period: Duration,
    /// Whether the author chose `sleep_grace_period`.
    pub sleep_grace_period_overridden: bool,
    /// How long a connection may leave a ping unanswered.
    pub connection_liveness_timeout: Duration,
    /// The time between two pings of a connection.
    pub connection_liveness_interval: Duration,
    /// How many clients may be connected at a time.
    pub max_connections: u32,
    /// How many messages may wait in the queue.
    pub max_queue_size: u32,
    /// How often and after which pauses messages of a name are handed out.
    pub queue_policies: Arc<HashMap<String, QueuePolicy>>,
    /// How many schedules may be pending.
    pub max_schedules: u32,
    /// The largest message of the queue, in bytes.
    pub max_queue_message_size: u32,
    /// The largest message from a client, in bytes.
    pub max_incoming_message_size: u32,
    /// The largest message to a client, in bytes.
    pub max_outgoing_message_size: u32,
    /// What the host imposes.
    pub overrides: Option<ActorConfigOverrides>,
    /// The names of the actions, for display.
    pub actions: Vec<String>,
    /// Changes to the inspector's tabs.
    pub inspector_tabs: Vec<InspectorTab>,
}

impl Default for ActorConfig {
    fn default() -> Self {
        const fn seconds(n: u64) -> Duration {
            Duration::from_secs(n)
        }
        Self {
            name: None,
            icon: None,
            has_database: false,
            opens_database: false,
            warns_of_manual_transactions: true,
            remote_sqlite: false,
            enable_actor_runtime_socket: false,
            has_state: false,
            can_hibernate_websocket: false,
            connects_requests: false,
            own_values: false,
            hibernates_connections: true,
            client_limits: ClientLimits::default(),
            durability: Durability::Reply,
            restarts_run: true,
            state_save_interval: seconds(1),
            create_state_timeout: seconds(5),
            on_create_timeout: seconds(5),
            create_vars_timeout: seconds(5),
            create_conn_state_timeout: seconds(5),
            on_before_connect_timeout: seconds(5),
            on_connect_timeout: seconds(5),
            on_migrate_timeout: seconds(30),
            on_wake_timeout: seconds(30),
            on_before_actor_start_timeout: seconds(5),
            action_timeout: seconds(60),
            on_request_timeout: None,
            sleep_timeout: seconds(30),
            no_sleep: false,
            sleep_grace_period: seconds(15),
            sleep_grace_period_overridden: false,
            connection_liveness_timeout: Duration::from_millis(2_500),
            connection_liveness_interval: seconds(5),
            max_connections: 65_536,
            max_queue_size: 1_000,
            queue_policies: Arc::default(),
            max_schedules: 1_000,
            max_queue_message_size: 64 * 1024,
            max_incoming_message_size: 64 * 1024,
            max_outgoing_message_size: 1024 * 1024,
            overrides: None,
            actions: Vec::new(),
            inspector_tabs: Vec::new(),
        }
    }
}

impl ActorConfig {
    /// Refuses settings that contradict each other or have no meaning. Whether
    /// the folder of an inspector tab exists is for the inspector to find out.
    pub fn validate(&self) -> Result<(), InvalidArgument> {
        inspector_tab::validate(&self.inspector_tabs)
    }

    /// The grace period after the host's cap (invariant 3).
    pub fn effective_sleep_grace_period(&self) -> Duration {
        let cap = self.overrides.and_then(|overrides| overrides.sleep_grace_period);
        cap.map_or(self.sleep_grace_period, |cap| cap.min(self.sleep_grace_period))
    }

    /// How long `onRequest` may take.
    pub fn request_timeout(&self) -> Duration {
        self.on_request_timeout.unwrap_or(self.action_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn with_grace(own: u64, cap: Option<u64>) -> ActorConfig {
        ActorConfig {
            sleep_grace_period: Duration::from_secs(own),
            overrides: Some(ActorConfigOverrides {
                sleep_grace_period: cap.map(Duration::from_secs),
            }),
            ..ActorConfig::default()
        }
    }

    #[test]
    fn a_host_shortens_the_grace_period_and_never_extends_it() {
        assert_eq!(ActorConfig::default().effective_sleep_grace_period(), 15 * SECOND);
        assert_eq!(with_grace(20, None).effective_sleep_grace_period(), 20 * SECOND);
        assert_eq!(with_grace(20, Some(5)).effective_sleep_grace_period(), 5 * SECOND);
        assert_eq!(with_grace(20, Some(40)).effective_sleep_grace_period(), 20 * SECOND);
    }

    #[test]
    fn a_request_may_take_as_long_as_an_action_unless_it_has_its_own_limit() {
        let mut config = ActorConfig { action_timeout: 7 * SECOND, ..ActorConfig::default() };
        assert_eq!(config.request_timeout(), 7 * SECOND);

        config.on_request_timeout = Some(SECOND);

        assert_eq!(config.request_timeout(), SECOND);
    }

    #[test]
    fn the_default_is_valid() {
        assert_eq!(ActorConfig::default().validate(), Ok(()));
    }
}
