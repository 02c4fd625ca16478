//! Tracked work: regions that count, and futures that run within one.
//!
//! # Invariants
//!
//! 1. A region ends when it is dropped: on return, cancellation and panic alike.
//! 2. Once the teardown has begun no future is taken: the closing looks at the
//!    tasks and sets the flag under one lock.
//! 3. A future whose kind is cancelled at the deadline is dropped when the
//!    deadline token fires; any other is joined.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinHandle};

use super::Actor;
use super::activity::{Activity, Hold, WorkKind};
use super::lifecycle::Destruction;
use super::machine::Machine;
use crate::metrics::KeepAwakeKind;
use crate::time::Instant;

/// Keeps an actor awake, or holds its grace period, as its kind says, for as long
/// as it is alive.
#[must_use = "the region ends as soon as it is dropped"]
pub struct WorkRegion {
    actor: Arc<Actor>,
    kind: WorkKind,
    began: Instant,
}

impl WorkRegion {
    pub(crate) fn new(actor: &Arc<Actor>, kind: WorkKind) -> Self {
        let began = actor.step(|machine, now| {
            machine.activity.begin(kind);
            now
        });
        if let Some(task) = kind.user_task() {
            actor.metrics.begin_user_task(task);
        }
        Self { actor: Arc::clone(actor), kind, began }
    }

    /// One whose kind was counted at `began`, in a step that also decided on it. Not for
    /// work of the author.
    pub(super) fn begun(actor: &Arc<Actor>, kind: WorkKind, began: Instant) -> Self {
        debug_assert!(kind.user_task().is_none(), "the author's work is measured");
        Self { actor: Arc::clone(actor), kind, began }
    }
}

impl Drop for WorkRegion {
    fn drop(&mut self) {
        let (ended, now) = self.actor.step(|machine, now| (machine.activity.end(self.kind), now));
        debug_assert!(ended, "a region began before it ended");
        if let Some(task) = self.kind.user_task() {
            self.actor.metrics.end_user_task(task, now.since(self.began));
        }
    }
}

impl std::fmt::Debug for WorkRegion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkRegion").field("kind", &self.kind).finish()
    }
}

/// The futures that an actor runs as tracked work. Most run none, and weigh nothing.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Option<Box<TaskSet>>>);

#[derive(Debug, Default)]
struct TaskSet {
    abortable: Vec<JoinHandle<()>>,
    joined: Vec<JoinHandle<()>>,
    /// What the teardown waits for; a break aborts it all the same.
    closing: Vec<AbortHandle>,
    /// Set by the teardown, never cleared (invariant 2).
    closed: bool,
}

impl TaskSet {
    /// Forgets what has finished, or a long-lived actor would gather handles.
    fn reap(&mut self) {
        self.abortable.retain(|task| !task.is_finished());
        self.joined.retain(|task| !task.is_finished());
    }
}

impl Tasks {
    fn change<R>(&self, change: impl FnOnce(&mut TaskSet) -> R) -> R {
        change(self.0.lock().get_or_insert_default())
    }

    fn is_closed(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|set| set.closed)
    }

    /// Aborts what may be aborted and waits for the rest, until nothing is left.
    pub(super) async fn close(&self) {
        loop {
            let (abortable, joined) = self.change(|set| {
                let taken = (std::mem::take(&mut set.abortable), std::mem::take(&mut set.joined));
                set.closed |= taken.0.is_empty() && taken.1.is_empty();
                set.closing =
                    taken.0.iter().chain(&taken.1).map(JoinHandle::abort_handle).collect();
                taken
            });
            if abortable.is_empty() && joined.is_empty() {
                return;
            }
            for task in &abortable {
                task.abort();
            }
            for task in abortable.into_iter().chain(joined) {
                // A panic was logged by the spawner, and an abort is no failure.
                drop(task.await);
            }
        }
    }

    /// Aborts everything, because the generation is broken.
    fn abort_all(&self) {
        let (tasks, closing) = self.change(|set| {
            set.closed = true;
            let mut tasks = std::mem::take(&mut set.abortable);
            tasks.append(&mut set.joined);
            (tasks, std::mem::take(&mut set.closing))
        });
        for task in tasks {
            task.abort();
        }
        for task in closing {
            task.abort();
        }
    }
}

impl Actor {
    /// See [`Tasks::abort_all`].
    pub(super) fn abort_tasks(&self) {
        self.tasks.abort_all();
        self.runtime.spawner().stir();
    }

    /// Runs a future as tracked work, unless the teardown has begun.
    pub(crate) fn spawn_work(
        self: &Arc<Self>,
        kind: WorkKind,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        if self.tasks.is_closed() {
            return self.refuse_work(kind);
        }
        // Opened before the spawn, so that nothing can fall asleep in between.
        let region = WorkRegion::new(self, kind);
        let cancellable = kind.policy().cancelled_at_deadline;
        let deadline = self.tokens.deadline.token();
        let actor_id = self.identity.id;
        let task = self.runtime.spawner().spawn(kind.label(), async move {
            let _region = region;
            if !cancellable {
                return future.await;
            }
            tokio::select! {
                () = future => {}
                () = deadline.cancelled() => tracing::warn!(
                    %actor_id,
                    kind = kind.label(),
                    reason = "shutdown_deadline_elapsed",
                    "tracked work is given up"
                ),
            }
        });
        let refused = self.tasks.change(|set| {
            set.reap();
            if set.closed {
                return Some(task);
            }
            if cancellable {
                set.abortable.push(task)
            } else {
                set.joined.push(task)
            }
            None
        });
        // The teardown began between the look and the spawn.
        if let Some(task) = refused {
            task.abort();
            self.runtime.spawner().stir();
            self.refuse_work(kind);
        }
    }

    fn refuse_work(&self, kind: WorkKind) {
        tracing::warn!(
            actor_id = %self.identity.id,
            kind = kind.label(),
            "tracked work is refused: the actor is being torn down"
        );
    }

    /// Brings the gauges of what keeps the actor awake up to date. Within the step,
    /// so that they follow the counts in order.
    pub(super) fn show_counts(&self, machine: &mut Machine) {
        let activity = &machine.activity;
        let tracked = WorkKind::ALL.iter().map(|kind| activity.count(*kind)).sum();
        let counts = [activity.keep_awake_count(), activity.internal_keep_awake_count(), tracked];
        if counts == machine.shown {
            return;
        }
        machine.shown = counts;
        self.metrics.set_keep_awake(KeepAwakeKind::User, counts[0]);
        self.metrics.set_keep_awake(KeepAwakeKind::Internal, counts[1]);
        self.metrics.set_shutdown_tasks(tracked);
    }

    /// Reads the counts.
    pub(crate) fn with_activity<R>(&self, read: impl FnOnce(&Activity) -> R) -> R {
        read(&self.machine.lock().activity)
    }

    /// Everything the actor is busy with.
    pub(crate) fn holds(&self) -> Vec<Hold> {
        let mut machine = self.machine.lock();
        // Brings what is derived from the other parts up to date.
        let _ = machine.can_sleep();
        machine.activity.holds()
    }

    /// Resolves when no work holds the grace period, or when it is used up.
    pub(crate) async fn wait_for_tracked_work(self: &Arc<Self>) -> bool {
        tokio::select! {
            biased;
            // First, since the end of the generation, which follows, ends the other.
            () = self.tokens.deadline.token().cancelled_owned() => false,
            () = self.tracked_work_ended() => true,
        }
    }

    /// Resolves when no work holds the grace period, or with the generation.
    pub(crate) async fn tracked_work_ended(self: &Arc<Self>) {
        let _watch = Watch::new(self);
        loop {
            // Registered before the check, so an end between the two wakes us.
            let changed = self.changed.notified();
            if !self.with_activity(Activity::has_tracked_work) {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.tokens.over.reached() => return,
            }
        }
    }

    /// Resolves when the store has answered every commit.
    pub(super) async fn writes_answered(self: &Arc<Self>) {
        let _watch = Watch::new(self);
        loop {
            let changed = self.changed.notified();
            if self.machine.lock().writes_in_flight == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Brackets the author's `onStateChange`.
    pub(crate) fn begin_on_state_change(self: &Arc<Self>) {
        self.step(|machine, _| machine.activity.begin_state_change());
    }

    /// Ends the bracket; without a begin nothing changes but the log.
    pub(crate) fn end_on_state_change(self: &Arc<Self>) {
        if !self.step(|machine, _| machine.activity.end_state_change()) {
            tracing::warn!(actor_id = %self.identity.id, "a state change ended that had not begun");
        }
    }

    /// The time of the runtime.
    pub(crate) fn unix_ms(&self) -> i64 {
        self.runtime.clock().unix_ms()
    }

    /// Fires when the actor begins to stop.
    pub(crate) fn abort_signal(&self) -> tokio_util::sync::CancellationToken {
        self.tokens.abort.token()
    }

    /// Whether the actor has begun to stop.
    pub(crate) fn aborted(&self) -> bool {
        self.tokens.abort.has_fired()
    }

    /// Fires when the grace period is used up.
    pub(crate) fn shutdown_deadline(&self) -> tokio_util::sync::CancellationToken {
        self.tokens.deadline.token()
    }

    /// Whether a destroy was requested.
    pub(crate) fn is_destroy_requested(&self) -> bool {
        self.machine.lock().lifecycle.destroy_requested()
    }

    /// The host's word on whether the actor is gone: the mark first, then the waiters.
    pub(crate) fn mark_destruction(&self, destroyed: bool) {
        self.machine.lock().lifecycle.mark_destruction(destroyed);
        self.changed.notify_waiters();
    }

    /// Resolves when the host has said whether the actor is gone.
    pub(crate) async fn wait_for_destroy_completion(&self) -> bool {
        loop {
            // Registered before the check, so that a word between the two wakes us.
            let changed = self.changed.notified();
            match self.machine.lock().lifecycle.destruction() {
                Destruction::Open => {}
                Destruction::Completed => return true,
                Destruction::Missed => return false,
            }
            changed.await;
        }
    }
}

/// Makes steps wake those who wait for a change of activity.
struct Watch<'a>(&'a Actor);

impl<'a> Watch<'a> {
    fn new(actor: &'a Actor) -> Self {
        actor.machine.lock().watchers += 1;
        Self(actor)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.machine.lock().watchers -= 1;
    }
}
