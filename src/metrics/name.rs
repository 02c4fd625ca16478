//! The metrics that all actors of one name share.

use std::sync::{Arc, OnceLock};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use super::histogram::{DEFAULT_BOUNDS, Histogram, STARTUP_BOUNDS};
use super::labels::{Inbox, KeepAwakeKind, UserTaskKind};

/// The actor's name and further labels.
pub(super) type Labels<const N: usize> =
    ([(&'static str, Arc<str>); 1], [(&'static str, &'static str); N]);

/// Makes the histograms of a family; a function, so that a family has a name.
type NewHistogram = fn() -> Histogram;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, NewHistogram>;

/// Every metric of every name.
#[derive(Debug)]
pub(super) struct Families {
    active_count: Family<Labels<0>, Gauge>,
    started: Family<Labels<0>, Counter>,
    stopped: Family<Labels<0>, Counter>,
    pub(super) startup_phase: Histograms<3>,
    pub(super) create_state: Histograms<0>,
    pub(super) create_vars: Histograms<0>,
    inbox_depth: Family<Labels<1>, Gauge>,
    user_tasks_active: Family<Labels<1>, Gauge>,
    user_task_duration: Histograms<1>,
    http_requests_active: Family<Labels<0>, Gauge>,
    keep_awake_active: Family<Labels<1>, Gauge>,
    shutdown_tasks_active: Family<Labels<0>, Gauge>,
    connections_active: Family<Labels<0>, Gauge>,
    connections: Family<Labels<0>, Counter>,
    queue_depth: Family<Labels<0>, Gauge>,
    queue_messages_sent: Family<Labels<0>, Counter>,
    queue_messages_received: Family<Labels<0>, Counter>,
    pub(super) shutdown_wait: Histograms<1>,
    pub(super) shutdown_timeout: Family<Labels<1>, Counter>,
    pub(super) state_mutation: Family<Labels<1>, Counter>,
    pub(super) direct_subsystem_shutdown_warning: Family<Labels<2>, Counter>,
}

impl Families {
    /// Counters are named without the `_total` that the encoder appends.
    pub(super) fn register(registry: &mut Registry) -> Self {
        fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
            registry.register(name, help, metric.clone());
            metric
        }
        fn by_default<const N: usize>() -> Histograms<N> {
            Family::new_with_constructor(|| Histogram::new(DEFAULT_BOUNDS))
        }
        fn by_startup<const N: usize>() -> Histograms<N> {
            Family::new_with_constructor(|| Histogram::new(STARTUP_BOUNDS))
        }
        let r = registry;
        Self {
            active_count: add(r, "active_count", "Actors that live", Family::default()),
            started: add(r, "started", "Actors that began to live", Family::default()),
            stopped: add(r, "stopped", "Actors that ceased to live", Family::default()),
            startup_phase: add(
                r,
                "startup_phase_duration_seconds",
                "How long the steps of a start took",
                by_startup(),
            ),
            create_state: add(
                r,
                "create_state_duration_seconds",
                "How long createState took",
                by_default(),
            ),
            create_vars: add(
                r,
                "create_vars_duration_seconds",
                "How long createVars took",
                by_default(),
            ),
            inbox_depth: add(r, "inbox_depth", "What waits for the actor", Family::default()),
            user_tasks_active: add(
                r,
                "user_tasks_active",
                "Work of the author's code that is going on",
                Family::default(),
            ),
            user_task_duration: add(
                r,
                "user_task_duration_seconds",
                "How long work of the author's code took",
                by_default(),
            ),
            http_requests_active: add(
                r,
                "http_requests_active",
                "HTTP requests that are being answered",
                Family::default(),
            ),
            keep_awake_active: add(
                r,
                "keep_awake_active",
                "What keeps actors awake",
                Family::default(),
            ),
            shutdown_tasks_active: add(
                r,
                "shutdown_tasks_active",
                "What a shutdown would wait for",
                Family::default(),
            ),
            connections_active: add(
                r,
                "connections_active",
                "Clients that are connected to live actors",
                Family::default(),
            ),
            connections: add(r, "connections", "Clients that were accepted", Family::default()),
            queue_depth: add(
                r,
                "queue_depth",
                "Messages in the queues of live actors",
                Family::default(),
            ),
            queue_messages_sent: add(
                r,
                "queue_messages_sent",
                "Messages that were sent to queues",
                Family::default(),
            ),
            queue_messages_received: add(
                r,
                "queue_messages_received",
                "Messages that were handed out by queues, each time",
                Family::default(),
            ),
            shutdown_wait: add(r, "shutdown_wait_seconds", "How long shutdowns took", by_default()),
            shutdown_timeout: add(
                r,
                "shutdown_timeout",
                "Shutdowns that used up their grace period",
                Family::default(),
            ),
            state_mutation: add(
                r,
                "state_mutation",
                "Changes of the runtime's part of actor records",
                Family::default(),
            ),
            direct_subsystem_shutdown_warning: add(
                r,
                "direct_subsystem_shutdown_warning",
                "Subsystems that did not drain after a shutdown",
                Family::default(),
            ),
        }
    }
}

/// One kind of user task of one name.
#[derive(Debug)]
pub(super) struct UserTask {
    pub(super) active: Gauge,
    pub(super) duration: Histogram,
}

/// The metrics of one name, looked up once.
#[derive(Debug)]
pub(super) struct NameMetrics {
    name: Arc<str>,
    pub(super) families: Arc<Families>,
    pub(super) active_count: Gauge,
    pub(super) started: Counter,
    pub(super) stopped: Counter,
    pub(super) http_requests: Gauge,
    pub(super) shutdown_tasks: Gauge,
    pub(super) connections_active: Gauge,
    pub(super) connections: Counter,
    pub(super) queue_depth: Gauge,
    pub(super) queue_messages_sent: Counter,
    pub(super) queue_messages_received: Counter,
    pub(super) keep_awake: [Gauge; KeepAwakeKind::ALL.len()],
    pub(super) inbox_depth: [Gauge; Inbox::ALL.len()],
    /// By kind, each made when it first happens, so that a scrape does not list
    /// a dozen empty histograms per name.
    user_tasks: [OnceLock<UserTask>; UserTaskKind::COUNT],
}

impl NameMetrics {
    pub(super) fn new(name: Arc<str>, families: Arc<Families>) -> Self {
        let plain = labels(&name, []);
        Self {
            active_count: families.active_count.get_or_create_owned(&plain),
            started: families.started.get_or_create_owned(&plain),
            stopped: families.stopped.get_or_create_owned(&plain),
            http_requests: families.http_requests_active.get_or_create_owned(&plain),
            connections_active: families.connections_active.get_or_create_owned(&plain),
            connections: families.connections.get_or_create_owned(&plain),
            queue_depth: families.queue_depth.get_or_create_owned(&plain),
            queue_messages_sent: families.queue_messages_sent.get_or_create_owned(&plain),
            queue_messages_received: families.queue_messages_received.get_or_create_owned(&plain),
            shutdown_tasks: families.shutdown_tasks_active.get_or_create_owned(&plain),
            keep_awake: KeepAwakeKind::ALL.map(|kind| {
                let labels = labels(&name, [("kind", kind.label())]);
                families.keep_awake_active.get_or_create_owned(&labels)
            }),
            inbox_depth: Inbox::ALL.map(|inbox| {
                let labels = labels(&name, [("inbox", inbox.label())]);
                families.inbox_depth.get_or_create_owned(&labels)
            }),
            user_tasks: [const { OnceLock::new() }; UserTaskKind::COUNT],
            families,
            name,
        }
    }

    pub(super) fn user_task(&self, kind: UserTaskKind) -> &UserTask {
        self.user_tasks[kind as usize].get_or_init(|| {
            let labels = self.labels([("kind", kind.label())]);
            UserTask {
                active: self.families.user_tasks_active.get_or_create_owned(&labels),
                duration: self.families.user_task_duration.get_or_create_owned(&labels),
            }
        })
    }

    /// By kind; `None` for what never happened.
    pub(super) fn user_tasks(&self) -> impl Iterator<Item = Option<&UserTask>> {
        self.user_tasks.iter().map(OnceLock::get)
    }

    /// The labels of this name; for what happens too rarely to keep a handle.
    pub(super) fn labels<const N: usize>(
        &self,
        rest: [(&'static str, &'static str); N],
    ) -> Labels<N> {
        labels(&self.name, rest)
    }
}

fn labels<const N: usize>(name: &Arc<str>, rest: [(&'static str, &'static str); N]) -> Labels<N> {
    ([("actor_name", Arc::clone(name))], rest)
}
