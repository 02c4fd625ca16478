//! Actors in this process, kept in one folder.
//!
//! ```text
//! call ──▶ table (one lock) ──live──▶ the generation accepts it
//!             │ else: wait
//!             ▼
//!          look-up ──▶ entry ──▶ start ──▶ accept, in order
//! ```
//!
//! # Invariants
//!
//! 1. At most one generation of an actor lives; each has its own number in the
//!    store's fence, which is revoked at its end.
//! 2. There is one lock, over [`State`], and that of the [sessions]. Nothing is called out
//!    to while one is held.
//! 3. A caller is answered once. One that meets an actor that is starting or
//!    stopping waits for the generation that is to serve it.
//! 4. A sleeping actor costs nothing but, for the 1,000 used last
//!    ([`REMEMBERED`]), its row of the directory in memory.
//! 5. An actor whose alarm is due is started with nobody calling, once its type is
//!    registered.
//! 6. A row is durably gone before anybody hears that its actor is destroyed.

mod alarms;
mod calls;
mod entry;
mod error;
mod leave;
mod life;
mod open;
mod place;
mod pump;
mod report;
pub mod sessions;
mod shared;
mod shutdown;
mod table;
mod transfer;
mod visit;
mod waiter;
mod waker;

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use self::alarms::Alarms;
pub use self::calls::{Address, Create};
use self::entry::{Live, StoreStanding, World};
pub use self::error::HostError;
pub use self::leave::Departure;
pub use self::open::OpenOptions;
use self::place::Places;
pub use self::report::{ActorReport, Listed};
use self::sessions::Register;
pub use self::shutdown::{NotDrained, ShutdownReport};
use self::table::Table;
use crate::core::behavior::BehaviorFactory;
use crate::core::context::ActorContext;
use crate::core::runtime::Runtime;
use crate::ids::{ActorName, Generation};
use crate::store::{Mishaps, SharedStore};

/// How many sleeping actors the host remembers, so that finding one again costs
/// no look at the directory: some 0.7 MB. The look costs a tenth of a millisecond.
pub const REMEMBERED: usize = 1_000;

/// A place in this process where actors can run: one JavaScript thread with the
/// author's functions. Numbers never repeat within a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EnvironmentId(pub u64);

impl fmt::Display for EnvironmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The actors of one folder.
pub struct EmbeddedHost {
    /// This host, for what outlives a call.
    this: Weak<Self>,
    store: Arc<SharedStore>,
    runtime: Arc<Runtime>,
    /// What the actors are told of where they run.
    region: String,
    /// Whether several environments may use it.
    shared: bool,
    /// See [`OpenOptions::mishaps`].
    mishaps: Option<Mishaps>,
    /// The folder, or `:memory:`.
    label: String,
    state: Mutex<State>,
    /// Wakes the shutdown when nothing lives any more.
    quiet: Notify,
    /// Told of each generation that ended.
    departures: Notify,
    /// The clients that outlive sleeps of their actors. It has a lock of its own, which is
    /// never held with that of the state.
    sessions: Register,
    /// Has the task of the alarms look again.
    alarm_changed: Arc<Notify>,
    /// What the shutdown reports; `None` until it has ended.
    ended: watch::Sender<Option<ShutdownReport>>,
}

/// Everything under the host's lock.
struct State {
    table: Table,
    places: Places,
    world: World,
    alarms: Alarms,
}

impl EmbeddedHost {
    /// Says what an environment runs under a name, in place of what it ran before.
    /// Actors that live take the new code at their next start.
    pub fn register(
        &self,
        environment: EnvironmentId,
        name: ActorName,
        factory: Arc<dyn BehaviorFactory>,
    ) {
        let (replaced, waited) = self.locked(|state| {
            let waited = state.alarms.registered(&name);
            (state.places.register(environment, name, factory, false), waited)
        });
        if waited {
            self.alarm_changed.notify_one();
        }
        drop(replaced);
    }

    /// As [`EmbeddedHost::register`], and puts to sleep what runs under this name in
    /// that environment: whoever calls from then on runs the new code. What is open may
    /// end within the grace period.
    pub fn reload(
        &self,
        environment: EnvironmentId,
        name: ActorName,
        factory: Arc<dyn BehaviorFactory>,
    ) {
        let (replaced, live, waited) = self.locked(|state| {
            // One lock scope with the look: what opens after it finds itself outdated.
            let live = state.table.iter().filter(|entry| {
                entry.environment() == Some(environment) && entry.row().name == name
            });
            let live: Vec<_> = live.filter_map(|entry| entry.live().cloned()).collect();
            let waited = state.alarms.registered(&name);
            (state.places.register(environment, name, factory, true), live, waited)
        });
        if waited {
            self.alarm_changed.notify_one();
        }
        drop(replaced);
        for actor in live {
            actor.evict();
        }
    }

    /// What all actors of this host share.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Where everything is kept.
    pub fn store(&self) -> &Arc<SharedStore> {
        &self.store
    }

    /// The folder, or `:memory:`.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Changes the state, and wakes the shutdown when that ended the last life.
    fn locked<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, is_quiet) = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            let is_quiet = state.world.shut_down.is_some() && state.table.is_quiet();
            (result, is_quiet)
        };
        if is_quiet {
            self.quiet.notify_one();
        }
        result
    }

    fn arc(&self) -> Arc<Self> {
        self.this.upgrade().expect("whoever calls a method holds the host")
    }
}

impl fmt::Debug for EmbeddedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedHost").field("label", &self.label).finish_non_exhaustive()
    }
}

impl Live for ActorContext {
    fn generation(&self) -> Generation {
        Self::generation(self)
    }
}

impl World {
    fn new() -> Self {
        Self { store: StoreStanding::Open, shut_down: None }
    }
}
