//! Hosts, as JavaScript opens them.
//!
//! # Invariants
//!
//! 1. Every ticket is settled exactly once, unless its environment ends first.
//! 2. Nothing here waits: what takes time settles its ticket later.
//! 3. A host outlives the environment that opened it only for others that use it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi_derive::napi;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::behavior::NodeFactory;
use super::context::settle_with;
use super::env::{self, next_number, number};
use super::error::{invalid_argument, thrown};
use super::factory::NapiActorFactory;
use super::guard::trip;
use super::hub::Hub;
use super::job::Job;
use super::runtime;
use crate::core::behavior::Reply;
use crate::error::Result;
use crate::host::embedded::{EmbeddedHost, EnvironmentId, OpenOptions};
use crate::ids::ActorName;
use crate::store::StoreLocation;
use crate::time::{Clock, Duration};

static HOSTS: Mutex<Option<HashMap<u64, Opened>>> = Mutex::new(None);

/// A host, as one environment opened it.
#[derive(Clone)]
pub(super) struct Opened {
    /// The host.
    pub(super) host: Arc<EmbeddedHost>,
    /// The environment.
    pub(super) hub: Arc<Hub>,
}

impl Opened {
    /// The number of the environment, as hosts have it.
    pub(super) fn environment(&self) -> EnvironmentId {
        EnvironmentId(self.hub.environment())
    }
}

/// The host of a number.
pub(super) fn opened(host: f64) -> Result<Opened> {
    let hosts = HOSTS.lock();
    let opened = hosts.as_ref().and_then(|hosts| hosts.get(&number(host)));
    opened.cloned().ok_or_else(|| invalid_argument("host", "it is not open"))
}

/// A reply that settles a ticket.
pub(super) fn settles(hub: &Arc<Hub>, ticket: u64) -> Reply<Option<Bytes>> {
    let hub = Arc::clone(hub);
    // Refused by a hub that is dead: nobody is left to hear it.
    Reply::new(move |result| drop(hub.push(Job::Settled { ticket, result })))
}

/// A reply that settles a ticket with JSON.
pub(super) fn settles_json<T: 'static>(
    hub: &Arc<Hub>,
    ticket: f64,
    to: fn(T) -> Value,
) -> Reply<T> {
    let reply = settles(hub, number(ticket));
    Reply::new(move |result: Result<T>| reply.send(result.map(|value| Some(encoded(&to(value))))))
}

/// A value as JSON.
pub(super) fn encoded(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// Ends what an environment had open.
pub(super) fn environment_gone(environment: u64) {
    let ours: Vec<Opened> = {
        let mut hosts = HOSTS.lock();
        let Some(hosts) = hosts.as_mut() else { return };
        hosts
            .extract_if(|_, opened| opened.hub.environment() == environment)
            .map(|(_, opened)| opened)
            .collect()
    };
    for opened in ours {
        opened.host.environment_gone(EnvironmentId(environment));
    }
}

/// Which host to open.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenConfig {
    /// The folder; absent for one in memory.
    path: Option<String>,
    /// Whether other environments of this process may use the folder too.
    #[serde(default)]
    shared: bool,
    /// How long to wait for a folder that another process has, in milliseconds.
    lock_timeout_ms: Option<u64>,
}

/// Opens a host for an environment, by `{"path", "shared", "lockTimeoutMs"}`; without a
/// path it lives in memory. Settles `ticket` with `{"host": number}`.
#[napi(catch_unwind)]
pub fn open_host(env: &Env, environment: f64, config: String, ticket: f64) -> napi::Result<()> {
    trip();
    let Some(hub) = env::hub(environment) else {
        return Err(thrown(env, invalid_argument("environment", "it is not open")));
    };
    let target = Arc::clone(&hub);
    settle_with(&hub, ticket, async move {
        let environment = EnvironmentId(target.environment());
        let host = open(&config, environment).await?;
        let id = next_number();
        let opened = Opened { host, hub: target };
        HOSTS.lock().get_or_insert_default().insert(id, opened.clone());
        // An environment that ended meanwhile has looked for its hosts already.
        if opened.hub.is_dead() {
            self::environment_gone(environment.0);
        }
        Ok(Some(encoded(&json!({ "host": id }))))
    });
    Ok(())
}

async fn open(config: &str, environment: EnvironmentId) -> Result<Arc<EmbeddedHost>> {
    let config: OpenConfig =
        serde_json::from_str(config).map_err(|error| invalid_argument("config", error))?;
    let location = match config.path {
        Some(path) => StoreLocation::Folder(path.into()),
        None => StoreLocation::Memory,
    };
    let handle = runtime::spawner()?.handle().clone();
    let mut options = OpenOptions::new(location, environment, Clock::system(), handle);
    options.shared = config.shared;
    if let Some(ms) = config.lock_timeout_ms {
        options.lock_timeout = Duration::from_millis(ms);
    }
    EmbeddedHost::open(options).await
}

/// Has a host run actors of `name` in this environment, by a factory. A later
/// registration of the same name in the same environment replaces an earlier one.
#[napi(catch_unwind)]
pub fn register(
    env: &Env,
    host: f64,
    name: String,
    factory: &NapiActorFactory,
) -> napi::Result<()> {
    trip();
    let opened = opened(host).map_err(|error| thrown(env, error))?;
    let name = ActorName::new(name).map_err(|error| thrown(env, error))?;
    let factory = NodeFactory::new(Arc::clone(&opened.hub), factory.parts());
    opened.host.register(opened.environment(), name, Arc::new(factory));
    Ok(())
}
