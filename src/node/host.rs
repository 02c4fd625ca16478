//! Hosts, as JavaScript opens them.
//!
//! # Invariants
//!
//! 1. Every ticket is settled exactly once, unless its environment ends first.
//! 2. Nothing here waits: what takes time settles its ticket later.
//! 3. A host outlives the environment that opened it only for others that use it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
use super::gateway;
use super::guard::trip;
use super::hub::Hub;
use super::job::Job;
use super::runtime;
use crate::core::behavior::Reply;
use crate::error::{Error, Result};
use crate::host::embedded::{Departure, EmbeddedHost, EnvironmentId, HostError, OpenOptions};
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
    /// Tells apart the hosts, of which each may have been opened several times.
    pub(super) home: u64,
    /// It is being shut down: nothing more is let in through it.
    pub(super) leaving: Arc<AtomicBool>,
}

impl Opened {
    /// The number of the environment, as hosts have it.
    pub(super) fn environment(&self) -> EnvironmentId {
        EnvironmentId(self.hub.environment())
    }
}

/// The host of a number, also while it is being shut down.
pub(super) fn known(host: f64) -> Option<Opened> {
    let hosts = HOSTS.lock();
    hosts.as_ref().and_then(|hosts| hosts.get(&number(host))).cloned()
}

/// The host of a number, if it lets anything in.
///
/// # Errors
///
/// `registry/shut_down` once its shutdown has begun.
pub(super) fn opened(host: f64) -> Result<Opened> {
    let opened = known(host).ok_or_else(|| not_open(host))?;
    if opened.leaving.load(Ordering::Acquire) {
        return Err(HostError::ShutDown.into());
    }
    Ok(opened)
}

/// What is asked of a host that is not open: it was shut down, or never was.
fn not_open(host: f64) -> Error {
    if env::was_given(number(host)) {
        HostError::ShutDown.into()
    } else {
        invalid_argument("host", "it is not open")
    }
}

/// Ends an opening, and settles `ticket` when that is over.
///
/// # Errors
///
/// `registry/shut_down` when that has begun before.
pub(super) fn leave(
    host: f64,
    grace: Duration,
    ticket: f64,
    to: fn(&Departure) -> Value,
) -> Result<()> {
    let Opened { host: left, hub, leaving, .. } = opened(host)?;
    if leaving.swap(true, Ordering::AcqRel) {
        return Err(HostError::ShutDown.into());
    }
    // Both at once: requests that have begun wait for the actors, which come to rest.
    let closed = gateway::leave(number(host), grace);
    let parted = left.leave(EnvironmentId(hub.environment()), grace);
    settle_with(&hub, ticket, async move {
        let (departure, ()) = futures::future::join(parted, closed).await;
        // Until now the end of the environment had to find it.
        forget(host);
        Ok(Some(encoded(&to(&departure))))
    });
    Ok(())
}

/// An opening has ended.
pub(super) fn forget(host: f64) {
    let ended = HOSTS.lock().as_mut().and_then(|hosts| hosts.remove(&number(host)));
    drop(ended);
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
    let ours: Vec<(u64, Opened)> = {
        let mut hosts = HOSTS.lock();
        let Some(hosts) = hosts.as_mut() else { return };
        hosts.extract_if(|_, opened| opened.hub.environment() == environment).collect()
    };
    for (opening, opened) in ours {
        gateway::cut_off(opening);
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
/// path it lives in memory. Settles `ticket` with `{"host", "home"}`: the number of this
/// opening, and one that all openings of the same host have in common.
#[napi(catch_unwind)]
pub fn open_host(env: &Env, environment: f64, config: String, ticket: f64) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let target = Arc::clone(&hub);
    settle_with(&hub, ticket, async move {
        let environment = EnvironmentId(target.environment());
        let host = open(&config, environment).await?;
        let id = next_number();
        let home = keep(id, host, &target);
        // An environment that ended meanwhile has looked for its hosts already.
        if target.is_dead() {
            self::environment_gone(environment.0);
        }
        Ok(Some(encoded(&json!({ "host": id, "home": home }))))
    });
    Ok(())
}

/// Keeps what was opened under a number, and gives the number of its home.
pub(super) fn keep(id: u64, host: Arc<EmbeddedHost>, hub: &Arc<Hub>) -> u64 {
    let mut hosts = HOSTS.lock();
    let hosts = hosts.get_or_insert_default();
    let same = hosts.values().find(|opened| Arc::ptr_eq(&opened.host, &host));
    let home = same.map_or(id, |opened| opened.home);
    hosts.insert(id, Opened { host, hub: Arc::clone(hub), home, leaving: Arc::default() });
    home
}

async fn open(config: &str, environment: EnvironmentId) -> Result<Arc<EmbeddedHost>> {
    let config: OpenConfig =
        serde_json::from_str(config).map_err(|error| invalid_argument("config", error))?;
    let location = match config.path {
        Some(path) => StoreLocation::Folder(path.into()),
        None => StoreLocation::Memory,
    };
    let spawner = runtime::spawner()?.clone();
    let mut options = OpenOptions::new(location, environment, Clock::system(), spawner);
    options.shared = config.shared;
    if let Some(ms) = config.lock_timeout_ms {
        options.lock_timeout = Duration::from_millis(ms);
    }
    EmbeddedHost::open(options).await
}

/// Has a host run actors of `name` in this environment, by a factory. A later
/// registration of the same name in the same environment replaces an earlier one: from
/// the next start of an actor on, or with `evict` at once, for which it falls asleep.
#[napi(catch_unwind)]
pub fn register(
    env: &Env,
    host: f64,
    name: String,
    factory: &NapiActorFactory,
    evict: Option<bool>,
) -> napi::Result<()> {
    trip();
    let opened = opened(host).map_err(|error| thrown(env, error))?;
    let name = ActorName::new(name).map_err(|error| thrown(env, error))?;
    let factory = NodeFactory::new(Arc::clone(&opened.hub), factory.parts());
    let factory = Arc::new(factory);
    if evict == Some(true) {
        opened.host.reload(opened.environment(), name, factory);
    } else {
        opened.host.register(opened.environment(), name, factory);
    }
    Ok(())
}
