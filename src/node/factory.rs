//! The contract's `NapiActorFactory`: a type of actors, as its author hands it over.
//!
//! Rust reads which functions there are and keeps none of them: the JavaScript
//! half keeps them under the factory's number.

use std::num::NonZeroU32;
use std::sync::Arc;

use napi::bindgen_prelude::{JsObjectValue, Object};
use napi::{Env, ValueType};
use napi_derive::napi;

use super::env::{next_number, number, to_js};
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::inspector::check_sources;
use crate::core::behavior::Hooks;
use crate::core::config::{ActorConfig, ActorConfigInput, ClientLimits, Durability, InspectorTab};
use crate::core::connections::ConnHooks;
use crate::core::queue::{Backoff, QueuePolicy};
use crate::error::Error;
use crate::time::Duration;

/// An action, for display.
#[napi(object)]
pub struct JsActionDefinition {
    /// What callers say.
    pub name: String,
}

/// What becomes of messages of one name that are not completed.
#[napi(object)]
pub struct JsQueuePolicy {
    /// The name that messages are sent under.
    pub name: String,
    /// After how many deliveries a message is given up, from 1; absent for never.
    pub max_deliveries: Option<u32>,
    /// The pause after the first delivery; absent for none.
    pub backoff_initial_ms: Option<f64>,
    /// The longest pause; absent for the first.
    pub backoff_max_ms: Option<f64>,
}

/// A tab of the inspector.
#[napi(object)]
pub struct JsInspectorTab {
    /// Letters, digits, `_` and `-`; of a hidden tab, one of the inspector's own.
    pub id: String,
    /// What a custom tab is called; required there.
    pub label: Option<String>,
    /// The folder with a custom tab's files; required there.
    pub source: Option<String>,
    /// The icon of a custom tab.
    pub icon: Option<String>,
    /// Hides a tab of the inspector's own.
    pub hidden: Option<bool>,
}

/// The settings of a type of actors; all are optional, times are milliseconds and
/// sizes bytes.
#[napi(object)]
#[derive(Default)]
#[allow(missing_docs, reason = "each field has the documentation of its namesake")]
pub struct JsActorConfig {
    pub name: Option<String>,
    pub icon: Option<String>,
    /// RivetKit says it of every type, also of those that never use theirs.
    pub has_database: Option<bool>,
    /// Whether its file is opened when an actor starts. Without it, with its first statement.
    pub opens_database: Option<bool>,
    /// Whether to warn once of a transaction that is begun by hand. Without it, yes.
    pub warns_of_manual_transactions: Option<bool>,
    pub remote_sqlite: Option<bool>,
    pub enable_actor_runtime_socket: Option<bool>,
    pub has_state: Option<bool>,
    pub can_hibernate_websocket: Option<bool>,
    /// Whether a raw request has a connection of its own, with its hooks. Without it, no.
    pub connects_requests: Option<bool>,
    /// Whether values have a form of their own, which an inspector has translated. Without it, no.
    pub own_values: Option<bool>,
    /// Without it, as `canHibernateWebsocket`.
    pub hibernates_connections: Option<bool>,
    pub messages_per_second: Option<u32>,
    pub message_burst: Option<u32>,
    pub connections_per_ip: Option<u32>,
    /// When answers leave: `reply` once what they may reveal is durable,
    /// `interval` at once. Without it, `interval`.
    #[napi(ts_type = "'reply' | 'interval'")]
    pub durability: Option<String>,
    /// Whether a run handler that failed begins again. Without it, no.
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
    pub queue_policies: Option<Vec<JsQueuePolicy>>,
    pub max_schedules: Option<u32>,
    pub max_queue_message_size: Option<u32>,
    pub max_incoming_message_size: Option<u32>,
    pub max_outgoing_message_size: Option<u32>,
    pub actions: Option<Vec<JsActionDefinition>>,
    pub inspector_tabs: Option<Vec<JsInspectorTab>>,
}

/// A type of actors: its functions and its settings.
#[napi]
pub struct NapiActorFactory {
    factory: u64,
    config: Arc<ActorConfig>,
    hooks: Hooks,
    /// Whether it is asked of each raw socket whether that outlives a sleep.
    chooses: bool,
}

#[napi]
impl NapiActorFactory {
    /// Reads which functions `callbacks` has, and the settings. Throws when the
    /// settings contradict each other.
    #[napi(
        constructor,
        catch_unwind,
        ts_args_type = "callbacks: object, config?: JsActorConfig | undefined | null"
    )]
    pub fn new(
        env: Env,
        callbacks: Object<'_>,
        config: Option<JsActorConfig>,
    ) -> napi::Result<Self> {
        trip();
        let config = settings(config.unwrap_or_default()).map_err(|error| thrown(&env, error))?;
        let chooses = has(&callbacks, "hibernatesWebSocket")?;
        let (factory, hooks) = (next_number(), hooks(&callbacks)?);
        Ok(Self { factory, config: Arc::new(config), hooks, chooses })
    }

    /// The number under which the JavaScript half keeps the functions.
    #[napi(getter, catch_unwind)]
    pub fn number(&self) -> f64 {
        trip();
        to_js(self.factory)
    }

    /// Whether answers wait for what they may reveal to be durable.
    #[napi(getter, catch_unwind)]
    pub fn gated(&self) -> bool {
        trip();
        self.config.durability == Durability::Reply
    }
}

impl NapiActorFactory {
    /// What a host needs to run actors of this type.
    pub(super) fn parts(&self) -> FactoryParts {
        let Self { factory, hooks, chooses, .. } = *self;
        FactoryParts { factory, config: Arc::clone(&self.config), hooks, chooses }
    }
}

/// What a host needs to run actors of a type.
pub(super) struct FactoryParts {
    /// The number under which the JavaScript half keeps the functions.
    pub(super) factory: u64,
    /// The settings.
    pub(super) config: Arc<ActorConfig>,
    /// Which functions there are.
    pub(super) hooks: Hooks,
    /// Whether it is asked of each raw socket whether that outlives a sleep.
    pub(super) chooses: bool,
}

fn has(callbacks: &Object<'_>, name: &str) -> napi::Result<bool> {
    let value: napi::bindgen_prelude::Unknown<'_> = callbacks.get_named_property(name)?;
    Ok(value.get_type()? == ValueType::Function)
}

/// Which functions the author wrote.
fn hooks(callbacks: &Object<'_>) -> napi::Result<Hooks> {
    let has = |name: &str| has(callbacks, name);
    Ok(Hooks {
        migrate: has("onMigrate")?,
        create_state: has("createState")?,
        create: has("onCreate")?,
        create_vars: has("createVars")?,
        wake: has("onWake")?,
        before_start: has("onBeforeActorStart")?,
        sleep: has("onSleep")?,
        destroy: has("onDestroy")?,
        run: has("run")?,
        serialize_state: has("serializeState")? || has("encodeState")?,
        connections: ConnHooks {
            before_connect: has("onBeforeConnect")?,
            create_state: has("createConnState")?,
            connect: has("onConnect")?,
            disconnect: has("onDisconnectFinal")? || has("onDisconnect")?,
            before_subscribe: has("onBeforeSubscribe")?,
        },
    })
}

fn policy(given: JsQueuePolicy) -> (String, QueuePolicy) {
    let span = |ms: f64| Duration::from_millis(number(ms.ceil()));
    let backoff = given.backoff_initial_ms.map(|initial| Backoff {
        initial: span(initial),
        max: span(given.backoff_max_ms.unwrap_or(initial)),
    });
    let max_deliveries = given.max_deliveries.and_then(NonZeroU32::new);
    (given.name, QueuePolicy { max_deliveries, backoff })
}

fn settings(given: JsActorConfig) -> Result<ActorConfig, Error> {
    let durability = match given.durability.as_deref() {
        None | Some("interval") => Durability::Interval,
        Some("reply") => Durability::Reply,
        Some(other) => {
            let reason = format!("{other:?} is neither \"reply\" nor \"interval\"");
            return Err(invalid_argument("durability", reason));
        }
    };
    let tab = |tab: JsInspectorTab| InspectorTab {
        id: tab.id,
        label: tab.label,
        source: tab.source,
        icon: tab.icon,
        hidden: tab.hidden.unwrap_or(false),
    };
    let config = ActorConfig::from_input(ActorConfigInput {
        name: given.name,
        icon: given.icon,
        has_database: given.has_database,
        opens_database: given.opens_database,
        warns_of_manual_transactions: given.warns_of_manual_transactions,
        remote_sqlite: given.remote_sqlite,
        enable_actor_runtime_socket: given.enable_actor_runtime_socket,
        has_state: given.has_state,
        can_hibernate_websocket: given.can_hibernate_websocket,
        connects_requests: given.connects_requests,
        own_values: given.own_values,
        hibernates_connections: Some(
            given.hibernates_connections.or(given.can_hibernate_websocket).unwrap_or(false),
        ),
        client_limits: ClientLimits {
            messages_per_second: given.messages_per_second,
            burst: given.message_burst,
            connections_per_ip: given.connections_per_ip,
        },
        durability: Some(durability),
        restarts_run: Some(given.restarts_run.unwrap_or(false)),
        state_save_interval_ms: given.state_save_interval_ms,
        create_state_timeout_ms: given.create_state_timeout_ms,
        on_create_timeout_ms: given.on_create_timeout_ms,
        create_vars_timeout_ms: given.create_vars_timeout_ms,
        create_conn_state_timeout_ms: given.create_conn_state_timeout_ms,
        on_before_connect_timeout_ms: given.on_before_connect_timeout_ms,
        on_connect_timeout_ms: given.on_connect_timeout_ms,
        on_migrate_timeout_ms: given.on_migrate_timeout_ms,
        on_wake_timeout_ms: given.on_wake_timeout_ms,
        on_before_actor_start_timeout_ms: given.on_before_actor_start_timeout_ms,
        action_timeout_ms: given.action_timeout_ms,
        on_request_timeout_ms: given.on_request_timeout_ms,
        sleep_timeout_ms: given.sleep_timeout_ms,
        no_sleep: given.no_sleep,
        sleep_grace_period_ms: given.sleep_grace_period_ms,
        connection_liveness_timeout_ms: given.connection_liveness_timeout_ms,
        connection_liveness_interval_ms: given.connection_liveness_interval_ms,
        max_connections: given.max_connections,
        max_queue_size: given.max_queue_size,
        queue_policies: given.queue_policies.unwrap_or_default().into_iter().map(policy).collect(),
        max_schedules: given.max_schedules,
        max_queue_message_size: given.max_queue_message_size,
        max_incoming_message_size: given.max_incoming_message_size,
        max_outgoing_message_size: given.max_outgoing_message_size,
        actions: given.actions.unwrap_or_default().into_iter().map(|action| action.name).collect(),
        inspector_tabs: given.inspector_tabs.unwrap_or_default().into_iter().map(tab).collect(),
    });
    config.validate()?;
    check_sources(&config.inspector_tabs)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_choice_answers_do_not_wait_and_a_failed_run_stays_down() {
        let config = settings(JsActorConfig::default()).unwrap();

        assert_eq!(config.durability, Durability::Interval);
        assert!(!config.restarts_run);
    }

    #[test]
    fn an_unknown_durability_is_refused_by_name() {
        let given = JsActorConfig { durability: Some("never".into()), ..JsActorConfig::default() };

        let error = settings(given).unwrap_err();

        assert!(error.is("napi", "invalid_argument"));
        assert!(error.message.contains("\"never\""), "{}", error.message);
    }
}
