//! Opening a host on a folder.
//!
//! # Invariants
//!
//! 1. The disk is touched on a thread of its own, never on the caller's.
//! 2. An opening that has begun ends, also when nobody waits for it any more.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use super::alarms::Alarms;
use super::entry::{StoreStanding, World};
use super::place::Places;
use super::sessions::Register;
use super::shared::{self, Claim, Claimed};
use super::table::Table;
use super::{EmbeddedHost, EnvironmentId, REMEMBERED, State, waker};
use crate::core::runtime::Runtime;
use crate::core::spawner::Spawner;
use crate::error::{Error, Result};
use crate::ids::{Generation, IdSource};
use crate::store::{
    ActorNumber, Mishaps, SharedStore, StoreError, StoreLocation, StoreObserver, StoreOptions,
};
use crate::time::{Clock, Duration};

/// How long a folder that another process holds is waited for, unless said
/// otherwise: a restart of a development server takes less.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a folder that another process holds is tried.
const LOCK_RETRY: Duration = Duration::from_millis(100);

/// How a host is opened.
pub struct OpenOptions {
    /// Where the actors are kept.
    pub location: StoreLocation,
    /// Who opens it.
    pub environment: EnvironmentId,
    /// Whether other environments of this process may use the same folder at the
    /// same time; all of them have to say so. One environment may always open its
    /// folder again. Memory is never shared.
    pub shared: bool,
    /// How the store is opened. Its clock is that of the host too; its observer is
    /// replaced by the host. Those of the first opening count.
    pub store: StoreOptions,
    /// Where tasks run: on a runtime that must outlive the host.
    pub spawner: Spawner,
    /// Where new ids come from.
    pub ids: Arc<IdSource>,
    /// How long to wait for a folder that another process holds.
    pub lock_timeout: Duration,
    /// What the actors are told of where they run; may be empty.
    pub region: String,
    /// How many sleeping actors are remembered.
    pub remembered: usize,
    /// What is to go wrong with commits; only tests by authors have any.
    pub mishaps: Option<Mishaps>,
}

impl OpenOptions {
    /// The usual options: not shared, ten seconds of patience.
    pub fn new(
        location: StoreLocation,
        environment: EnvironmentId,
        clock: Clock,
        spawner: impl Into<Spawner>,
    ) -> Self {
        Self {
            location,
            environment,
            shared: false,
            store: StoreOptions::new(clock),
            spawner: spawner.into(),
            ids: Arc::new(IdSource::from_os()),
            lock_timeout: LOCK_TIMEOUT,
            region: String::new(),
            remembered: REMEMBERED,
            mishaps: None,
        }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("location", &self.location)
            .field("environment", &self.environment)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl EmbeddedHost {
    /// Opens the actors of a folder, or joins those who have it open in this
    /// process. Whoever gets it says [`EmbeddedHost::environment_gone`] or
    /// [`EmbeddedHost::shutdown`] in the end.
    ///
    /// # Errors
    ///
    /// `storage/locked` when another process holds the folder for longer than
    /// `lock_timeout` (with its pid), or at once when another thread of this one
    /// does; else what makes the folder unusable, `storage/*`.
    pub fn open(options: OpenOptions) -> impl Future<Output = Result<Arc<Self>>> + Send + use<> {
        let ids = Arc::clone(&options.ids);
        let runtime = Runtime::with_ids(options.store.clock.clone(), options.spawner.clone(), ids);
        let (answer, answered) = oneshot::channel();
        let opening = Arc::clone(&runtime);
        // Nobody waits any more: the host is dropped, and with it the folder freed.
        let open = async move { drop(answer.send(open(options, opening).await)) };
        runtime.spawner().spawn("open", open);
        async move {
            answered.await.unwrap_or_else(|_| Err(Error::internal("the opening was given up")))
        }
    }

    /// Lets an environment use this host; `false` when it is shut down.
    pub(super) fn join(&self, environment: EnvironmentId) -> bool {
        self.locked(|state| {
            let is_open = state.world.shut_down.is_none();
            if is_open {
                state.places.join(environment);
            }
            is_open
        })
    }

    /// Whether an environment uses this host.
    pub(super) fn is_used_by(&self, environment: EnvironmentId) -> bool {
        self.state.lock().places.has(environment)
    }

    /// The environment to name to those who are refused.
    pub(super) fn owner(&self) -> Option<EnvironmentId> {
        self.state.lock().places.first()
    }
}

async fn open(options: OpenOptions, runtime: Arc<Runtime>) -> Result<Arc<EmbeddedHost>> {
    let StoreLocation::Folder(path) = &options.location else {
        return open_store(options, runtime, None).await;
    };
    let wanted = path.clone();
    let path = on_thread("greenroom-open", move || real_path(&wanted)).await??;
    let claimed = shared::claim(&path, options.environment, options.shared).await?;
    match claimed {
        Claimed::Open(host) => Ok(host),
        Claimed::Mine(claim) => open_store(options, runtime, Some(claim)).await,
    }
}

async fn open_store(
    options: OpenOptions,
    runtime: Arc<Runtime>,
    claim: Option<Claim>,
) -> Result<Arc<EmbeddedHost>> {
    let observer = Arc::new(Observer::default());
    let store = wait_for_store(&options, &claim, &observer).await?;
    // Before the alarms are read, and before any actor can be woken.
    store.settle_alarms().await?;
    let label = match &options.location {
        StoreLocation::Folder(path) => path.display().to_string(),
        StoreLocation::Memory | StoreLocation::Kept(_) => ":memory:".to_owned(),
    };
    let mut places = Places::default();
    places.join(options.environment);
    let host = Arc::new_cyclic(|this| EmbeddedHost {
        this: Weak::clone(this),
        store,
        runtime,
        region: options.region,
        shared: options.shared,
        mishaps: options.mishaps,
        label,
        state: Mutex::new(State {
            table: Table::new(options.remembered),
            places,
            world: World::new(),
            alarms: Alarms::new(),
        }),
        quiet: Notify::new(),
        departures: Notify::new(),
        sessions: Register::default(),
        alarm_changed: Arc::default(),
        ended: watch::Sender::new(None),
    });
    observer.watch(&host);
    waker::begin(&host);
    if let Some(claim) = claim {
        claim.fulfil(&host);
    }
    Ok(host)
}

/// Opens the store; waits for one that another process holds.
async fn wait_for_store(
    options: &OpenOptions,
    claim: &Option<Claim>,
    observer: &Arc<Observer>,
) -> Result<Arc<SharedStore>> {
    let clock = &options.store.clock;
    let give_up = clock.now() + options.lock_timeout;
    let location = match claim {
        Some(claim) => StoreLocation::Folder(claim.path().to_owned()),
        None => options.location.clone(),
    };
    loop {
        let location = location.clone();
        let store = StoreOptions {
            observer: Some(Arc::clone(observer) as Arc<dyn StoreObserver>),
            ..options.store.clone()
        };
        let opened =
            on_thread("greenroom-open", move || SharedStore::open(location, store)).await?;
        let now = clock.now();
        match opened {
            Err(StoreError::Locked { .. }) if now < give_up => {
                clock.sleep(LOCK_RETRY.min(give_up.since(now))).await;
            }
            opened => return Ok(opened?),
        }
    }
}

/// Does something that blocks on a thread of its own.
async fn on_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name(name.to_owned())
        // Nobody waits any more: what was made is dropped here.
        .spawn(move || drop(answer.send(work())))
        .map_err(|error| Error::internal(format_args!("no thread: {error}")))?;
    answered.await.map_err(|_| Error::internal("the thread that opens a store panicked"))
}

/// The one path of a folder that may not exist yet, whatever links lead to it.
fn real_path(path: &Path) -> Result<PathBuf, StoreError> {
    let unusable = |error: &std::io::Error| StoreError::Io {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let absolute = std::path::absolute(path).map_err(|error| unusable(&error))?;
    let mut missing = Vec::new();
    let mut at = absolute.as_path();
    loop {
        match at.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
                    return Err(unusable(&error));
                };
                missing.push(name);
                at = parent;
            }
        }
    }
}

/// Passes on what the store says of itself. Made before the host, because the
/// store is opened first; before there is a host nothing can have been written.
#[derive(Default)]
struct Observer(OnceLock<Weak<EmbeddedHost>>);

impl Observer {
    fn watch(&self, host: &Arc<EmbeddedHost>) {
        let is_first = self.0.set(Arc::downgrade(host)).is_ok();
        debug_assert!(is_first, "an observer is made for one host");
    }

    fn host(&self) -> Option<Arc<EmbeddedHost>> {
        self.0.get()?.upgrade()
    }
}

impl StoreObserver for Observer {
    fn failed_stop(&self, revoked: &[(ActorNumber, Generation)]) {
        if let Some(host) = self.host() {
            host.store_failed(revoked);
        }
    }

    fn file_failed(&self, number: ActorNumber, ended: Option<Generation>, error: &StoreError) {
        if let (Some(host), Some(generation)) = (self.host(), ended) {
            host.file_failed(number, generation, error);
        }
    }

    fn reopened(&self) {
        if let Some(host) = self.host() {
            host.store_stands(StoreStanding::Open);
        }
    }

    fn down(&self, error: &StoreError) {
        if let Some(host) = self.host() {
            host.store_stands(StoreStanding::Down(error.clone().into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_path_whatever_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("data")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(real.join("data"), real.join("link")).unwrap();

        assert_eq!(real_path(&real.join("data")).unwrap(), real.join("data"));
        #[cfg(unix)]
        assert_eq!(real_path(&real.join("link")).unwrap(), real.join("data"));
    }

    #[test]
    fn a_folder_that_does_not_exist_has_a_path_below_its_real_parent() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();

        assert_eq!(real_path(&real.join("a/b")).unwrap(), real.join("a/b"));
        #[cfg(unix)]
        assert_eq!(real_path(&real.join("link/a/b")).unwrap(), real.join("a/b"));
    }
}
