//! What is counted and measured, for Prometheus.
//!
//! [`Metrics`] is one registry per runtime, [`ActorMetrics`] one handle per live
//! actor. All actors of one name share their metrics.
//!
//! # Invariants
//!
//! 1. A gauge is the sum of what the live actors of a name contribute. An actor
//!    remembers its share and gives it back once, at its stop or its drop.
//! 2. What happens with every call takes no lock and looks nothing up: the handles
//!    of a name are found once, when the actor is made.

mod actor;
mod histogram;
mod labels;
mod name;
mod startup;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

pub use self::actor::ActorMetrics;
pub use self::labels::{Inbox, KeepAwakeKind, StartupPhase, StateMutation, UserTaskKind};
use self::name::{Families, NameMetrics};
pub use self::startup::StartupTimer;

/// The registry of one runtime.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    families: Arc<Families>,
    /// By the actor's type; grows with the first actor of each.
    names: Mutex<HashMap<Arc<str>, Arc<NameMetrics>>>,
}

impl Metrics {
    /// The media type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

    /// An empty registry.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("rivetkit_actor");
        let families = Arc::new(Families::register(&mut registry));
        Self { registry, families, names: Mutex::default() }
    }

    /// The handle of an actor that begins to live. It counts as started and active.
    pub fn actor(&self, name: &str) -> ActorMetrics {
        ActorMetrics::new(self.name(name))
    }

    /// Everything in Prometheus' text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }

    fn name(&self, name: &str) -> Arc<NameMetrics> {
        let mut names = self.names.lock();
        if let Some(metrics) = names.get(name) {
            return Arc::clone(metrics);
        }
        let name: Arc<str> = name.into();
        let metrics = Arc::new(NameMetrics::new(Arc::clone(&name), Arc::clone(&self.families)));
        names.insert(name, Arc::clone(&metrics));
        metrics
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
