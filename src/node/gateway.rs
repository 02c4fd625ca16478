//! Gateways, as JavaScript opens them.
//!
//! # Invariants
//!
//! 1. A gateway ends with the last opening of a host through which it was asked for: before
//!    the actors of the host come to rest, while their answers still leave.
//! 2. Who asks for the same once more, on an address of its own choice, joins the gateway
//!    that is there: a module that is evaluated anew asks for what it asked for before. Not
//!    where an application of another environment answers: numbers of applications mean
//!    something in their own only.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use napi::Env;
use napi_derive::napi;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::application::NodeApplication;
use super::env::{next_number, number};
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::host::Opened;
use super::runtime;
use crate::error::Result;
use crate::gateway::{Gateway, GatewayOptions, Token};
use crate::host::embedded::{EnvironmentId, HostError};
use crate::protocol::Disclosure;
use crate::time::Duration;

static LISTENING: Mutex<Vec<Listening>> = Mutex::new(Vec::new());

/// One who asked for a gateway.
struct Listening {
    /// The number by which it ends.
    id: u64,
    /// The opening of the host.
    opening: u64,
    /// The host, whoever opened it.
    home: u64,
    environment: EnvironmentId,
    asked: ListenArgs,
    gateway: Arc<Gateway>,
}

/// What a gateway is to be like.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListenArgs {
    /// The address to listen on; without one requests come from a server of the author's.
    host: Option<IpAddr>,
    /// 0 for any that is free.
    #[serde(default)]
    port: u16,
    token: Option<String>,
    /// The only namespace that there is.
    namespace: Option<String>,
    /// The pool that actors are in, for tools that set up an endpoint.
    pool: Option<String>,
    #[serde(default)]
    origins: Vec<String>,
    /// Whether pages may call without a token that come from any server of this machine.
    #[serde(default)]
    pages_of_this_machine: bool,
    /// A token for dashboards that is accepted for all actors.
    inspector_token: Option<String>,
    /// Whether the author's side answers requests of dashboards itself.
    #[serde(default)]
    inspects_in_runtime: bool,
    #[serde(default)]
    hosts: Vec<String>,
    /// Whether clients read what failed inside.
    #[serde(default)]
    expose_errors: bool,
    /// A folder with files for everybody.
    public_dir: Option<PathBuf>,
    /// The number of the application that answers what is for nobody else.
    application: Option<u64>,
    /// Whether that and the files are all that there is.
    #[serde(default)]
    application_only: bool,
}

/// Which gateway is to end.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnlistenArgs {
    listener: u64,
    grace_ms: u64,
}

impl ListenArgs {
    fn options(&self) -> Result<GatewayOptions> {
        let token = match &self.token {
            Some(token) => match Token::new(token.clone()) {
                Some(token) => Some(token),
                None => return Err(invalid_argument("token", "it is empty")),
            },
            None => None,
        };
        let host = self.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let disclosure = if self.expose_errors { Disclosure::All } else { Disclosure::Public };
        let usual = GatewayOptions::default();
        Ok(GatewayOptions {
            namespace: self.namespace.clone().unwrap_or(usual.namespace),
            pool: self.pool.clone(),
            address: SocketAddr::new(host, self.port),
            public_dir: self.public_dir.clone(),
            token,
            origins: self.origins.clone(),
            pages_of_this_machine: self.pages_of_this_machine,
            inspector_token: self.inspector_token.clone(),
            inspects_in_runtime: self.inspects_in_runtime,
            hosts: self.hosts.clone(),
            application_only: self.application_only,
            disclosure,
            ..GatewayOptions::default()
        })
    }
}

/// Begins to listen in front of the host of an opening.
///
/// # Errors
///
/// `gateway/token_needed` and `gateway/address_unusable`.
pub(super) fn listen(opened: &Opened, opening: u64, asked: ListenArgs) -> Result<Value> {
    let mut options = asked.options()?;
    if let Some(number) = asked.application {
        let application = NodeApplication::new(Arc::clone(&opened.hub), number);
        options.application = Some(Arc::new(application));
    }
    let environment = opened.environment();
    let mut listening = LISTENING.lock();
    let joined = listening.iter().find(|other| {
        let answers_here = asked.application.is_none() || other.environment == environment;
        other.home == opened.home && other.asked == asked && asked.port != 0 && answers_here
    });
    let gateway = match joined {
        Some(other) => Arc::clone(&other.gateway),
        None => {
            let (host, spawner) = (Arc::clone(&opened.host), runtime::socket_spawner()?.clone());
            Arc::new(match asked.host {
                Some(_) => Gateway::bind(host, options, spawner)?,
                None => Gateway::inside(host, options, spawner),
            })
        }
    };
    let (id, address) = (next_number(), gateway.address());
    listening.push(Listening { id, opening, home: opened.home, environment, asked, gateway });
    let (ip, port) = (address.map(|at| at.ip().to_string()), address.map(|at| at.port()));
    Ok(json!({ "listener": id, "host": ip, "port": port }))
}

/// The gateway of one who asked.
///
/// # Errors
///
/// `registry/shut_down` once it has ended.
pub(super) fn gateway(id: u64) -> Result<Arc<Gateway>> {
    let listening = LISTENING.lock();
    let found = listening.iter().find(|listening| listening.id == id);
    Ok(Arc::clone(&found.ok_or(HostError::ShutDown)?.gateway))
}

/// What is counted, in Prometheus' text format, by the gateway of one who asked.
#[napi(catch_unwind)]
pub fn gateway_metrics(env: &Env, listener: f64) -> napi::Result<String> {
    trip();
    let found = gateway(number(listener)).map_err(|error| thrown(env, error))?;
    Ok(found.metrics())
}

/// Ends one who asked, and with the last one the gateway. Answers when that has ended; at
/// once for one that is not there any more.
pub(super) fn unlisten(args: &UnlistenArgs) -> impl Future<Output = ()> + Send + use<> {
    let ended = take(|listening| listening.id == args.listener);
    stop(ended, Duration::from_millis(args.grace_ms))
}

/// Ends what was asked for through an opening.
pub(super) fn leave(opening: u64, grace: Duration) -> impl Future<Output = ()> + Send + use<> {
    stop(take(|listening| listening.opening == opening), grace)
}

/// Cuts off what was asked for through an opening whose environment is gone.
pub(super) fn cut_off(opening: u64) {
    drop(take(|listening| listening.opening == opening));
}

/// Begins at once, also when nobody waits for it.
fn stop(gateways: Vec<Arc<Gateway>>, grace: Duration) -> impl Future<Output = ()> + Send + use<> {
    for gateway in &gateways {
        gateway.close();
    }
    let (tell, told) = oneshot::channel::<()>();
    if gateways.is_empty() {
        // No threads for sockets where there never was one.
        drop(tell);
    } else {
        let stops = async move {
            join_all(gateways.iter().map(|gateway| gateway.stop(grace))).await;
            drop(tell);
        };
        // There, since tasks of an environment that goes by turns with a test have no timers.
        match runtime::socket_spawner() {
            Ok(spawner) => drop(spawner.spawn("gateway stop", stops)),
            // Their gateway could not have been made without it.
            Err(error) => tracing::error!(%error, "gateways end without their grace period"),
        }
    }
    async move {
        // Nothing is ever said: it ends.
        drop(told.await);
    }
}

/// The gateways that nobody asks for but those who are taken away here.
fn take(which: impl Fn(&Listening) -> bool) -> Vec<Arc<Gateway>> {
    let mut listening = LISTENING.lock();
    let taken: Vec<Listening> = listening.extract_if(.., |listening| which(listening)).collect();
    let mut gateways: Vec<Arc<Gateway>> = Vec::new();
    for Listening { gateway, .. } in taken {
        let same = |other: &Arc<Gateway>| Arc::ptr_eq(other, &gateway);
        let is_used = listening.iter().any(|listening| same(&listening.gateway));
        if !is_used && !gateways.iter().any(same) {
            gateways.push(gateway);
        }
    }
    gateways
}
