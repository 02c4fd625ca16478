//! What one JavaScript thread knows: its environments, and the actors whose
//! author's side runs in them.
//!
//! # Invariants
//!
//! 1. An actor is known here from the moment JavaScript takes its `START` until
//!    it takes its `STOPPED`, or its environment ends.
//! 2. The table is never borrowed while anything outside of this module runs:
//!    what is needed is cloned or taken out first.
//! 3. Numbers of environments, actors, tickets and regions never repeat within
//!    the process, and are read exactly by JavaScript.
//! 4. An environment dies in this order: its hub, with what was queued; the
//!    generations that it owned; what it had taken and not answered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use napi::Env;
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;

use super::guard::{contained, trip};
use super::hub::{Hub, Wake};
use super::{application, error, foreign, host, log, trial};
use crate::core::actor::WorkRegion;
use crate::core::behavior::{Reply, StateDelta};
use crate::core::connections::ConnHandle;
use crate::core::context::ActorContext;
use crate::gateway::Exchange;
use crate::host::embedded::EnvironmentId;
use crate::host::embedded::sessions::Session;

static NEXT: AtomicU64 = AtomicU64::new(1);
/// Counts by itself, so that the numbers of environments stay small (see [`super::origin`]).
static NEXT_ENVIRONMENT: AtomicU64 = AtomicU64::new(1);

/// A number that no actor, ticket or region has had (invariant 3).
pub(super) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether [`next_number`] has given this number.
pub(super) fn was_given(number: u64) -> bool {
    (1..NEXT.load(Ordering::Relaxed)).contains(&number)
}

/// A number that came from JavaScript; 0, which nothing has, when it is none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn number(value: f64) -> u64 {
    value as u64
}

/// A number on its way to JavaScript.
#[expect(clippy::cast_precision_loss, reason = "numbers of this process stay below 2^53")]
pub(super) fn to_js(value: u64) -> f64 {
    value as f64
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::default();
}

#[derive(Default)]
struct Local {
    environments: HashMap<u64, Arc<Hub>>,
    actors: HashMap<u64, Slot, BuildHasherDefault<NumberHasher>>,
    /// With the environment that opened each.
    sessions: HashMap<u64, (u64, Arc<Session>)>,
}

/// One generation whose author's side runs on this thread.
struct Slot {
    context: ActorContext,
    environment: u64,
    /// Made for the first job or region, dropped with the last.
    work: Option<Box<Work>>,
}

#[derive(Default)]
struct Work {
    /// What was taken and waits for an answer, by ticket.
    jobs: HashMap<u64, Pending>,
    regions: HashMap<u64, WorkRegion>,
    /// Over which connection calls were made that have not ended.
    calls: HashMap<u64, ConnHandle>,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.regions.is_empty() && self.calls.is_empty()
    }
}

/// A job that JavaScript took.
pub(super) enum Pending {
    /// A hook.
    Hook(Reply<Option<Bytes>>),
    /// A hook of a connection, and whose.
    Connection(Reply<Option<Bytes>>, ConnHandle),
    /// The author's `run`.
    Run(Reply<bool>),
    /// The encoded state.
    Serialize(Reply<Vec<StateDelta>>),
}

impl Pending {
    /// Answers.
    pub(super) fn answer(self, result: crate::error::Result<Option<Bytes>>) {
        match self {
            Self::Hook(reply) | Self::Connection(reply, _) => reply.send(result),
            // A byte that is zero says that it is to be woken once more.
            Self::Run(reply) => reply.send(result.map(|bytes| bytes.as_deref() != Some(&[0]))),
            Self::Serialize(reply) => {
                let deltas =
                    |bytes: Option<Bytes>| bytes.map(StateDelta::ActorState).into_iter().collect();
                reply.send(result.map(deltas));
            }
        }
    }
}

/// Numbers are their own hash.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        // Spreads consecutive numbers over the high bits, which the table uses.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// The generation of an actor number; `None` when it is over or runs elsewhere.
#[inline]
pub(super) fn context(actor: f64) -> Option<ActorContext> {
    LOCAL.with_borrow(|local| local.actors.get(&number(actor)).map(|slot| slot.context.clone()))
}

/// The generation of an actor number and the hub of its environment.
pub(super) fn context_and_hub(actor: f64) -> Option<(ActorContext, Arc<Hub>)> {
    LOCAL.with_borrow(|local| {
        let slot = local.actors.get(&number(actor))?;
        let hub = local.environments.get(&slot.environment)?;
        Some((slot.context.clone(), Arc::clone(hub)))
    })
}

/// The hub of an environment of this thread.
pub(super) fn hub(environment: f64) -> Option<Arc<Hub>> {
    LOCAL.with_borrow(|local| local.environments.get(&number(environment)).cloned())
}

/// The hub of an environment that has to be one of this thread.
///
/// # Errors
///
/// That it is not open.
pub(super) fn open_hub(environment: f64) -> crate::error::Result<Arc<Hub>> {
    hub(environment).ok_or_else(|| error::invalid_argument("environment", "it is not open"))
}

/// The number of a generation whose author's side runs in `environment`; 0 for none.
pub(super) fn number_of(environment: u64, context: &ActorContext) -> u64 {
    let actor = context.behavior_number();
    LOCAL.with_borrow(|local| {
        let ours = local.actors.get(&actor).is_some_and(|slot| slot.environment == environment);
        if ours { actor } else { 0 }
    })
}

/// Makes a generation known (invariant 1).
pub(super) fn insert(environment: u64, actor: u64, context: ActorContext) {
    let slot = Slot { context, environment, work: None };
    LOCAL.with_borrow_mut(|local| local.actors.insert(actor, slot));
}

/// Forgets a generation (invariant 1).
pub(super) fn remove(actor: u64) {
    let slot = LOCAL.with_borrow_mut(|local| local.actors.remove(&actor));
    // Here, since a reply that goes unanswered and a region that ends call out.
    drop(slot);
}

/// Keeps what JavaScript took until it answers; gives it back when the actor is gone.
pub(super) fn keep(actor: u64, ticket: u64, pending: Pending) -> Result<(), Pending> {
    LOCAL.with_borrow_mut(|local| match local.actors.get_mut(&actor) {
        Some(slot) => {
            slot.work.get_or_insert_default().jobs.insert(ticket, pending);
            Ok(())
        }
        None => Err(pending),
    })
}

/// Takes out what waits under a ticket.
pub(super) fn take_pending(actor: f64, ticket: f64) -> Option<Pending> {
    with_work(actor, |work| work.jobs.remove(&number(ticket)))
}

/// Keeps a region until it is ended, and returns its number.
pub(super) fn keep_region(actor: f64, region: WorkRegion) -> u64 {
    let id = next_number();
    let refused = LOCAL.with_borrow_mut(|local| match local.actors.get_mut(&number(actor)) {
        Some(slot) => slot.work.get_or_insert_default().regions.insert(id, region),
        None => Some(region),
    });
    if refused.is_some() { 0 } else { id }
}

/// Takes out a region.
pub(super) fn take_region(actor: f64, region: f64) -> Option<WorkRegion> {
    with_work(actor, |work| work.regions.remove(&number(region)))
}

/// The connection of a hook that JavaScript took and has not answered.
pub(super) fn connection_of_hook(actor: f64, ticket: f64) -> Option<ConnHandle> {
    with_work(actor, |work| match work.jobs.get(&number(ticket)) {
        Some(Pending::Connection(_, connection)) => Some(connection.clone()),
        _ => None,
    })
}

/// Keeps over which connection a call is made until that is answered.
pub(super) fn keep_connection(actor: u64, call: u64, connection: ConnHandle) {
    LOCAL.with_borrow_mut(|local| {
        if let Some(slot) = local.actors.get_mut(&actor) {
            slot.work.get_or_insert_default().calls.insert(call, connection);
        }
    });
}

/// The connection over which a call was made that is not answered.
pub(super) fn connection_of_call(actor: f64, call: f64) -> Option<ConnHandle> {
    with_work(actor, |work| work.calls.get(&number(call)).cloned())
}

/// A call has ended.
pub(super) fn forget_connection(actor: f64, call: f64) {
    drop(with_work(actor, |work| work.calls.remove(&number(call))));
}

/// Answers a serialisation that JavaScript took; `false` when nobody waits for one.
pub(super) fn answer_save(actor: f64, ticket: f64, deltas: Vec<StateDelta>) -> bool {
    let saves = |work: &mut Work| match work.jobs.remove(&number(ticket)) {
        Some(Pending::Serialize(reply)) => Some(reply),
        Some(other) => {
            work.jobs.insert(number(ticket), other);
            None
        }
        None => None,
    };
    let reply = with_work(actor, saves);
    let waits = reply.is_some();
    if let Some(reply) = reply {
        reply.send(Ok(deltas));
    }
    waits
}

fn with_work<T>(actor: f64, take: impl FnOnce(&mut Work) -> Option<T>) -> Option<T> {
    LOCAL.with_borrow_mut(|local| {
        let slot = local.actors.get_mut(&number(actor))?;
        let work = slot.work.as_mut()?;
        let taken = take(work);
        if work.is_empty() {
            slot.work = None;
        }
        taken
    })
}

/// Keeps a session until it is closed.
pub(super) fn keep_session(environment: u64, number: u64, session: Session) {
    let kept = (environment, Arc::new(session));
    LOCAL.with_borrow_mut(|local| local.sessions.insert(number, kept));
}

/// Does something with a session; `None` when it is closed.
pub(super) fn with_session<R>(session: f64, body: impl FnOnce(&Session) -> R) -> Option<R> {
    let found = LOCAL.with_borrow(|local| {
        local.sessions.get(&number(session)).map(|(_, session)| Arc::clone(session))
    });
    found.map(|session| body(&session))
}

/// Takes out a session, which closes it.
pub(super) fn take_session(session: f64) -> Option<Arc<Session>> {
    let taken = LOCAL.with_borrow_mut(|local| local.sessions.remove(&number(session)));
    taken.map(|(_, session)| session)
}

/// Opens an environment and returns its number. `wake` is called with nothing,
/// on this thread, when there is something to take; it does not keep the process
/// alive. The environment ends with the JavaScript that opened it.
#[napi(catch_unwind, ts_args_type = "wake: () => void")]
pub fn open_env(env: Env, wake: Function<'_, (), ()>) -> napi::Result<f64> {
    trip();
    let id = NEXT_ENVIRONMENT.fetch_add(1, Ordering::Relaxed);
    let slot: Arc<std::sync::OnceLock<std::sync::Weak<Hub>>> = Arc::default();
    let woken = Arc::clone(&slot);
    let function = wake
        .build_threadsafe_function::<()>()
        .weak::<true>()
        .callee_handled::<false>()
        .build_callback(move |_| {
            // Before JavaScript is called: a drain that throws must not stop
            // the next one.
            if let Some(hub) = woken.get().and_then(std::sync::Weak::upgrade) {
                hub.begin_taking();
            }
            Ok(())
        })?;
    let ring: Wake = Arc::new(move || {
        function.call((), ThreadsafeFunctionCallMode::NonBlocking) != Status::Closing
    });
    let hub = Arc::new(Hub::new(id, ring));
    // A cell of our own that nobody else has seen.
    let _ = slot.set(Arc::downgrade(&hub));
    // After the threadsafe function: hooks run last in first out, so this one
    // still finds it.
    env.add_env_cleanup_hook(Arc::clone(&hub), |hub| contained("cleanup hook", || end(&hub)))?;
    LOCAL.with_borrow_mut(|local| local.environments.insert(id, hub));
    Ok(to_js(id))
}

/// Ends an environment (invariant 4).
fn end(hub: &Arc<Hub>) {
    let queued = hub.die();
    log::set_level(hub, tracing::level_filters::LevelFilter::OFF);
    let environment = hub.environment();
    host::environment_gone(environment);
    application::environment_gone(environment);
    Exchange::environment_gone(EnvironmentId(environment));
    foreign::environment_gone(environment);
    trial::end_trials(environment);
    for job in queued {
        job.refuse();
    }
    let (ours, sessions, removed) = LOCAL.with_borrow_mut(|local| {
        let removed = local.environments.remove(&environment);
        let ours: Vec<Slot> = local
            .actors
            .extract_if(|_, slot| slot.environment == environment)
            .map(|(_, slot)| slot)
            .collect();
        let theirs = |_: &u64, kept: &mut (u64, Arc<Session>)| kept.0 == environment;
        let sessions: Vec<_> = local.sessions.extract_if(theirs).collect();
        (ours, sessions, removed)
    });
    // Here, since that ends their connections.
    drop(sessions);
    for slot in ours {
        let jobs = slot.work.map(|work| work.jobs).unwrap_or_default();
        for pending in jobs.into_values() {
            pending.answer(Err(error::environment_gone()));
        }
    }
    if let Some(lockstep) = hub.lockstep() {
        lockstep.end();
    }
    drop(removed);
}

/// Sends what Rust logs at `level` and above (`trace`, `debug`, `info`, `warn`,
/// `error`) to this environment; null ends it. Off unless asked for.
#[napi(catch_unwind)]
pub fn set_log_sink(env: Env, environment: f64, level: Option<String>) -> napi::Result<()> {
    trip();
    let Some(hub) = hub(environment) else { return Ok(()) };
    let level = match level {
        None => tracing::level_filters::LevelFilter::OFF,
        Some(text) => log::parse_level(&text).ok_or_else(|| {
            error::thrown(&env, error::invalid_argument("level", format!("unknown level {text:?}")))
        })?,
    };
    log::set_level(&hub, level);
    Ok(())
}
