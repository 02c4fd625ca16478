//! An author's side that does what a test tells it and remembers what it saw.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::behavior::{
    ActorEvent, Behavior, BehaviorFactory, CallId, Hook, Hooks, StateDelta, StopOutcome,
};
use greenroom::core::config::ActorConfig;
use greenroom::core::connections::{ConnHandle, ConnHooks};
use greenroom::core::context::ActorContext;
use greenroom::error::{Error, ErrorCode, Result};
use greenroom::gateway::raw_socket::RawSocket;
use greenroom::ids::ActorId;
use parking_lot::Mutex;

/// All hooks but `run` and the serialisation.
pub const HOOKS: Hooks = Hooks {
    migrate: false,
    create_state: true,
    create: true,
    create_vars: true,
    wake: true,
    before_start: true,
    sleep: true,
    destroy: true,
    run: false,
    serialize_state: false,
    connections: ConnHooks::NONE,
};

/// The script of any number of actors. Clones are the same script.
///
/// Actions: `echo` answers its arguments, `hold` waits for [`Script::release`],
/// `set` stores its arguments as the state, `get` answers the state, `who` the id of the
/// connection, `shout` broadcasts an event, `leave` disconnects the caller, `sleep`,
/// `destroy` and `crash` ask for that and answer at once.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    log: Vec<Seen>,
    /// Labels that wait for [`Script::release`].
    held: HashSet<String>,
    waiting: Vec<(String, Waiting)>,
    failing: HashMap<String, Error>,
    inputs: Vec<Option<Bytes>>,
    contexts: Vec<ActorContext>,
    alive: HashMap<ActorId, usize>,
    overlaps: usize,
    failures: Vec<(u64, Error)>,
    panics: bool,
    takes_sockets: bool,
}

type Waiting = Box<dyn FnOnce(Result<()>) + Send>;

/// One event that reached the author's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whose.
    pub actor: ActorId,
    /// In which run.
    pub generation: u64,
    /// The hook's label, or the action's name and arguments.
    pub what: String,
}

impl Script {
    /// A factory of actors that follow this script.
    pub fn factory(&self, hooks: Hooks, config: ActorConfig) -> Arc<dyn BehaviorFactory> {
        Arc::new(Factory { script: self.clone(), hooks, config: Arc::new(config) })
    }

    /// Makes every event of this label wait until it is released.
    pub fn hold(&self, label: &str) {
        self.0.lock().held.insert(label.to_owned());
    }

    /// Answers what waits under this label, and holds it no longer. Returns how
    /// many waited.
    pub fn release(&self, label: &str) -> usize {
        let released: Vec<_> = {
            let mut state = self.0.lock();
            state.held.remove(label);
            state.waiting.extract_if(.., |(waiting, _)| waiting == label).collect()
        };
        let count = released.len();
        for (_, waiting) in released {
            waiting(Ok(()));
        }
        count
    }

    /// Answers what waits under this label with an error, and holds it no longer. Returns
    /// how many waited.
    pub fn fail_waiting(&self, label: &str, error: &Error) -> usize {
        let failed: Vec<_> = {
            let mut state = self.0.lock();
            state.held.remove(label);
            state.waiting.extract_if(.., |(waiting, _)| waiting == label).collect()
        };
        let count = failed.len();
        for (_, waiting) in failed {
            waiting(Err(error.clone()));
        }
        count
    }

    /// How many events wait under this label.
    pub fn waiting(&self, label: &str) -> usize {
        self.0.lock().waiting.iter().filter(|(waiting, _)| waiting == label).count()
    }

    /// Makes every event of this label fail, until told otherwise.
    pub fn fail(&self, label: &str, error: Option<Error>) {
        let mut state = self.0.lock();
        match error {
            Some(error) => drop(state.failing.insert(label.to_owned(), error)),
            None => drop(state.failing.remove(label)),
        }
    }

    /// Makes the author echo what comes over raw sockets.
    pub fn take_sockets(&self) {
        self.0.lock().takes_sockets = true;
    }

    /// Makes the next generation's factory panic.
    pub fn panic_once(&self) {
        self.0.lock().panics = true;
    }

    /// Everything seen so far.
    pub fn log(&self) -> Vec<Seen> {
        self.0.lock().log.clone()
    }

    /// What was seen, without by whom, of those that begin with `prefix`.
    pub fn seen(&self, prefix: &str) -> Vec<String> {
        let log = self.log();
        log.into_iter().map(|seen| seen.what).filter(|what| what.starts_with(prefix)).collect()
    }

    /// How often this was seen.
    pub fn count(&self, what: &str) -> usize {
        self.0.lock().log.iter().filter(|seen| seen.what == what).count()
    }

    /// The inputs with which actors were created.
    pub fn inputs(&self) -> Vec<Option<Bytes>> {
        self.0.lock().inputs.clone()
    }

    /// The handles of all generations so far.
    pub fn contexts(&self) -> Vec<ActorContext> {
        self.0.lock().contexts.clone()
    }

    /// The handle of the newest generation.
    pub fn newest(&self) -> ActorContext {
        self.contexts().pop().expect("some generation was made")
    }

    /// How often a generation was made while another of its actor lived.
    pub fn overlaps(&self) -> usize {
        self.0.lock().overlaps
    }

    /// The generations that failed, at their start or later, and by what.
    pub fn failures(&self) -> Vec<(u64, Error)> {
        self.0.lock().failures.clone()
    }

    /// How many generations live.
    pub fn alive(&self) -> usize {
        self.0.lock().alive.values().sum()
    }

    /// Answers `done` as the script says for this label.
    fn meet(&self, label: &str, done: impl FnOnce(Result<()>) + Send + 'static) {
        let now = {
            let mut state = self.0.lock();
            if state.held.contains(label) {
                state.waiting.push((label.to_owned(), Box::new(done)));
                return;
            }
            state.failing.get(label).cloned()
        };
        done(now.map_or(Ok(()), Err));
    }
}

struct Factory {
    script: Script,
    hooks: Hooks,
    config: Arc<ActorConfig>,
}

impl BehaviorFactory for Factory {
    fn config(&self) -> &Arc<ActorConfig> {
        &self.config
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn attach(&self, context: ActorContext) -> Arc<dyn Behavior> {
        let mut state = self.script.0.lock();
        if std::mem::take(&mut state.panics) {
            drop(state);
            panic!("on purpose");
        }
        let alive = state.alive.entry(context.actor_id()).or_default();
        *alive += 1;
        let overlaps = usize::from(*alive > 1);
        state.overlaps += overlaps;
        state.contexts.push(context.clone());
        drop(state);
        Arc::new(Author {
            script: self.script.clone(),
            actor: context.actor_id(),
            generation: context.generation().get(),
            context: Mutex::new(Some(context)),
        })
    }
}

struct Author {
    script: Script,
    actor: ActorId,
    generation: u64,
    /// Dropped at the end, or the generation would keep itself alive.
    context: Mutex<Option<ActorContext>>,
}

impl Behavior for Author {
    fn deliver(&self, event: ActorEvent) {
        match event {
            ActorEvent::Hook { hook, reply } => {
                let label = hook.label();
                self.see(label.to_owned());
                let result = match hook {
                    Hook::Create { input } => {
                        self.script.0.lock().inputs.push(input);
                        None
                    }
                    Hook::CreateState { .. } => Some(Bytes::from_static(b"new")),
                    _ => None,
                };
                self.script.meet(label, move |met| reply.send(met.map(|()| result)));
            }
            ActorEvent::SerializeState { reply, .. } => {
                self.see("serialize".to_owned());
                self.script.meet("serialize", move |met| reply.send(met.map(|()| Vec::new())));
            }
            ActorEvent::Action { call, name, args, connection, .. } => {
                self.act(call, &name, args, connection);
            }
            ActorEvent::Abort(reason) => self.see(format!("abort {}", reason.label())),
            ActorEvent::Stopped(outcome) => {
                self.see("stopped".to_owned());
                if let StopOutcome::Broken(error) | StopOutcome::StartFailed(error) = outcome {
                    self.script.0.lock().failures.push((self.generation, error));
                }
                *self.script.0.lock().alive.entry(self.actor).or_default() -= 1;
                drop(self.context.lock().take());
            }
            ActorEvent::Run { reply } => reply.send(Ok(true)),
            ActorEvent::Connection { hook, connection, reply } => {
                let label = hook.label();
                self.see(label.to_owned());
                if label == "on_connect" {
                    connection.send("hello", Bytes::from_static(b"\x81\x01"));
                }
                let is_state = label == "create_conn_state";
                let result = is_state.then(|| Bytes::from_static(b"mine"));
                self.script.meet(label, move |met| reply.send(met.map(|()| result)));
            }
            ActorEvent::Committed { .. }
            | ActorEvent::BeginHeld { .. }
            | ActorEvent::CancelCall { .. }
            | ActorEvent::DeadlineReached => {}
        }
    }
}

impl Author {
    fn act(&self, call: CallId, name: &str, args: Bytes, connection: Option<ConnHandle>) {
        self.see(format!("{name} {}", String::from_utf8_lossy(&args)).trim_end().to_owned());
        let context = self.context.lock().clone().expect("nothing comes after the end");
        context.begin_call(call);
        let nothing = Ok(Bytes::new());
        let result = match name {
            "echo" => Ok(args),
            "hold" => {
                let holding = context.clone();
                let done = move |met: Result<()>| {
                    holding.finish_call(call, met.map(|()| args));
                };
                return self.script.meet("hold", done);
            }
            "set" => {
                context.mark_dirty();
                let number = context.commit_state(vec![StateDelta::ActorState(args)]);
                assert!(number.is_some(), "an actor that takes calls can commit");
                nothing
            }
            "get" => Ok(context.state()),
            "who" => Ok(connection.map_or_else(Bytes::new, |connection| {
                Bytes::copy_from_slice(connection.id().as_str().as_bytes())
            })),
            "\u{3}open" | "\u{3}closed" if self.script.0.lock().takes_sockets => nothing,
            "\u{3}message" if self.script.0.lock().takes_sockets => {
                let number = u64::from_le_bytes(args[..8].try_into().expect("eight bytes"));
                let socket = RawSocket::find(number).expect("it is open");
                match &args[11..] {
                    b"close" => socket.close(&context, 4_000, "enough"),
                    data => socket.send(&context, Bytes::copy_from_slice(data), args[10] == 1),
                }
                nothing
            }
            // What became of a message for a queue, as a map in CBOR.
            "\u{1}send" => {
                let head = b"\xa2\x66status\x69completed\x68response";
                Ok([&head[..], &args].concat().into())
            }
            // Somebody looks: the state, or another one in its place, or what a workflow did.
            "\u{4}inspect" if matches!(args[0], 0 | 4) => {
                let (label, answer) = match args[0] {
                    0 => ("look", context.state()),
                    _ => ("history", Bytes::new()),
                };
                let looking = context.clone();
                let done = move |met: Result<()>| {
                    looking.finish_call(call, met.map(|()| answer));
                };
                return self.script.meet(label, done);
            }
            "\u{4}inspect" if args[0] == 1 => {
                context.mark_dirty();
                context.commit_state(vec![StateDelta::ActorState(args.slice(1..))]);
                nothing
            }
            "\u{4}inspect" => Ok(args.slice(1..)),
            "shout" => {
                context.broadcast("shout", args);
                nothing
            }
            "leave" => {
                let connection = connection.expect("called over one");
                // It begins with the call.
                drop(connection.disconnect("left"));
                nothing
            }
            "sleep" => context.sleep().map(|()| Bytes::new()).map_err(Error::from),
            "destroy" => context.destroy().map(|()| Bytes::new()).map_err(Error::from),
            "crash" => context
                .stop_with_error(&String::from_utf8_lossy(&args))
                .map(|()| Bytes::new())
                .map_err(Error::from),
            _ => Err(Error::new(ErrorCode::new("actor", "action_not_found"), name)),
        };
        context.finish_call(call, result);
    }

    fn see(&self, what: String) {
        let seen = Seen { actor: self.actor, generation: self.generation, what };
        self.script.0.lock().log.push(seen);
    }
}
