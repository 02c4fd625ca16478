//! A gateway in front of a host whose actors follow a script.

use std::sync::Arc;

use greenroom::core::behavior::Hooks;
use greenroom::core::config::ActorConfig;
use greenroom::core::connections::ConnHooks;
use greenroom::core::spawner::Spawner;
use greenroom::gateway::{Bounds, Gateway, GatewayOptions};
use greenroom::host::embedded::{EmbeddedHost, EnvironmentId};
use greenroom::time::{Duration, ManualClock};

use crate::client::{Client, Response};
use crate::place::{HERE, Place, config, counter, within};
use crate::script::{HOOKS, Script};

pub const SECOND: Duration = Duration::from_secs(1);

/// What begins the tasks of a gateway in front of `host`.
pub fn spawner(host: &EmbeddedHost) -> Spawner {
    host.runtime().spawner().clone()
}

/// What the gateway has to have of a request for an actor.
pub const QUERY: &str = "rvt-namespace=default&rvt-method=getOrCreate&rvt-runner=default";

pub struct Front {
    pub place: Place,
    pub gateway: Gateway,
}

impl Front {
    pub async fn new() -> Self {
        Self::with(GatewayOptions::default()).await
    }

    /// On any port.
    pub async fn with(mut options: GatewayOptions) -> Self {
        options.address.set_port(0);
        let place = Place::new().await;
        let gateway = Gateway::bind(Arc::clone(&place.host), options, spawner(&place.host))
            .expect("it listens");
        Self { place, gateway }
    }

    pub async fn bounded(bounds: Bounds) -> Self {
        Self::with(GatewayOptions { bounds, ..GatewayOptions::default() }).await
    }

    pub fn host(&self) -> &Arc<EmbeddedHost> {
        &self.place.host
    }

    pub fn clock(&self) -> &ManualClock {
        &self.place.clock
    }

    pub fn script(&self) -> &Script {
        &self.place.script
    }

    /// Runs the type with other settings from the next start on.
    pub fn configure(&self, change: impl FnOnce(&mut ActorConfig)) {
        self.author(ConnHooks::NONE, change);
    }

    /// Runs the type with these hooks of connections from the next start on.
    pub fn author(&self, connections: ConnHooks, change: impl FnOnce(&mut ActorConfig)) {
        let mut changed = config();
        change(&mut changed);
        let environment: EnvironmentId = HERE;
        let hooks = Hooks { connections, ..HOOKS };
        self.host().register(environment, counter(), self.script().factory(hooks, changed));
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.gateway.address().expect("it listens")).await
    }

    /// A request on a connection of its own.
    pub async fn ask(
        &self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.client().await.ask(method, uri, headers, body).await
    }

    /// A call in JSON of an actor of the key `a`, which is made if need be.
    pub async fn call(&self, action: &str, body: &str) -> Response {
        self.ask("POST", &action_uri(action), &[], body.as_bytes()).await
    }

    /// Lets everything run until the one sleeper of the clock that is due then waits, and
    /// moves the clock there.
    pub async fn pass(&self, time: Duration) {
        self.place.settle().await;
        self.clock().advance(time);
    }

    pub async fn stop(&self, grace: Duration) {
        within(self.gateway.stop(grace)).await;
    }
}

/// The path of a call of an actor of the key `a`.
pub fn action_uri(action: &str) -> String {
    format!("/gateway/counter/action/{action}?{QUERY}&rvt-key=a")
}
