//! Trials: what one test runtime has of its own, and keeps over crashes and restarts: a
//! manual clock, seeded ids, a database in memory.
//!
//! # Invariants
//!
//! 1. A trial belongs to one environment, and goes in lockstep with it.
//! 2. Its clock moves only in [`step_trial`].
//! 3. Each opening has mishaps of its own: what was planned for a process dies with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use napi::Env;
use napi_derive::napi;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::context::settle_with;
use super::env::{self, next_number, number, to_js};
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::host::{encoded, environment_gone, forget, keep, opened, settles};
use super::hub::Hub;
use crate::core::behavior::Reply;
use crate::error::{Error, Result};
use crate::host::embedded::{EmbeddedHost, EnvironmentId, OpenOptions};
use crate::ids::IdSource;
use crate::store::{CrashPoint, KeptMemory, Mishaps, StoreLocation};
use crate::time::{Clock, Duration, ManualClock};

static TRIALS: Mutex<Option<HashMap<u64, Arc<Trial>>>> = Mutex::new(None);

struct Trial {
    hub: Arc<Hub>,
    clock: ManualClock,
    ids: Arc<IdSource>,
    memory: KeptMemory,
    /// Those of the opening that is in use.
    mishaps: Mutex<Mishaps>,
}

/// What a trial begins with.
#[derive(Deserialize)]
struct TrialConfig {
    /// Milliseconds since the Unix epoch.
    now: i64,
    /// The same for the same ids.
    seed: u64,
}

fn trial(id: f64) -> Result<Arc<Trial>> {
    let trials = TRIALS.lock();
    let found = trials.as_ref().and_then(|trials| trials.get(&number(id))).cloned();
    found.ok_or_else(|| invalid_argument("trial", "it is not open"))
}

/// Begins a trial by `{"now", "seed"}` and returns its number. From now on its
/// environment and Rust go by turns.
#[napi(catch_unwind)]
pub fn open_trial(env: &Env, environment: f64, config: String) -> napi::Result<f64> {
    trip();
    begin(environment, &config).map(to_js).map_err(|error| thrown(env, error))
}

fn begin(environment: f64, config: &str) -> Result<u64> {
    let config: TrialConfig =
        serde_json::from_str(config).map_err(|error| invalid_argument("config", error))?;
    let hub = env::open_hub(environment)?;
    hub.go_in_lockstep()?;
    let trial = Trial {
        hub,
        clock: Clock::manual(config.now),
        ids: Arc::new(IdSource::seeded(config.seed)),
        memory: KeptMemory::new()?,
        mishaps: Mutex::default(),
    };
    let id = next_number();
    TRIALS.lock().get_or_insert_default().insert(id, Arc::new(trial));
    Ok(id)
}

/// Opens a host on what a trial has stored. Settles `ticket` as `openHost` does.
#[napi(catch_unwind)]
pub fn open_trial_host(env: &Env, id: f64, ticket: f64) -> napi::Result<()> {
    trip();
    let trial = trial(id).map_err(|error| thrown(env, error))?;
    let hub = Arc::clone(&trial.hub);
    settle_with(&hub, ticket, async move {
        let host = trial.open().await?;
        let id = next_number();
        let home = keep(id, host, &trial.hub);
        // An environment that ended meanwhile has looked for its hosts already.
        if trial.hub.is_dead() {
            environment_gone(trial.hub.environment());
        }
        Ok(Some(encoded(&json!({ "host": id, "home": home }))))
    });
    Ok(())
}

impl Trial {
    async fn open(&self) -> Result<Arc<EmbeddedHost>> {
        let lockstep =
            self.hub.lockstep().ok_or_else(|| Error::internal("a trial without a lockstep"))?;
        let mishaps = Mishaps::default();
        let mut options = OpenOptions::new(
            StoreLocation::Kept(self.memory.clone()),
            EnvironmentId(self.hub.environment()),
            self.clock.clock(),
            lockstep.spawner().clone(),
        );
        options.store.waits_for_turn = Some(lockstep.caller());
        options.ids = Arc::clone(&self.ids);
        options.mishaps = Some(mishaps.clone());
        let host = EmbeddedHost::open(options).await?;
        lockstep.watch(host.store());
        *self.mishaps.lock() = mishaps;
        Ok(host)
    }
}

/// The time of a trial, in milliseconds since the epoch.
#[napi(catch_unwind)]
pub fn trial_now(env: &Env, id: f64) -> napi::Result<f64> {
    trip();
    let trial = trial(id).map_err(|error| thrown(env, error))?;
    #[expect(clippy::cast_precision_loss, reason = "times of this age are exact")]
    Ok(trial.clock.clock().unix_ms() as f64)
}

/// Moves the clock of a trial to the next deadline within `limit` milliseconds and wakes
/// whoever waits for it: what is left of `limit` then. Without one, moves by `limit`: -1.
#[napi(catch_unwind)]
pub fn step_trial(env: &Env, id: f64, limit: f64) -> napi::Result<f64> {
    trip();
    let trial = trial(id).map_err(|error| thrown(env, error))?;
    let left = trial.clock.step(Duration::from_millis(number(limit)));
    // Deadlines are whole milliseconds: sleeps are rounded up.
    Ok(left.map_or(-1.0, |left| left.as_secs_f64() * 1_000.0))
}

/// When the next one who waits on the clock of a trial is due, in milliseconds from now;
/// -1 when nobody waits.
#[napi(catch_unwind)]
pub fn trial_due(env: &Env, id: f64) -> napi::Result<f64> {
    trip();
    let trial = trial(id).map_err(|error| thrown(env, error))?;
    let now = trial.clock.clock().now();
    let due = trial.clock.next_deadline();
    Ok(due.map_or(-1.0, |due| due.since(now).as_secs_f64() * 1_000.0))
}

/// Has one more of the next commits of a trial fail with `storage/full`.
#[napi(catch_unwind)]
pub fn fail_next_commit(env: &Env, id: f64) -> napi::Result<()> {
    trip();
    let trial = trial(id).map_err(|error| thrown(env, error))?;
    let mishaps = trial.mishaps.lock().clone();
    mishaps.fail_next_commit();
    Ok(())
}

/// Has the next commit of a trial meet its end, and settles `ticket` then: whoever hears
/// it crashes the host. Never when the host is shut down before.
#[napi(
    catch_unwind,
    ts_args_type = "id: number, point: 'before_commit' | 'after_commit', ticket: number"
)]
pub fn crash_at(env: &Env, id: f64, point: String, ticket: f64) -> napi::Result<()> {
    trip();
    let trial = trial(id).map_err(|error| thrown(env, error))?;
    let point = match point.as_str() {
        "before_commit" => CrashPoint::BeforeCommit,
        "after_commit" => CrashPoint::AfterCommit,
        _ => return Err(thrown(env, invalid_argument("point", format!("unknown: {point:?}")))),
    };
    let reply: Reply<Option<bytes::Bytes>> = settles(&trial.hub, number(ticket));
    let mishaps = trial.mishaps.lock().clone();
    mishaps.crash_at(point, move || reply.send(Ok(None)));
    Ok(())
}

/// Ends a host as a crash of the process would, and settles `ticket` when its store is
/// closed.
#[napi(catch_unwind)]
pub fn crash_host(env: &Env, host: f64, ticket: f64) -> napi::Result<()> {
    trip();
    let ending = opened(host).map_err(|error| thrown(env, error))?;
    ending.leaving.store(true, Ordering::Release);
    let over = ending.host.crash(ending.environment());
    settle_with(&ending.hub, ticket, async move {
        over.await;
        forget(host);
        Ok(None)
    });
    Ok(())
}

/// Forgets a trial and what it has stored. Its hosts were shut down before.
#[napi(catch_unwind)]
pub fn close_trial(id: f64) {
    trip();
    let trial = TRIALS.lock().as_mut().and_then(|trials| trials.remove(&number(id)));
    drop(trial);
}

/// Forgets the trials of an environment that ends.
pub(super) fn end_trials(environment: u64) {
    let ended: Vec<_> = {
        let mut trials = TRIALS.lock();
        let Some(trials) = trials.as_mut() else { return };
        trials.extract_if(|_, trial| trial.hub.environment() == environment).collect()
    };
    drop(ended);
}
