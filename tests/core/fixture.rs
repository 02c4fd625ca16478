//! A scripted author's side, a host that records what it hears, and the clock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::actor::lifecycle::Intent;
use greenroom::core::behavior::{
    ActorEvent, Behavior, BehaviorFactory, CallId, Caller, Hooks, Reply, StateDelta, StopOutcome,
};
use greenroom::core::config::ActorConfig;
use greenroom::core::connections::{ConnHooks, Peer};
use greenroom::core::context::{ActorContext, ActorParts, CallRequest};
use greenroom::core::host::Host;
use greenroom::core::identity::Identity;
use greenroom::core::runtime::Runtime;
use greenroom::error::Result;
use greenroom::ids::{ActorKey, ActorName, IdSource};
use greenroom::store::{
    ActorRecord, ActorRow, NewActor, SharedStore, SocketId, StoreLocation, StoreOptions,
};
use greenroom::time::{Clock, Duration, ManualClock};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What an action's caller waits for.
pub type Answer = oneshot::Receiver<Result<Bytes>>;

/// One actor and everything around it.
pub struct Fixture {
    pub clock: ManualClock,
    pub host: Arc<RecordingHost>,
    pub script: Arc<Script>,
    pub store: Arc<SharedStore>,
    pub runtime: Arc<Runtime>,
    pub row: ActorRow,
    pub config: ActorConfig,
    pub hooks: Hooks,
    #[cfg(feature = "faults")]
    pub faults: greenroom::store::faults::Faults,
    #[cfg(feature = "faults")]
    pub file_faults: greenroom::store::FileFaults,
}

/// All hooks but `run`.
pub const HOOKS: Hooks = Hooks {
    migrate: true,
    create_state: true,
    create: true,
    create_vars: true,
    wake: true,
    before_start: true,
    sleep: true,
    destroy: true,
    run: false,
    serialize_state: true,
    connections: ConnHooks::ALL,
};

impl Fixture {
    /// An actor named `counter` with the key `a` and the input `in`, not started.
    pub async fn new() -> Self {
        Self::with(ActorConfig { has_state: true, ..ActorConfig::default() }).await
    }

    pub async fn with(config: ActorConfig) -> Self {
        let clock = Clock::manual(1_000_000);
        let options = StoreOptions::new(clock.clock());
        #[cfg(feature = "faults")]
        let faults = options.faults.clone();
        #[cfg(feature = "faults")]
        let file_faults = options.file_faults.clone();
        let store = SharedStore::open(StoreLocation::Memory, options).unwrap();
        let new = NewActor {
            id: IdSource::seeded(1).actor_id(),
            name: ActorName::new("counter").unwrap(),
            key: ActorKey::of(["a"]).unwrap(),
            input: Some(Bytes::from_static(b"in")),
            created_at_ms: 0,
        };
        let row = store.create(new).await.unwrap().row;
        let runtime = Runtime::new(clock.clock(), tokio::runtime::Handle::current());
        Self {
            clock,
            host: Arc::default(),
            script: Arc::default(),
            store,
            runtime,
            row,
            config,
            hooks: HOOKS,
            #[cfg(feature = "faults")]
            faults,
            #[cfg(feature = "faults")]
            file_faults,
        }
    }

    /// A new generation, not started.
    pub fn generation(&self) -> ActorContext {
        let number = self.row.number;
        let factory = ScriptFactory {
            config: Arc::new(self.config.clone()),
            hooks: self.hooks,
            script: Arc::clone(&self.script),
        };
        ActorContext::new(ActorParts {
            identity: Identity {
                id: self.row.id,
                number,
                name: self.row.name.clone(),
                key: self.row.key.clone(),
                region: String::new(),
                generation: self.store.open_generation(number),
            },
            factory: Arc::new(factory),
            store: self.store.actor(number),
            host: Arc::clone(&self.host) as Arc<dyn Host>,
            runtime: Arc::clone(&self.runtime),
        })
    }

    /// A generation that has started. Settled, so that no other thread is still
    /// performing effects and the test's own are performed by the test.
    pub async fn started(&self) -> ActorContext {
        let actor = self.generation();
        actor.start().await.unwrap();
        self.settle().await;
        actor
    }

    /// What the store has.
    pub async fn stored(&self) -> ActorRecord {
        self.store.actor(self.row.number).load().await.unwrap()
    }

    /// Lets everything run that can run without the clock: the tasks of this
    /// thread, and the store, which answers in order.
    pub async fn settle(&self) {
        for _ in 0..3 {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            self.store.find_by_id(IdSource::seeded(2).actor_id()).await.unwrap();
        }
    }

    /// Advances the clock, stopping and settling at each deadline on the way.
    pub async fn advance(&self, duration: Duration) {
        self.settle().await;
        let mut left = Some(duration);
        while let Some(limit) = left {
            left = self.clock.step(limit);
            self.settle().await;
        }
    }

    pub async fn advance_ms(&self, ms: u64) {
        self.advance(Duration::from_millis(ms)).await;
    }
}

/// Calls an action on the ordinary way.
pub fn call(actor: &ActorContext, name: &str) -> Answer {
    let (answer, answered) = oneshot::channel();
    let request = CallRequest {
        name: name.to_owned(),
        args: Bytes::from_static(b"args"),
        caller: Caller::Local,
        origin: 0,
        taken_by: None,
        reply: Reply::new(move |result| drop(answer.send(result))),
    };
    if let Err(refused) = actor.accept(request) {
        let (error, request) = *refused;
        request.reply.send(Err(error));
    }
    answered
}

/// The code of the error with which a call was answered.
pub fn error_code(answer: &mut Answer) -> String {
    let error = answer.try_recv().expect("it is answered").expect_err("with an error");
    format!("{}/{}", error.group, error.code)
}

/// Whether a call is still open.
pub fn is_open(answer: &mut Answer) -> bool {
    matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Empty))
}

/// The author's side. By default it answers everything at once, actions with
/// their arguments; what is named in `held` waits in `events` for the test.
#[derive(Default)]
pub struct Script {
    pub log: Mutex<Vec<String>>,
    pub held: Mutex<HashSet<&'static str>>,
    pub events: Mutex<Vec<ActorEvent>>,
    /// What the next serialisation hands over; taken by it.
    pub state: Mutex<Option<Bytes>>,
    pub inputs: Mutex<Vec<Option<Bytes>>>,
    pub fail: Mutex<Option<(&'static str, greenroom::error::Error)>>,
    /// The event at which the author's side panics.
    pub panic_at: Mutex<Option<&'static str>>,
}

impl Script {
    pub fn hold(&self, label: &'static str) {
        self.held.lock().insert(label);
    }

    pub fn release(&self, label: &'static str) {
        self.held.lock().remove(label);
    }

    /// Takes the oldest event of this name that waits.
    pub fn take(&self, label: &str) -> ActorEvent {
        let mut events = self.events.lock();
        let at = events.iter().position(|event| event.label() == label);
        let at = at.unwrap_or_else(|| panic!("no event {label} among {events:?}"));
        events.remove(at)
    }

    /// How many events of this name wait.
    pub fn waiting(&self, label: &str) -> usize {
        self.events.lock().iter().filter(|event| event.label() == label).count()
    }

    /// Takes the waiting call of an action and begins it.
    pub fn begin(&self, actor: &ActorContext) -> CallId {
        let ActorEvent::Action { call, .. } = self.take("action") else { unreachable!() };
        actor.begin_call(call);
        call
    }

    /// Answers a waiting serialisation.
    pub fn answer_snapshot(&self, state: &'static [u8]) {
        let ActorEvent::SerializeState { reply, .. } = self.take("serialize_state_save") else {
            unreachable!()
        };
        reply.send(Ok(vec![StateDelta::ActorState(Bytes::from_static(state))]));
    }

    /// Answers a waiting hook.
    pub fn answer_hook(&self, label: &str) {
        let ActorEvent::Hook { reply, .. } = self.take(label) else { unreachable!() };
        reply.send(Ok(None));
    }

    /// Names of what was delivered, without commits.
    pub fn story(&self) -> Vec<String> {
        self.log.lock().iter().filter(|label| *label != "committed").cloned().collect()
    }

    pub fn count(&self, label: &str) -> usize {
        self.log.lock().iter().filter(|seen| *seen == label).count()
    }
}

struct ScriptFactory {
    config: Arc<ActorConfig>,
    hooks: Hooks,
    script: Arc<Script>,
}

impl BehaviorFactory for ScriptFactory {
    fn config(&self) -> &Arc<ActorConfig> {
        &self.config
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn attach(&self, context: ActorContext) -> Arc<dyn Behavior> {
        Arc::new(Attached { script: Arc::clone(&self.script), context: Mutex::new(Some(context)) })
    }
}

struct Attached {
    script: Arc<Script>,
    /// Dropped with the last event, or the handle would keep itself alive.
    context: Mutex<Option<ActorContext>>,
}

impl Behavior for Attached {
    fn deliver(&self, event: ActorEvent) {
        let label = event.label();
        self.script.log.lock().push(label.to_owned());
        let panics = *self.script.panic_at.lock() == Some(label);
        assert!(!panics, "the script panics at {label}");
        if let ActorEvent::Hook { hook, .. } = &event {
            use greenroom::core::behavior::Hook;
            if let Hook::CreateState { input } | Hook::Create { input } = hook {
                self.script.inputs.lock().push(input.clone());
            }
        }
        if self.script.held.lock().contains(label) {
            self.script.events.lock().push(event);
            return;
        }
        let failure =
            self.script.fail.lock().as_ref().filter(|(at, _)| *at == label).map(|(_, e)| e.clone());
        match event {
            ActorEvent::Hook { reply, .. } | ActorEvent::Connection { reply, .. } => {
                reply.send(failure.map_or(Ok(None), Err));
            }
            ActorEvent::Run { reply } => reply.send(failure.map_or(Ok(true), Err)),
            ActorEvent::SerializeState { reply, .. } => {
                let state = self.script.state.lock().take();
                let deltas = state.into_iter().map(StateDelta::ActorState).collect();
                reply.send(failure.map_or(Ok(deltas), Err));
            }
            ActorEvent::Action { call, args, .. } => {
                let context = self.context.lock().clone().expect("not stopped");
                context.begin_call(call);
                context.finish_call(call, failure.map_or(Ok(args), Err));
            }
            ActorEvent::Stopped(_) => drop(self.context.lock().take()),
            ActorEvent::BeginHeld { .. }
            | ActorEvent::CancelCall { .. }
            | ActorEvent::Committed { .. }
            | ActorEvent::Abort(_)
            | ActorEvent::DeadlineReached => {}
        }
    }
}

/// A host that records what it hears, and answers intents if told to.
#[derive(Default)]
pub struct RecordingHost {
    pub intents: Mutex<Vec<Intent>>,
    pub outcomes: Mutex<Vec<StopOutcome>>,
    /// The sockets that are open.
    pub sockets: Mutex<HashMap<SocketId, Arc<dyn Peer>>>,
}

impl Host for RecordingHost {
    fn intent(&self, _actor: &ActorContext, intent: Intent) {
        self.intents.lock().push(intent);
    }

    fn peer(&self, _actor: &ActorContext, socket: SocketId) -> Option<Arc<dyn Peer>> {
        self.sockets.lock().get(&socket).cloned()
    }

    fn stopped(&self, _actor: &ActorContext, outcome: StopOutcome) {
        self.outcomes.lock().push(outcome);
    }
}
