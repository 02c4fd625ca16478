//! A host, a script that its actors follow, and the clock.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::behavior::{Caller, Hooks, Reply};
use greenroom::core::config::ActorConfig;
use greenroom::core::context::CallRequest;
use greenroom::error::Result;
use greenroom::host::embedded::{Address, Create, EmbeddedHost, EnvironmentId, OpenOptions};
use greenroom::ids::{ActorId, ActorKey, ActorName, IdSource};
use greenroom::store::{ActorRow, ListFilter, StoreLocation};
use greenroom::time::{Clock, Duration, ManualClock};

use crate::script::{HOOKS, Script};

pub const HERE: EnvironmentId = EnvironmentId(1);
pub const THERE: EnvironmentId = EnvironmentId(2);

/// Far longer than anything takes; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host with the type `counter`, which follows the script.
pub struct Place {
    pub clock: ManualClock,
    pub host: Arc<EmbeddedHost>,
    pub script: Script,
}

impl Place {
    /// In memory, with all hooks.
    pub async fn new() -> Self {
        Self::with(HOOKS).await
    }

    /// In memory, with these hooks.
    pub async fn with(hooks: Hooks) -> Self {
        let clock = Clock::manual(1_000_000);
        Self::open_with(options(StoreLocation::Memory, &clock), clock, hooks).await
    }

    /// In a folder, with all hooks.
    pub async fn folder(path: &Path) -> Self {
        let clock = Clock::manual(1_000_000);
        let options = options(StoreLocation::Folder(path.to_owned()), &clock);
        Self::open_with(options, clock, HOOKS).await
    }

    pub async fn open_with(options: OpenOptions, clock: ManualClock, hooks: Hooks) -> Self {
        let environment = options.environment;
        let host = within(EmbeddedHost::open(options)).await.expect("the place is free");
        let script = Script::default();
        host.register(environment, counter(), script.factory(hooks, config()));
        Self { clock, host, script }
    }

    /// Calls an action from [`HERE`].
    pub fn call<A: Into<Bytes>>(
        &self,
        address: Address,
        name: &str,
        args: A,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<A> {
        call(&self.host, address, HERE, name, args)
    }

    /// The row of an actor.
    pub async fn resolve(&self, address: Address) -> Result<ActorRow> {
        let (reply, row) = Reply::channel();
        self.host.resolve(address, HERE, reply);
        within(row).await
    }

    /// Destroys an actor.
    pub fn destroy(&self, address: Address) -> impl Future<Output = Result<bool>> + Send + use<> {
        let (reply, destroyed) = Reply::channel();
        self.host.destroy(address, reply);
        within(destroyed)
    }

    /// Puts an actor to sleep.
    pub fn sleep(&self, id: ActorId) -> impl Future<Output = Result<()>> + Send + use<> {
        let (reply, slept) = Reply::channel();
        self.host.sleep(id, reply);
        within(slept)
    }

    /// A running actor; returns its id.
    pub async fn running(&self, key: &str) -> ActorId {
        self.call(or_create(key), "echo", "x").await.expect("it starts");
        self.resolve(get(key)).await.expect("it runs").id
    }

    /// Lets everything run that can run without the clock: the tasks of this
    /// thread, and the store in memory, which answers in order.
    pub async fn settle(&self) {
        for _ in 0..4 {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            within(self.host.list(everything())).await.expect("the store is open");
        }
    }

    /// Lets everything run until one event of this label waits, and releases it.
    pub async fn meet(&self, label: &str) {
        self.until(|| self.script.waiting(label) == 1).await;
        assert_eq!(self.script.release(label), 1);
    }

    /// Lets everything run until `done`, or fails.
    pub async fn until(&self, done: impl Fn() -> bool) {
        for _ in 0..500 {
            if done() {
                return;
            }
            self.settle().await;
        }
        panic!("it did not happen; seen: {:?}", self.script.log());
    }
}

/// Calls an action.
pub fn call<A: Into<Bytes>>(
    host: &EmbeddedHost,
    address: Address,
    environment: EnvironmentId,
    name: &str,
    args: A,
) -> impl Future<Output = Result<Bytes>> + Send + use<A> {
    let (reply, answer) = Reply::channel();
    let request = CallRequest {
        name: name.to_owned(),
        args: args.into(),
        caller: Caller::Local,
        origin: 0,
        taken_by: None,
        reply,
    };
    host.call(address, request, environment);
    within(answer)
}

/// Waits, but not for ever.
pub fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    #[expect(clippy::disallowed_methods, reason = "a guard against a hang, not a wait")]
    let guarded = async { tokio::time::timeout(PATIENCE, future).await };
    async { guarded.await.expect("it ends") }
}

pub fn options(location: StoreLocation, clock: &ManualClock) -> OpenOptions {
    let handle = tokio::runtime::Handle::current();
    OpenOptions {
        ids: Arc::new(IdSource::seeded(1)),
        ..OpenOptions::new(location, HERE, clock.clock(), handle)
    }
}

pub fn config() -> ActorConfig {
    ActorConfig { has_state: true, ..ActorConfig::default() }
}

pub fn counter() -> ActorName {
    ActorName::new("counter").expect("a good name")
}

pub fn key(key: &str) -> ActorKey {
    ActorKey::of([key]).expect("a short key")
}

/// Whoever has the key.
pub fn get(of: &str) -> Address {
    Address::Key { name: counter(), key: key(of), create: None }
}

/// Whoever has the key, made if nobody has.
pub fn or_create(of: &str) -> Address {
    Address::Key { name: counter(), key: key(of), create: Some(Create::default()) }
}

pub fn everything() -> ListFilter {
    ListFilter { name: None, key_prefix: ActorKey::default(), after: None, limit: 100 }
}

/// Group and code of what was to fail.
pub fn code<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.expect_err("it fails");
    format!("{}/{}", error.group, error.code)
}
