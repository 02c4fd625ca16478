//! Callers: opening a host, finding actors, calling them, managing them.
//!
//! # Invariants
//!
//! 1. Every ticket is settled exactly once, unless its environment ends first.
//! 2. Nothing here waits: what takes time settles its ticket later.
//! 3. Arguments that cannot be read settle the ticket with the error.

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
use super::env::{self, next_number, number, to_js};
use super::error::{invalid_argument, thrown};
use super::factory::NapiActorFactory;
use super::guard::trip;
use super::hub::Hub;
use super::job::{Job, caller_of};
use super::{origin, runtime};
use crate::core::behavior::Reply;
use crate::core::context::CallRequest;
use crate::error::{Error, Result};
use crate::host::embedded::{Address, Create, EmbeddedHost, EnvironmentId, OpenOptions};
use crate::ids::{ActorId, ActorKey, ActorName, KeyPart};
use crate::store::{ActorRow, ListFilter, StoreLocation};
use crate::time::{Clock, Duration};

static HOSTS: Mutex<Option<HashMap<u64, Opened>>> = Mutex::new(None);

/// A host, as one environment opened it.
#[derive(Clone)]
struct Opened {
    host: Arc<EmbeddedHost>,
    hub: Arc<Hub>,
}

impl Opened {
    fn environment(&self) -> EnvironmentId {
        EnvironmentId(self.hub.environment())
    }
}

fn opened(host: f64) -> Option<Opened> {
    HOSTS.lock().as_ref()?.get(&number(host)).cloned()
}

fn not_open() -> Error {
    invalid_argument("host", "it is not open")
}

/// A reply that settles a ticket.
pub(super) fn settles(hub: &Arc<Hub>, ticket: u64) -> Reply<Option<Bytes>> {
    let hub = Arc::clone(hub);
    // Refused by a hub that is dead: nobody is left to hear it.
    Reply::new(move |result| drop(hub.push(Job::Settled { ticket, result })))
}

/// A reply that settles a ticket with JSON.
fn settles_json<T: 'static>(hub: &Arc<Hub>, ticket: f64, to: fn(T) -> Value) -> Reply<T> {
    let reply = settles(hub, number(ticket));
    Reply::new(move |result: Result<T>| reply.send(result.map(|value| Some(encoded(&to(value))))))
}

fn encoded(value: &Value) -> Bytes {
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
    /// How long to wait for a folder that another process has, in milliseconds.
    lock_timeout_ms: Option<u64>,
}

/// Which actor is meant.
#[derive(Deserialize)]
#[serde(untagged)]
enum Target {
    Id {
        id: String,
    },
    Key {
        name: String,
        key: Vec<KeyPart>,
        #[serde(default)]
        create: bool,
    },
}

impl Target {
    fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| invalid_argument("target", error))
    }

    fn into_address(self, input: Option<Bytes>) -> Result<Address> {
        match self {
            Self::Id { id } => actor_id(&id).map(Address::Id),
            Self::Key { name, key, create } => {
                let (name, key) = (ActorName::new(name)?, ActorKey::new(key)?);
                Ok(Address::Key { name, key, create: create.then_some(Create { input }) })
            }
        }
    }
}

fn actor_id(text: &str) -> Result<ActorId> {
    ActorId::parse(text)
        .ok_or_else(|| invalid_argument("id", format!("{text:?} is not the id of an actor")))
}

fn row_json(row: &ActorRow) -> Value {
    json!({
        "id": row.id.to_string(),
        "name": row.name.as_str(),
        "key": row.key,
        "createdAt": row.created_at_ms,
    })
}

/// Opens a host for an environment, by `{"path", "lockTimeoutMs"}`; without a
/// path it lives in memory. Settles `ticket` with `{"host": number}`.
#[napi(catch_unwind)]
pub fn open_host(env: &Env, environment: f64, config: String, ticket: f64) -> napi::Result<()> {
    trip();
    let Some(hub) = env::hub(environment) else {
        return Err(thrown(env, invalid_argument("environment", "it is not open")));
    };
    let target = Arc::clone(&hub);
    settle_with(&hub, ticket, async move {
        let host = open(&config).await?;
        let id = next_number();
        let opened = Opened { host, hub: target };
        HOSTS.lock().get_or_insert_default().insert(id, opened.clone());
        // An environment that ended meanwhile has looked for its hosts already.
        if opened.hub.is_dead() {
            close(id);
        }
        Ok(Some(encoded(&json!({ "host": id }))))
    });
    Ok(())
}

async fn open(config: &str) -> Result<Arc<EmbeddedHost>> {
    let config: OpenConfig =
        serde_json::from_str(config).map_err(|error| invalid_argument("config", error))?;
    let location = match config.path {
        Some(path) => StoreLocation::Folder(path.into()),
        None => StoreLocation::Memory,
    };
    let mut options =
        OpenOptions::new(location, Clock::system(), runtime::spawner()?.handle().clone());
    if let Some(ms) = config.lock_timeout_ms {
        options.lock_timeout = Duration::from_millis(ms);
    }
    EmbeddedHost::open(options).await
}

fn close(id: u64) {
    let closed = HOSTS.lock().as_mut().and_then(|hosts| hosts.remove(&id));
    drop(closed);
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
    let opened = opened(host).ok_or_else(|| thrown(env, not_open()))?;
    let name = ActorName::new(name).map_err(|error| thrown(env, error))?;
    let factory = NodeFactory::new(Arc::clone(&opened.hub), factory.parts());
    opened.host.register(opened.environment(), name, Arc::new(factory));
    Ok(())
}

/// The number of the live generation of `target`, if its author's side runs in
/// the environment that opened the host, else 0.
#[napi(catch_unwind)]
pub fn live(host: f64, target: String) -> f64 {
    trip();
    let Some(opened) = opened(host) else { return 0.0 };
    let address = Target::read(&target).and_then(|target| target.into_address(None));
    let context = address.ok().and_then(|address| opened.host.live(&address));
    context.map_or(0.0, |context| to_js(env::number_of(opened.hub.environment(), &context)))
}

/// Calls an action of `target` with encoded arguments, starting the actor where it
/// sleeps. Settles `ticket` with the encoded result.
#[napi(catch_unwind)]
pub fn submit(
    env: &Env,
    host: f64,
    target: String,
    action: String,
    args: &[u8],
    caller: u32,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let opened = opened(host).ok_or_else(|| thrown(env, not_open()))?;
    let reply = settles(&opened.hub, number(ticket));
    let address = Target::read(&target).and_then(|target| target.into_address(None));
    match address {
        Err(error) => reply.send(Err(error)),
        Ok(address) => {
            let request = CallRequest {
                name: action,
                args: Bytes::copy_from_slice(args),
                caller: caller_of(caller),
                origin: origin::of(opened.hub.environment(), number(ticket)),
                reply: Reply::new(move |result| reply.send(result.map(Some))),
            };
            opened.host.call(address, request, opened.environment());
        }
    }
    Ok(())
}

/// Finds (`get`), finds or creates (`getOrCreate`), or creates (`create`) an actor
/// without starting it. Settles `ticket` with its row as JSON.
#[napi(
    catch_unwind,
    ts_args_type = "host: number, target: string, mode: 'get' | 'getOrCreate' | 'create', input: Uint8Array | null, ticket: number"
)]
pub fn ensure(
    env: &Env,
    host: f64,
    target: String,
    mode: String,
    input: Option<&[u8]>,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let opened = opened(host).ok_or_else(|| thrown(env, not_open()))?;
    let reply = settles_json(&opened.hub, ticket, |row: ActorRow| row_json(&row));
    let input = input.map(Bytes::copy_from_slice);
    if let Err((error, reply)) = find(&opened, &target, &mode, input, reply) {
        reply.send(Err(error));
    }
    Ok(())
}

/// Hands `reply` on, or back with what is wrong with the arguments.
fn find(
    opened: &Opened,
    target: &str,
    mode: &str,
    input: Option<Bytes>,
    reply: Reply<ActorRow>,
) -> std::result::Result<(), (Error, Reply<ActorRow>)> {
    let target = match Target::read(target) {
        Ok(target) => target,
        Err(error) => return Err((error, reply)),
    };
    let create = match mode {
        "get" => false,
        "getOrCreate" => true,
        "create" => return make(opened, target, input, reply),
        other => return Err((invalid_argument("mode", format!("{other:?} is unknown")), reply)),
    };
    let target = match target {
        Target::Key { name, key, .. } => Target::Key { name, key, create },
        by_id => by_id,
    };
    match target.into_address(input) {
        Ok(address) => opened.host.resolve(address, opened.environment(), reply),
        Err(error) => return Err((error, reply)),
    }
    Ok(())
}

fn make(
    opened: &Opened,
    target: Target,
    input: Option<Bytes>,
    reply: Reply<ActorRow>,
) -> std::result::Result<(), (Error, Reply<ActorRow>)> {
    match target.into_address(None) {
        Ok(Address::Key { name, key, .. }) => {
            opened.host.create(name, key, input, reply);
            Ok(())
        }
        Ok(Address::Id(_)) => {
            Err((invalid_argument("target", "an actor is created by name and key"), reply))
        }
        Err(error) => Err((error, reply)),
    }
}
