//! One actor's share of the metrics of its name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use prometheus_client::metrics::gauge::Gauge;

use super::labels::{Inbox, KeepAwakeKind, StateMutation, UserTaskKind};
use super::name::NameMetrics;
use super::startup::StartupTimer;
use crate::time::{Clock, Duration};

/// What one actor contributes. Counts as active until it stops or is dropped;
/// from then on it contributes nothing more to any gauge.
#[derive(Debug)]
pub struct ActorMetrics {
    name: Arc<NameMetrics>,
    /// Set once, by the stop or the drop.
    stopped: AtomicBool,
    http_requests: Share,
    shutdown_tasks: Share,
    connections: Share,
    queue_depth: Share,
    keep_awake: [Share; KeepAwakeKind::ALL.len()],
    inbox_depth: [Share; Inbox::ALL.len()],
    user_tasks: [Share; UserTaskKind::COUNT],
}

/// What the actor has added to a gauge and not yet taken back.
#[derive(Debug, Default)]
struct Share(AtomicU32);

impl Share {
    fn set(&self, gauge: &Gauge, count: u32) {
        let before = self.0.swap(count, Ordering::Relaxed);
        gauge.inc_by(i64::from(count) - i64::from(before));
    }

    fn raise(&self, gauge: &Gauge) {
        self.0.fetch_add(1, Ordering::Relaxed);
        gauge.inc();
    }

    /// Nothing when the share was given back meanwhile.
    fn lower(&self, gauge: &Gauge) {
        let less = |share: u32| share.checked_sub(1);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            gauge.dec();
        }
    }
}

impl ActorMetrics {
    pub(super) fn new(name: Arc<NameMetrics>) -> Self {
        name.started.inc();
        name.active_count.inc();
        Self {
            name,
            stopped: AtomicBool::new(false),
            http_requests: Share::default(),
            shutdown_tasks: Share::default(),
            connections: Share::default(),
            queue_depth: Share::default(),
            keep_awake: Default::default(),
            inbox_depth: Default::default(),
            user_tasks: Default::default(),
        }
    }

    /// Measures the start that begins now.
    pub fn begin_startup(&self, clock: Clock) -> StartupTimer {
        StartupTimer::new(Arc::clone(&self.name), clock)
    }

    /// How long `createState` took.
    pub fn create_state(&self, duration: Duration) {
        let family = &self.name.families.create_state;
        family.get_or_create(&self.name.labels([])).observe(duration);
    }

    /// How long `createVars` took.
    pub fn create_vars(&self, duration: Duration) {
        let family = &self.name.families.create_vars;
        family.get_or_create(&self.name.labels([])).observe(duration);
    }

    /// Work of the author's code began.
    pub fn begin_user_task(&self, kind: UserTaskKind) {
        if self.lives() {
            self.user_tasks[kind as usize].raise(&self.name.user_task(kind).active);
        }
    }

    /// Work of the author's code ended after `duration`.
    pub fn end_user_task(&self, kind: UserTaskKind, duration: Duration) {
        let task = self.name.user_task(kind);
        task.duration.observe(duration);
        self.user_tasks[kind as usize].lower(&task.active);
    }

    /// How many HTTP requests are being answered.
    pub fn set_http_requests(&self, count: usize) {
        self.set(&self.http_requests, &self.name.http_requests, count);
    }

    /// How many things keep the actor awake.
    pub fn set_keep_awake(&self, kind: KeepAwakeKind, count: usize) {
        self.set(&self.keep_awake[kind as usize], &self.name.keep_awake[kind as usize], count);
    }

    /// How many things a shutdown would wait for.
    pub fn set_shutdown_tasks(&self, count: usize) {
        self.set(&self.shutdown_tasks, &self.name.shutdown_tasks, count);
    }

    /// How many clients are connected, those that are being accepted included.
    pub fn set_connections(&self, count: usize) {
        self.set(&self.connections, &self.name.connections_active, count);
    }

    /// A client was accepted.
    pub fn connection_accepted(&self) {
        self.name.connections.inc();
    }

    /// Messages were sent to the queue and handed out by it, and so many are in it.
    pub fn queue_moved(&self, sent: u32, received: u32, depth: usize) {
        self.name.queue_messages_sent.inc_by(sent.into());
        self.name.queue_messages_received.inc_by(received.into());
        self.set(&self.queue_depth, &self.name.queue_depth, depth);
    }

    /// How many things wait in an inbox.
    pub fn set_inbox_depth(&self, inbox: Inbox, count: usize) {
        self.set(&self.inbox_depth[inbox as usize], &self.name.inbox_depth[inbox as usize], count);
    }

    /// How long a shutdown took; `reason` is the label of the stop's reason.
    pub fn shutdown_wait(&self, reason: &'static str, duration: Duration) {
        let labels = self.name.labels([("reason", reason)]);
        self.name.families.shutdown_wait.get_or_create(&labels).observe(duration);
    }

    /// A shutdown used up its grace period; `reason` is the label of the stop's
    /// reason.
    pub fn shutdown_timeout(&self, reason: &'static str) {
        let labels = self.name.labels([("reason", reason)]);
        self.name.families.shutdown_timeout.get_or_create(&labels).inc();
    }

    /// The runtime's own fields of the actor's record changed.
    pub fn state_mutation(&self, reason: StateMutation) {
        let labels = self.name.labels([("reason", reason.label())]);
        self.name.families.state_mutation.get_or_create(&labels).inc();
    }

    /// A subsystem did not drain after the shutdown, such as `http_requests` in
    /// `destroy_drain`.
    pub fn direct_subsystem_shutdown_warning(
        &self,
        subsystem: &'static str,
        operation: &'static str,
    ) {
        let labels = self.name.labels([("subsystem", subsystem), ("operation", operation)]);
        self.name.families.direct_subsystem_shutdown_warning.get_or_create(&labels).inc();
    }

    /// Counts the actor as stopped and gives its share back. Only the first call
    /// does anything; the drop calls it too.
    pub fn stop(&self) {
        if !self.stopped.swap(true, Ordering::Relaxed) {
            self.name.stopped.inc();
            self.name.active_count.dec();
            self.give_back();
        }
    }

    fn lives(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    fn set(&self, share: &Share, gauge: &Gauge, count: usize) {
        if self.lives() {
            share.set(gauge, u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    fn give_back(&self) {
        let name = &self.name;
        self.http_requests.set(&name.http_requests, 0);
        self.shutdown_tasks.set(&name.shutdown_tasks, 0);
        self.connections.set(&name.connections_active, 0);
        self.queue_depth.set(&name.queue_depth, 0);
        for (share, gauge) in self.keep_awake.iter().zip(&name.keep_awake) {
            share.set(gauge, 0);
        }
        for (share, gauge) in self.inbox_depth.iter().zip(&name.inbox_depth) {
            share.set(gauge, 0);
        }
        for (share, task) in self.user_tasks.iter().zip(name.user_tasks()) {
            if let Some(task) = task {
                share.set(&task.active, 0);
            }
        }
    }
}

impl Drop for ActorMetrics {
    fn drop(&mut self) {
        self.stop();
        // What was added by somebody who had looked just before the stop.
        self.give_back();
    }
}
