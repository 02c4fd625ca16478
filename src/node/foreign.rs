//! Requests and connections of a server that JavaScript runs, answered by a gateway.
//!
//! # Invariants
//!
//! 1. What is begun here is kept until JavaScript lets it go, or its environment ends.
//! 2. A request that is let go before its answer is given up.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::context::settle_with;
use super::env::{self, next_number, number, to_js};
use super::error::{invalid_argument, thrown};
use super::gateway::gateway;
use super::guard::trip;
use super::hub::Hub;
use crate::error::{Error, Result};
use crate::gateway::{Exchange, ForeignRequest, GatewayError, Tunnel};

static HELD: Mutex<Option<HashMap<u64, Held>>> = Mutex::new(None);

/// What JavaScript has begun and not let go.
struct Held {
    environment: u64,
    what: What,
}

enum What {
    /// A request and its answer, until that is given up.
    Request {
        exchange: Arc<Exchange>,
        _given_up: DropGuard,
    },
    Tunnel(Arc<Tunnel>),
}

impl Drop for What {
    fn drop(&mut self) {
        match self {
            Self::Request { exchange, .. } => {
                exchange.cancel();
                exchange.fail();
            }
            Self::Tunnel(tunnel) => tunnel.cut(),
        }
    }
}

/// Answers a request, given by `{"method", "uri", "headers"}`, of which the body is there,
/// or without one is written to the exchange whose number this returns. Settles `ticket`
/// with the head of the answer, and a small body. What it returns is let go by
/// [`let_go`].
#[napi(catch_unwind)]
pub fn gateway_request(
    env: &Env,
    environment: f64,
    listener: f64,
    head: String,
    body: Option<Uint8Array>,
    ticket: f64,
) -> napi::Result<f64> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let begun =
        begin(&hub, listener, &head, body.map(|body| Bytes::copy_from_slice(&body)), ticket);
    begun.map(to_js).map_err(|error| thrown(env, error))
}

fn begin(
    hub: &Arc<Hub>,
    listener: f64,
    head: &str,
    body: Option<Bytes>,
    ticket: f64,
) -> Result<u64> {
    let request: ForeignRequest =
        serde_json::from_str(head).map_err(|error| invalid_argument("head", error))?;
    let (exchange, answer) = gateway(number(listener))?.ask(&request, body)?;
    let exchange_number = exchange.number();
    let given_up = CancellationToken::new();
    let gives_up = given_up.clone();
    keep(hub, exchange_number, What::Request { exchange, _given_up: given_up.drop_guard() });
    settle_with(hub, ticket, async move {
        tokio::select! {
            biased;
            () = gives_up.cancelled() => Err(Error::from(GatewayError::AnswerEnded)),
            answer = answer => Ok(Some(answer?)),
        }
    });
    Ok(exchange_number)
}

/// Begins a connection of a client at `address`, whose bytes JavaScript carries: its
/// number.
#[napi(catch_unwind)]
pub fn tunnel_open(
    env: &Env,
    environment: f64,
    listener: f64,
    address: Option<String>,
) -> napi::Result<f64> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let from = address.and_then(|address| address.parse().ok());
    let from = from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let opened = gateway(number(listener)).and_then(|gateway| Ok(gateway.tunnel(from)?));
    let tunnel = opened.map_err(|error| thrown(env, error))?;
    let id = next_number();
    keep(&hub, id, What::Tunnel(Arc::new(tunnel)));
    Ok(to_js(id))
}

/// Settles `ticket` with what the gateway sends through a tunnel, or with null at the end.
#[napi(catch_unwind)]
pub fn tunnel_read(env: &Env, environment: f64, tunnel: f64, ticket: f64) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let tunnel = find(tunnel);
    settle_with(&hub, ticket, async move {
        match tunnel {
            Some(tunnel) => Ok(tunnel.read().await),
            None => Ok(None),
        }
    });
    Ok(())
}

/// Hands over what the client sends, nothing for its end, and settles `ticket` when there
/// was room.
#[napi(catch_unwind)]
pub fn tunnel_write(
    env: &Env,
    environment: f64,
    tunnel: f64,
    bytes: Option<Uint8Array>,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let hub = env::open_hub(environment).map_err(|error| thrown(env, error))?;
    let tunnel = find(tunnel);
    let bytes = bytes.map(|bytes| Bytes::copy_from_slice(&bytes));
    settle_with(&hub, ticket, async move {
        let tunnel = tunnel.ok_or(GatewayError::AnswerEnded)?;
        match bytes {
            Some(bytes) => tunnel.write(&bytes).await?,
            None => tunnel.end().await,
        }
        Ok(None)
    });
    Ok(())
}

/// Lets go of a request or a tunnel; of one that was let go nothing.
#[napi(catch_unwind)]
pub fn let_go(held: f64) {
    trip();
    let gone = HELD.lock().as_mut().and_then(|all| all.remove(&number(held)));
    drop(gone);
}

/// Lets go of what an environment has begun.
pub(super) fn environment_gone(environment: u64) {
    let gone: Vec<_> = match HELD.lock().as_mut() {
        Some(all) => all.extract_if(|_, held| held.environment == environment).collect(),
        None => Vec::new(),
    };
    drop(gone);
}

fn keep(hub: &Arc<Hub>, id: u64, what: What) {
    let held = Held { environment: hub.environment(), what };
    let before = HELD.lock().get_or_insert_default().insert(id, held);
    drop(before);
}

fn find(tunnel: f64) -> Option<Arc<Tunnel>> {
    match HELD.lock().as_ref()?.get(&number(tunnel))?.what {
        What::Tunnel(ref tunnel) => Some(Arc::clone(tunnel)),
        What::Request { .. } => None,
    }
}
