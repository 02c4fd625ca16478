//! What is to be seen of an actor, and changed in it, by somebody who looks.
//!
//! # Invariants
//!
//! 1. Values are in the form of clients. Where an author's have a form of their own, the
//!    author's side translates them, by a call under a name that no action can have.
//! 2. A state is as it is in memory, stored or not. One that was put in its place is durable
//!    when that is said.
//! 3. What is changed from outside never divides what the author changes in one turn.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::future::{BoxFuture, Either, select};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::core::behavior::{Caller, Reply};
use crate::core::config::ActorConfig;
use crate::core::connections::RequestHead;
use crate::core::context::{ActorContext, Admission, CallRequest};
use crate::core::queue::NewMessage;
use crate::core::schedule::{CronFire, CronJob, FireResult, JobCadence, ScheduledEvent};
use crate::error::{Error, Result};
use crate::gateway::Shared;
use crate::gateway::actor::ELSEWHERE;
use crate::host::embedded::Address;
use crate::host::embedded::sessions::SessionRequest;
use crate::inspector::{
    Connection, FireError, Init, InspectorError, QueueMessage, QueueStatus, Schedule, ScheduleFire,
    TabConfigEntry,
};
use crate::protocol::cbor::Writer;
use crate::protocol::{Args, Payload};
use crate::time::Duration;

/// The name under which the author's side is asked. Names of actions have no control
/// characters.
const INSPECT: &str = "\u{4}inspect";

/// What it is asked, as `ts/native/inspection.ts` has it.
#[derive(Clone, Copy)]
enum Wanted {
    State = 0,
    Patch = 1,
    Shown = 2,
    Read = 3,
    History = 4,
    Replay = 5,
    Store = 6,
}

/// What a workflow did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    pub(super) bytes: Option<Bytes>,
    pub(super) is_enabled: bool,
}

/// Somebody who looks into a generation.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) shared: Arc<Shared>,
    pub(super) actor: ActorContext,
    /// How the dashboard came, for the hooks of connections that it has made.
    head: Arc<RequestHead>,
    /// The generation has refused something because it ends. Set once.
    closed: Arc<AtomicBool>,
    /// Held by whoever reads the tables, which takes the one connection for a while.
    pub(super) tables: Arc<Semaphore>,
}

impl Look {
    /// What the dashboard is let in with is no matter of the author's.
    pub(super) fn new(shared: &Arc<Shared>, actor: ActorContext, head: &RequestHead) -> Self {
        let headers = head.headers.iter().filter(|(name, _)| name != "authorization").cloned();
        let head = RequestHead {
            method: head.method.clone(),
            path: head.path.clone(),
            headers: headers.collect(),
        };
        Self {
            shared: Arc::clone(shared),
            actor,
            head: Arc::new(head),
            closed: Arc::default(),
            tables: Arc::new(Semaphore::new(1)),
        }
    }

    /// Whether the generation has refused something because it ends: what failed then has
    /// done nothing, and the next generation can be asked for it.
    pub(super) fn was_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Notes whether it was the end of the generation that refused something.
    fn noted<T>(&self, result: Result<T>) -> Result<T> {
        let by_end = |error: &Error| {
            ["stopping", "destroying", "not_ready"].iter().any(|code| error.is("actor", code))
        };
        let is_closed = || self.actor.aborted() || self.actor.admission() != Admission::Open;
        if result.as_ref().is_err_and(by_end) && is_closed() {
            self.closed.store(true, Ordering::Relaxed);
        }
        result
    }

    pub(super) fn config(&self) -> &ActorConfig {
        self.actor.config()
    }

    /// All of it.
    pub(super) async fn init(&self) -> Result<Init> {
        let history = self.history().await?;
        Ok(Init {
            connections: self.connections().await?,
            state: self.state().await?,
            is_state_enabled: self.config().has_state,
            rpcs: self.rpcs(),
            is_database_enabled: self.config().has_database,
            queue_size: self.actor.queue().len() as u64,
            workflow_history: history.bytes,
            is_workflow_enabled: history.is_enabled,
            tab_config: self.tabs(),
            schedules: self.schedules().await?,
        })
    }

    /// The state in CBOR; `None` of an actor without one, and never empty.
    pub(super) async fn state(&self) -> Result<Option<Bytes>> {
        if !self.config().has_state {
            return Ok(None);
        }
        let state = self.ask(Wanted::State, &[]).await?;
        Ok((!state.is_empty()).then_some(state))
    }

    /// Puts another state in its place, durably.
    pub(super) async fn patch(&self, state: &Bytes) -> Result<()> {
        if !self.config().has_state {
            return Err(InspectorError::StateNotEnabled.into());
        }
        Payload::new(state.clone())?;
        self.ask(Wanted::Patch, state).await?;
        self.actor.flushed().await
    }

    /// Who is connected.
    pub(super) async fn connections(&self) -> Result<Vec<Connection>> {
        let conns = self.actor.connections();
        let mut own = Vec::new();
        for conn in &conns {
            // What a client elsewhere has passed is in its form already.
            own.push(if conn.is_remote() { Bytes::new() } else { conn.params().clone() });
            own.push(conn.state());
        }
        let mut shown = self.shown(own).await?.into_iter();
        let mut connections = Vec::new();
        for conn in &conns {
            let (params, state) = (shown.next().unwrap_or_default(), shown.next());
            let params = if conn.is_remote() { conn.params().clone() } else { params };
            let mut details = Writer::default();
            details.map(6);
            details.text("type").null();
            details.text("params").raw(Payload::new(params)?.cbor());
            details.text("stateEnabled").flag(true);
            details.text("state").raw(Payload::new(state.unwrap_or_default())?.cbor());
            details.text("subscriptions").whole(conn.subscriptions().len() as u64);
            details.text("isHibernatable").flag(conn.is_hibernatable());
            let (id, details) = (conn.id().as_str().to_owned(), details.into_bytes().into());
            connections.push(Connection { id, details });
        }
        Ok(connections)
    }

    /// The names of the actions.
    pub(super) fn rpcs(&self) -> Vec<String> {
        self.config().actions.clone()
    }

    /// Calls an action over a connection of its own, without parameters.
    pub(super) async fn act(&self, name: String, args: Payload) -> Result<Payload> {
        if name.chars().any(char::is_control) {
            // What parts of this process say to each other travels under such.
            return Err(crate::gateway::GatewayError::NoSuchAction.into());
        }
        let args = Args::try_from(args)?.cbor().clone();
        let request = SessionRequest {
            params: Bytes::new(),
            request: Some(Arc::clone(&self.head)),
            hibernatable: false,
        };
        let address = Address::Id(self.actor.actor_id());
        let host = &self.shared.host;
        let called =
            host.call_connected(&address, &request, name, args, Caller::Client, ELSEWHERE).await;
        Ok(Payload::new(called.result?)?)
    }

    /// The first messages that wait.
    pub(super) fn queue(&self, limit: usize) -> QueueStatus {
        let queue = self.actor.queue();
        let all = queue.inspect();
        let message = |(id, name, at): &(crate::store::MessageId, Arc<str>, i64)| QueueMessage {
            id: u64::try_from(id.0).unwrap_or_default(),
            name: name.to_string(),
            created_at_ms: moment(*at),
        };
        QueueStatus {
            size: all.len() as u64,
            max_size: queue.max_size() as u64,
            truncated: all.len() > limit,
            messages: all.iter().take(limit).map(message).collect(),
        }
    }

    /// Sends a message. Says its id, and when it was sent.
    pub(super) async fn send(&self, name: &str, body: Payload) -> Result<(u64, u64)> {
        let body = match self.config().own_values {
            true => self.ask(Wanted::Read, body.cbor()).await?,
            false => body.cbor().clone(),
        };
        let message =
            NewMessage { name: name.into(), body, delay: Duration::ZERO, dedupe_key: None };
        let sent = self.stored(self.actor.queue().send(message)).await?;
        Ok((u64::try_from(sent.id.0).unwrap_or_default(), moment(sent.created_at_ms)))
    }

    /// What is to be done later, by deadline, then id.
    pub(super) async fn schedules(&self) -> Result<Vec<Schedule>> {
        let schedule = self.actor.schedule();
        let (shots, jobs) = (self.noted(schedule.list())?, self.noted(schedule.cron_list())?);
        let args = shots.iter().map(|shot| shot.args.clone());
        let args = args.chain(jobs.iter().map(|job| job.args.clone())).collect();
        let mut args = self.shown(args).await?.into_iter();
        let mut all: Vec<Schedule> = Vec::with_capacity(shots.len() + jobs.len());
        all.extend(shots.into_iter().map(|shot| once(shot, args.next().unwrap_or_default())));
        all.extend(jobs.into_iter().map(|job| recurring(job, args.next().unwrap_or_default())));
        all.sort_by(|a, b| (a.next_run_at, &a.id).cmp(&(b.next_run_at, &b.id)));
        Ok(all)
    }

    /// How a recurring schedule went, the newest run first.
    pub(super) async fn schedule_history(&self, id: &str, limit: u64) -> Result<Vec<ScheduleFire>> {
        let limit = i64::try_from(limit.clamp(1, 1_000)).unwrap_or(1_000);
        let fires = self.actor.schedule().cron_history(id, Some(limit)).await?;
        fires.into_iter().map(fire).collect()
    }

    /// Ends a schedule; says whether there was one.
    pub(super) async fn end_schedule(&self, id: &str, kind: &str) -> Result<bool> {
        match kind {
            "at" => self.stored(self.actor.schedule().cancel(id)).await,
            "cron" | "every" => self.stored(self.actor.schedule().cron_delete(id)).await,
            _ => Err(invalid("the kind of a schedule is `at`, `cron` or `every`")),
        }
    }

    /// What the workflow did.
    pub(super) async fn history(&self) -> Result<History> {
        if self.config().own_values {
            return Ok(History::default());
        }
        Ok(history(&self.ask(Wanted::History, &[]).await?))
    }

    /// Has the workflow run again.
    pub(super) async fn replay(&self, entry: Option<&str>) -> Result<History> {
        let asked = entry.map_or_else(|| vec![0], |entry| [&[1], entry.as_bytes()].concat());
        Ok(history(&self.ask(Wanted::Replay, &asked).await?))
    }

    /// Throws away all messages that wait.
    pub(super) async fn empty_queue(&self) -> Result<()> {
        self.stored(self.actor.queue().reset()).await
    }

    /// A change of rows that was made from outside: it is stored with a turn of the author's
    /// side, never in the middle of one (invariant 3).
    async fn stored<T>(&self, change: BoxFuture<'static, Result<T>>) -> Result<T> {
        let stored = self.ask(Wanted::Store, &[]);
        let (changed, stored) = (pin!(change), pin!(stored));
        match select(changed, stored).await {
            Either::Left((changed, _)) => self.noted(changed),
            Either::Right((Ok(_), changed)) => self.noted(changed.await),
            Either::Right((Err(error), changed)) => {
                // Whatever commit comes next takes it along, the last one included.
                tokio::select! {
                    biased;
                    changed = changed => self.noted(changed),
                    () = self.shared.host.until_gone(&self.actor) => Err(error),
                }
            }
        }
    }

    fn tabs(&self) -> Vec<TabConfigEntry> {
        let tabs = self.config().inspector_tabs.iter();
        let entry = tabs.map(|tab| TabConfigEntry {
            id: tab.id.clone(),
            label: tab.label.clone(),
            icon: tab.icon.clone(),
            hidden: tab.hidden,
        });
        entry.collect()
    }

    /// Values of the author's in the form of clients, as many; no bytes stay none.
    async fn shown(&self, values: Vec<Bytes>) -> Result<Vec<Bytes>> {
        if !self.config().own_values || values.iter().all(Bytes::is_empty) {
            return Ok(values);
        }
        let mut asked = BytesMut::new();
        for value in &values {
            asked.put_u32_le(u32::try_from(value.len()).map_err(Error::internal)?);
            asked.extend_from_slice(value);
        }
        let mut answer = self.ask(Wanted::Shown, &asked).await?;
        let mut shown = Vec::with_capacity(values.len());
        for _ in &values {
            let head: Option<[u8; 4]> = answer.first_chunk().copied();
            let length = head.map(|head| u32::from_le_bytes(head) as usize);
            match length {
                Some(length) if answer.len() >= 4 + length => {
                    shown.push(answer.slice(4..4 + length));
                    answer = answer.slice(4 + length..);
                }
                _ => return Err(Error::internal("what the author's side shows is cut off")),
            }
        }
        Ok(shown)
    }

    async fn ask(&self, wanted: Wanted, rest: &[u8]) -> Result<Bytes> {
        let mut args = BytesMut::with_capacity(1 + rest.len());
        args.put_u8(wanted as u8);
        args.extend_from_slice(rest);
        let (reply, answer) = Reply::channel();
        let asked = self.actor.accept(CallRequest {
            name: INSPECT.to_owned(),
            args: args.freeze(),
            caller: Caller::Local,
            origin: 0,
            taken_by: None,
            reply,
        });
        if let Err(refused) = asked {
            let (error, request) = *refused;
            if self.actor.admission() != Admission::Open || self.actor.aborted() {
                self.closed.store(true, Ordering::Relaxed);
            }
            request.reply.send(Err(error));
        }
        answer.await
    }
}

/// `inspector/invalid_request`.
pub(super) fn invalid(reason: impl Into<String>) -> Error {
    InspectorError::Invalid { reason: reason.into() }.into()
}

/// A moment as dashboards take it: none is before the epoch.
fn moment(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default()
}

fn history(answer: &Bytes) -> History {
    match answer.first() {
        None => History::default(),
        Some(0) => History { bytes: None, is_enabled: true },
        Some(_) => History { bytes: Some(answer.slice(1..)), is_enabled: true },
    }
}

fn once(shot: ScheduledEvent, args: Bytes) -> Schedule {
    Schedule {
        id: shot.id,
        name: None,
        kind: "at",
        action: shot.action,
        args,
        next_run_at: moment(shot.run_at),
        last_run_at: None,
        expression: None,
        timezone: None,
        interval_ms: None,
        max_history: None,
    }
}

fn recurring(job: CronJob, args: Bytes) -> Schedule {
    let (kind, expression, timezone, interval_ms) = match job.cadence {
        JobCadence::Cron { expression, timezone } => {
            ("cron", Some(expression), Some(timezone), None)
        }
        JobCadence::Every { interval_ms } => ("every", None, None, Some(moment(interval_ms))),
    };
    Schedule {
        id: job.name.clone(),
        name: Some(job.name),
        kind,
        action: job.action,
        args,
        next_run_at: moment(job.next_run_at),
        last_run_at: job.last_run_at.map(moment),
        expression,
        timezone,
        interval_ms,
        max_history: Some(job.max_history.into()),
    }
}

fn fire(fire: CronFire) -> Result<ScheduleFire> {
    let (result, error) = match fire.result {
        FireResult::Running => ("running", None),
        FireResult::Ok => ("ok", None),
        FireResult::Skipped => ("skipped", None),
        FireResult::Error(fault) => ("error", Some(fault)),
    };
    let metadata = |value: &Value| Ok::<_, Error>(Payload::try_from(value)?.cbor().clone());
    let error = error.map(|fault| {
        Ok::<_, Error>(FireError {
            metadata: fault.metadata.as_ref().map(metadata).transpose()?,
            group: fault.group,
            code: fault.code,
            message: fault.message,
        })
    });
    Ok(ScheduleFire {
        action: fire.action,
        scheduled_at: moment(fire.scheduled_at),
        fired_at: moment(fire.fired_at),
        finished_at: fire.finished_at.map(moment),
        result: result.to_owned(),
        error: error.transpose()?,
    })
}
