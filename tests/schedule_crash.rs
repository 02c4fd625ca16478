//! What a killed process leaves of schedules: what was to run at most once did not run
//! twice, and nothing that was acknowledged is gone without a trace.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::behavior::{
    ActorEvent, Behavior, BehaviorFactory, CallId, Caller, Hooks, Reply,
};
use greenroom::core::config::ActorConfig;
use greenroom::core::context::{ActorContext, CallRequest};
use greenroom::core::schedule::{OneShot, Retry};
use greenroom::host::embedded::{Address, Create, EmbeddedHost, EnvironmentId, OpenOptions};
use greenroom::ids::{ActorKey, ActorName};
use greenroom::store::StoreLocation;
use greenroom::time::{Clock, Duration};
use parking_lot::Mutex;

const CHILD_FOLDER: &str = "GREENROOM_TEST_FOLDER";
const HERE: EnvironmentId = EnvironmentId(1);
const ACTORS: usize = 4;
const ROUNDS: usize = 6;
/// How many one-shots a process acknowledges before it is killed.
const ENOUGH: usize = 150;

/// One write call, so that a kill cannot leave half a line.
fn say(line: String) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[derive(Default)]
struct Factory {
    config: Arc<ActorConfig>,
    contexts: Mutex<Vec<ActorContext>>,
}

impl BehaviorFactory for Factory {
    fn config(&self) -> &Arc<ActorConfig> {
        &self.config
    }

    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    fn attach(&self, context: ActorContext) -> Arc<dyn Behavior> {
        self.contexts.lock().push(context.clone());
        Arc::new(Author { context, open: Mutex::default() })
    }
}

struct Author {
    context: ActorContext,
    /// The call that runs until the next one begins.
    open: Mutex<Option<CallId>>,
}

impl Behavior for Author {
    fn deliver(&self, event: ActorEvent) {
        let ActorEvent::Action { call, caller, fire, .. } = event else { return };
        self.context.begin_call(call);
        let ended = match (caller, fire) {
            (Caller::Schedule, Some(fire)) => {
                say(format!("run {} {}", fire.id, fire.attempt));
                self.open.lock().replace(call)
            }
            _ => Some(call),
        };
        if let Some(ended) = ended {
            self.context.finish_call(ended, Ok(Bytes::new()));
        }
    }
}

async fn open(factory: &Arc<Factory>, clock: &Clock) -> Arc<EmbeddedHost> {
    let folder = std::env::var(CHILD_FOLDER).unwrap();
    let handle = tokio::runtime::Handle::current();
    let location = StoreLocation::Folder(folder.into());
    let options = OpenOptions::new(location, HERE, clock.clone(), handle);
    let host = EmbeddedHost::open(options).await.unwrap();
    let name = ActorName::new("clock").unwrap();
    host.register(HERE, name.clone(), Arc::clone(factory) as Arc<dyn BehaviorFactory>);
    for n in 0..ACTORS {
        let key = ActorKey::of([n.to_string()]).unwrap();
        let create = Some(Create::default());
        let (reply, answer) = Reply::channel();
        let request = CallRequest {
            name: "boot".to_owned(),
            args: Bytes::new(),
            caller: Caller::Local,
            origin: 0,
            taken_by: None,
            reply,
        };
        host.call(Address::Key { name: name.clone(), key, create }, request, HERE);
        answer.await.unwrap();
    }
    host
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test runs it in a process of its own"]
async fn schedules_until_it_is_killed() {
    println!();
    let (factory, clock) = (Arc::new(Factory::default()), Clock::system());
    let _host = open(&factory, &clock).await;
    let actors = factory.contexts.lock().clone();
    for n in 0.. {
        let actor = &actors[n % ACTORS];
        let retry = Retry { max_attempts: 5, initial_ms: Some(1), max_ms: None };
        let shot = OneShot {
            trigger_at: 0,
            action: "ring".to_owned(),
            args: Bytes::new(),
            retry: (n % 2 == 0).then_some(retry),
            key: None,
        };
        let made = actor.schedule().after((n % 7) as f64, shot);
        actor.commit_rows();
        let id = made.await.unwrap();
        say(format!("made {id} {}", if n % 2 == 0 { "retry" } else { "once" }));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test runs it in a process of its own"]
async fn runs_what_is_left() {
    println!();
    let (factory, clock) = (Arc::new(Factory::default()), Clock::system());
    let _host = open(&factory, &clock).await;
    let actors = factory.contexts.lock().clone();
    for actor in &actors {
        while !actor.schedule().list().unwrap().is_empty() {
            clock.sleep(Duration::from_millis(5)).await;
        }
        for letter in actor.schedule().dead().unwrap() {
            say(format!("dead {} {}", letter.id, letter.error.code));
        }
    }
}

/// What a process said before it ended or was killed.
fn lines(test: &str, folder: &Path, enough: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut said, mut made) = (Vec::new(), 0);
    for line in output.map_while(Result::ok) {
        made += usize::from(line.starts_with("made"));
        if made == enough {
            child.kill().unwrap();
        }
        said.push(line);
    }
    child.wait().unwrap();
    said
}

#[test]
fn a_kill_loses_no_schedule_and_runs_none_twice_that_runs_at_most_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    for round in 0..ROUNDS {
        said.extend(lines("schedules_until_it_is_killed", dir.path(), ENOUGH + 31 * round));
    }
    said.extend(lines("runs_what_is_left", dir.path(), usize::MAX));

    let mut made = BTreeMap::new();
    let mut runs: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut interrupted = HashSet::new();
    for line in &said {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["made", id, how] => drop(made.insert(id, how)),
            ["run", id, attempt] => runs.entry(id).or_default().push(attempt.parse().unwrap()),
            ["dead", id, "interrupted"] => drop(interrupted.insert(id)),
            _ => {}
        }
    }
    assert!(made.len() >= ROUNDS * ENOUGH, "{} one-shots were made", made.len());
    for (id, how) in &made {
        let attempts = runs.get(id).map_or(&[][..], Vec::as_slice);
        assert!(!attempts.is_empty() || interrupted.contains(id), "{id} ({how}) is gone");
        assert!(*how != "once" || attempts.len() <= 1, "{id} ran {} times", attempts.len());
        assert!(
            attempts.is_sorted_by(|a, b| a < b),
            "{id}: an attempt was not stored: {attempts:?}"
        );
    }
}
