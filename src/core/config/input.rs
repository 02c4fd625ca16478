//! Settings as they are given: sparse, and with times in milliseconds.

use std::collections::HashMap;

use super::{ActorConfig, ClientLimits, Durability, InspectorTab};
use crate::core::queue::QueuePolicy;
use crate::time::Duration;

/// The given part of an [`ActorConfig`]: what is `None` keeps its default. The
/// meaning of each field is that of its namesake.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each field has the documentation of its namesake")]
pub struct ActorConfigInput {
    pub name: Option<String>,
    pub icon: Option<String>,
    pub has_database: Option<bool>,
    pub opens_database: Option<bool>,
    pub warns_of_manual_transactions: Option<bool>,
    pub remote_sqlite: Option<bool>,
    pub enable_actor_runtime_socket: Option<bool>,
    pub has_state: Option<bool>,
    pub can_hibernate_websocket: Option<bool>,
    pub connects_requests: Option<bool>,
    pub own_values: Option<bool>,
    pub hibernates_connections: Option<bool>,
    pub client_limits: ClientLimits,
    pub durability: Option<Durability>,
    pub restarts_run: Option<bool>,
    pub state_save_interval_ms: Option<u32>,
    pub create_state_timeout_ms: Option<u32>,
    pub on_create_timeout_ms: Option<u32>,
    pub create_vars_timeout_ms: Option<u32>,
    pub create_conn_state_timeout_ms: Option<u32>,
    pub on_before_connect_timeout_ms: Option<u32>,
    pub on_connect_timeout_ms: Option<u32>,
    pub on_migrate_timeout_ms: Option<u32>,
    pub on_wake_timeout_ms: Option<u32>,
    pub on_before_actor_start_timeout_ms: Option<u32>,
    pub action_timeout_ms: Option<u32>,
    pub on_request_timeout_ms: Option<u32>,
    pub sleep_timeout_ms: Option<u32>,
    pub no_sleep: Option<bool>,
    pub sleep_grace_period_ms: Option<u32>,
    pub connection_liveness_timeout_ms: Option<u32>,
    pub connection_liveness_interval_ms: Option<u32>,
    pub max_connections: Option<u32>,
    pub max_queue_size: Option<u32>,
    pub queue_policies: HashMap<String, QueuePolicy>,
    pub max_schedules: Option<u32>,
    pub max_queue_message_size: Option<u32>,
    pub max_incoming_message_size: Option<u32>,
    pub max_outgoing_message_size: Option<u32>,
    pub actions: Vec<String>,
    pub inspector_tabs: Vec<InspectorTab>,
}

fn duration(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

impl ActorConfig {
    /// Completes `input` with the defaults.
    pub fn from_input(input: ActorConfigInput) -> Self {
        let base = Self::default();
        let or = |ms: Option<u32>, default: Duration| ms.map_or(default, duration);
        Self {
            name: input.name,
            icon: input.icon,
            has_database: input.has_database.unwrap_or(base.has_database),
            opens_database: input.opens_database.unwrap_or(base.opens_database),
            warns_of_manual_transactions: input
                .warns_of_manual_transactions
                .unwrap_or(base.warns_of_manual_transactions),
            remote_sqlite: input.remote_sqlite.unwrap_or(base.remote_sqlite),
            enable_actor_runtime_socket: input
                .enable_actor_runtime_socket
                .unwrap_or(base.enable_actor_runtime_socket),
            has_state: input.has_state.unwrap_or(base.has_state),
            own_values: input.own_values.unwrap_or(base.own_values),
            connects_requests: input.connects_requests.unwrap_or(base.connects_requests),
            can_hibernate_websocket: input
                .can_hibernate_websocket
                .unwrap_or(base.can_hibernate_websocket),
            hibernates_connections: input
                .hibernates_connections
                .unwrap_or(base.hibernates_connections),
            client_limits: input.client_limits,
            durability: input.durability.unwrap_or(base.durability),
            restarts_run: input.restarts_run.unwrap_or(base.restarts_run),
            state_save_interval: or(input.state_save_interval_ms, base.state_save_interval),
            create_state_timeout: or(input.create_state_timeout_ms, base.create_state_timeout),
            on_create_timeout: or(input.on_create_timeout_ms, base.on_create_timeout),
            create_vars_timeout: or(input.create_vars_timeout_ms, base.create_vars_timeout),
            create_conn_state_timeout: or(
                input.create_conn_state_timeout_ms,
                base.create_conn_state_timeout,
            ),
            on_before_connect_timeout: or(
                input.on_before_connect_timeout_ms,
                base.on_before_connect_timeout,
            ),
            on_connect_timeout: or(input.on_connect_timeout_ms, base.on_connect_timeout),
            on_migrate_timeout: or(input.on_migrate_timeout_ms, base.on_migrate_timeout),
            on_wake_timeout: or(input.on_wake_timeout_ms, base.on_wake_timeout),
            on_before_actor_start_timeout: or(
                input.on_before_actor_start_timeout_ms,
                base.on_before_actor_start_timeout,
            ),
            action_timeout: or(input.action_timeout_ms, base.action_timeout),
            on_request_timeout: input.on_request_timeout_ms.map(duration),
            sleep_timeout: or(input.sleep_timeout_ms, base.sleep_timeout),
            no_sleep: input.no_sleep.unwrap_or(base.no_sleep),
            sleep_grace_period: or(input.sleep_grace_period_ms, base.sleep_grace_period),
            sleep_grace_period_overridden: input.sleep_grace_period_ms.is_some(),
            connection_liveness_timeout: or(
                input.connection_liveness_timeout_ms,
                base.connection_liveness_timeout,
            ),
            connection_liveness_interval: or(
                input.connection_liveness_interval_ms,
                base.connection_liveness_interval,
            ),
            max_connections: input.max_connections.unwrap_or(base.max_connections),
            max_queue_size: input.max_queue_size.unwrap_or(base.max_queue_size),
            queue_policies: input.queue_policies.into(),
            max_schedules: input.max_schedules.unwrap_or(base.max_schedules),
            max_queue_message_size: input
                .max_queue_message_size
                .unwrap_or(base.max_queue_message_size),
            max_incoming_message_size: input
                .max_incoming_message_size
                .unwrap_or(base.max_incoming_message_size),
            max_outgoing_message_size: input
                .max_outgoing_message_size
                .unwrap_or(base.max_outgoing_message_size),
            overrides: None,
            actions: input.actions,
            inspector_tabs: input.inspector_tabs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_replaces_the_default_and_nothing_else_changes() {
        let config = ActorConfig::from_input(ActorConfigInput {
            on_migrate_timeout_ms: Some(30_000),
            sleep_grace_period_ms: Some(12_000),
            max_queue_size: Some(42),
            max_schedules: Some(84),
            ..ActorConfigInput::default()
        });

        let expected = ActorConfig {
            on_migrate_timeout: Duration::from_secs(30),
            sleep_grace_period: Duration::from_secs(12),
            sleep_grace_period_overridden: true,
            max_queue_size: 42,
            max_schedules: 84,
            ..ActorConfig::default()
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn an_empty_input_gives_the_defaults() {
        assert_eq!(ActorConfig::from_input(ActorConfigInput::default()), ActorConfig::default());
    }

    #[test]
    fn zero_is_kept_and_not_taken_for_absent() {
        let config = ActorConfig::from_input(ActorConfigInput {
            sleep_timeout_ms: Some(0),
            max_queue_size: Some(0),
            on_request_timeout_ms: Some(0),
            ..ActorConfigInput::default()
        });

        assert_eq!(config.sleep_timeout, Duration::ZERO);
        assert_eq!(config.max_queue_size, 0);
        assert_eq!(config.request_timeout(), Duration::ZERO);
    }
}
