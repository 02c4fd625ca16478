//! Callers: finding actors and calling them.
//!
//! # Invariants
//!
//! 1. Arguments that cannot be read settle the ticket with the error.
//! 2. Calls of one environment to one target keep their order.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cancel;
use super::env::{self, number, to_js};
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::host::{Opened, known, opened, settles, settles_json};
use super::hub::Hub;
use super::job::caller_of;
use super::origin;
use crate::core::behavior::Reply;
use crate::core::context::CallRequest;
use crate::error::{Error, ErrorCode, Result};
use crate::host::embedded::{Address, Create};
use crate::ids::{ActorId, ActorKey, ActorName, KeyPart};
use crate::store::ActorRow;

/// Which actor is meant.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Target {
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
    /// Reads its JSON.
    pub(super) fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| invalid_argument("target", error))
    }

    /// The address, with what its creator passes.
    pub(super) fn into_address(self, input: Option<Bytes>) -> Result<Address> {
        match self {
            Self::Id { id } => actor_id(&id).map(Address::Id),
            Self::Key { name, key, create } => {
                let (name, key) = (ActorName::new(name)?, ActorKey::new(key)?);
                Ok(Address::Key { name, key, create: create.then_some(Create { input }) })
            }
        }
    }
}

thread_local! {
    /// Addresses without input that were read lately, by their JSON: callers say the same
    /// ones again and again. Emptied when it is full.
    static READ: RefCell<HashMap<String, Address>> = RefCell::default();
}

/// How many addresses are remembered; some 100 KB.
const REMEMBERED: usize = 512;

/// The address that a target names, without input.
fn address_of(target: String) -> Result<Address> {
    if let Some(known) = READ.with_borrow(|read| read.get(&target).cloned()) {
        return Ok(known);
    }
    let address = Target::read(&target)?.into_address(None)?;
    READ.with_borrow_mut(|read| {
        if read.len() >= REMEMBERED {
            read.clear();
        }
        read.insert(target, address.clone());
    });
    Ok(address)
}

/// Reads an id.
pub(super) fn actor_id(text: &str) -> Result<ActorId> {
    ActorId::parse(text).ok_or_else(|| {
        let message = format!("{text:?} is not the id of an actor");
        Error::new(ErrorCode::new("actor", "invalid_argument"), message)
    })
}

/// A row as JSON.
pub(super) fn row_json(row: &ActorRow) -> Value {
    json!({
        "id": row.id.to_string(),
        "name": row.name.as_str(),
        "key": row.key,
        "createdAt": row.created_at_ms,
    })
}

/// The number of the live generation of `target`, if its author's side runs in
/// the environment that opened the host, else 0.
#[napi(catch_unwind)]
pub fn live(host: f64, target: String) -> f64 {
    trip();
    let Ok(opened) = opened(host) else { return 0.0 };
    let context = address_of(target).ok().and_then(|address| opened.host.live(&address));
    context.map_or(0.0, |context| to_js(env::number_of(opened.hub.environment(), &context)))
}

/// Calls an action of `target` with encoded arguments, starting the actor where it
/// sleeps. Settles `ticket` with the encoded result. One that is `cancellable` can be
/// given up by its ticket.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "an object would cost more than the call")]
pub fn submit(
    env: &Env,
    host: f64,
    target: String,
    action: String,
    args: &[u8],
    caller: u32,
    ticket: f64,
    cancellable: bool,
) -> napi::Result<()> {
    trip();
    let opened = opened(host).map_err(|error| thrown(env, error))?;
    match address_of(target) {
        Err(error) => settles(&opened.hub, number(ticket)).send(Err(error)),
        Ok(address) => {
            let request = call(&opened.hub, action, args, caller, ticket, cancellable);
            opened.host.call(address, request, opened.environment());
        }
    }
    Ok(())
}

/// A call whose outcome settles a ticket.
pub(super) fn call(
    hub: &Arc<Hub>,
    action: String,
    args: &[u8],
    caller: u32,
    ticket: f64,
    cancellable: bool,
) -> CallRequest {
    let reply = settles(hub, number(ticket));
    let origin = origin::of(hub.environment(), number(ticket));
    let watched = cancellable.then(|| cancel::watch(origin));
    CallRequest {
        name: action,
        args: Bytes::copy_from_slice(args),
        caller: caller_of(caller),
        origin,
        taken_by: None,
        reply: Reply::new(move |result| {
            drop(watched);
            reply.send(result.map(Some));
        }),
    }
}

/// The caller of a call that was submitted as cancellable gave up. It is not told the
/// outcome any more; the function, if it has begun, is told.
#[napi(catch_unwind)]
pub fn cancel(host: f64, ticket: f64) {
    trip();
    if let Some(opened) = known(host) {
        cancel::cancel(origin::of(opened.hub.environment(), number(ticket)));
    }
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
    let opened = opened(host).map_err(|error| thrown(env, error))?;
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
