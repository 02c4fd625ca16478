//! The handle on one generation of one actor.
//!
//! Cheap to clone; every method is a line that delegates to the part that owns
//! the matter. All clones are the same generation: a new one is a new context.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::actor::activity::{Hold, WorkKind};
use super::actor::gate::CommitNumber;
use super::actor::lifecycle::{LifecycleError, StopReason};
use super::actor::save_queue::SaveRequest;
use super::actor::waits::WaitId;
use super::actor::{Actor, InPlace, WorkRegion};
use super::behavior::{CallId, Reply, StateDelta};
use super::config::ActorConfig;
use super::identity::Identity;
use super::messages::ActorQueue;
pub use super::parts::{ActorParts, Admission, CallRequest};
use super::schedule::ActorSchedule;
use crate::error::{ActorSpecifier, Error, Result};
use crate::ids::{ActorId, ActorKey, ActorName, Generation};
use crate::time::Duration;

/// The handle on one generation of one actor.
#[derive(Clone)]
pub struct ActorContext(pub(super) Arc<Actor>);

impl ActorContext {
    /// Makes a generation that is not started.
    pub fn new(parts: ActorParts) -> Self {
        Self(Actor::new(parts))
    }

    pub(super) fn from_actor(actor: Arc<Actor>) -> Self {
        Self(actor)
    }

    /// Who this is.
    pub fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// The id that stays over generations.
    pub fn actor_id(&self) -> ActorId {
        self.identity().id
    }

    /// The actor's type.
    pub fn name(&self) -> &ActorName {
        &self.identity().name
    }

    /// What tells it from the others of its type.
    pub fn key(&self) -> &ActorKey {
        &self.identity().key
    }

    /// Where it runs; may be empty.
    pub fn region(&self) -> &str {
        &self.identity().region
    }

    /// This run.
    pub fn generation(&self) -> Generation {
        self.identity().generation
    }

    /// The number by which the author's side knows it; 0 where it has none.
    pub fn behavior_number(&self) -> u64 {
        self.0.behavior_number()
    }

    /// The form that errors carry.
    pub fn specifier(&self) -> ActorSpecifier {
        self.identity().specifier()
    }

    /// The options of its type.
    pub fn config(&self) -> &Arc<ActorConfig> {
        self.0.config()
    }

    /// Whether both are handles on the same generation.
    pub fn same_generation(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Loads the record and runs the hooks of a start, up to the moment from
    /// which calls are taken. To be called once, by the host.
    ///
    /// # Errors
    ///
    /// The first error on the way, naming the actor and the phase. The generation
    /// is over then, and [`Host::stopped`] was called.
    pub async fn start(&self) -> Result<()> {
        self.0.start().await
    }

    /// The host's command to stop. Returns at once; [`Host::stopped`] follows.
    /// Harmless when repeated. A stop that comes before the start is over takes
    /// effect when it is.
    pub fn stop(&self, reason: StopReason) {
        self.0.stop(reason);
    }

    /// The host's command to make room for the next generation: as a stop that sleeps,
    /// and whoever comes from now on waits for that one. What is open may end.
    pub fn evict(&self) {
        self.0.evict();
    }

    /// Ends the grace period of a stop now: what still runs is given up and answered
    /// with `error`, and the last state is stored as at any other end. `false` when there
    /// is none, as before the end of a start.
    pub fn cut_grace_short(&self, error: Error) -> bool {
        self.0.cut_grace_short(error)
    }

    /// Ends the generation because its memory is void: everything open is
    /// answered with `error`, no hook runs, nothing more is stored.
    pub fn break_generation(&self, error: Error) {
        self.0.break_generation(error);
    }

    /// Whether a call would be taken now.
    pub fn admission(&self) -> Admission {
        self.0.admission()
    }

    /// Takes a call on the ordinary way: it is queued for the author's side, and
    /// answered through its reply.
    ///
    /// # Errors
    ///
    /// Why it is refused, and the request, unanswered.
    pub fn accept(&self, request: CallRequest) -> Result<CallId, Box<(Error, CallRequest)>> {
        self.0.accept(request, None)
    }

    /// Admits a call in place. `None`: take the ordinary way.
    pub fn try_admit(&self) -> Option<CallId> {
        self.0.try_admit()
    }

    /// Queues a call whose caller is in the author's environment and holds the
    /// answer, as in place: it begins with [`ActorEvent::BeginHeld`], after all that was accepted
    /// before it, and ends by [`ActorContext::finish_in_place`]. `None`: the actor
    /// takes no work now.
    ///
    /// [`ActorEvent::BeginHeld`]: super::behavior::ActorEvent::BeginHeld
    pub fn try_queue(&self) -> Option<CallId> {
        self.0.try_queue()
    }

    /// The author's side begins a call that was queued for it.
    pub fn begin_call(&self, call: CallId) {
        self.0.begin_call(call);
    }

    /// Has the time of a call begin anew, for a part of it with a timeout of its own.
    /// `false`: nobody waits for it any more.
    pub fn renew_call(&self, call: CallId) -> bool {
        self.0.renew_call(call)
    }

    /// The function of a queued call ended; the reply leaves through the gate.
    /// `false`: nobody waits for it any more.
    pub fn finish_call(&self, call: CallId, result: Result<Bytes>) -> bool {
        self.0.finish_call(call, result)
    }

    /// The function of a call that was admitted in place, or queued with
    /// [`ActorContext::try_queue`], ended.
    pub fn finish_in_place(&self, call: CallId) -> InPlace {
        self.0.finish_in_place(call)
    }

    /// The caller gave up. The function goes on, and is told.
    pub fn cancel_call(&self, call: CallId) {
        self.0.cancel_call(call);
    }

    /// The state as it was loaded or last written successfully; empty for none.
    pub fn state(&self) -> Bytes {
        self.0.state()
    }

    /// Whether the actor's type declares state.
    pub fn has_state(&self) -> bool {
        self.config().has_state
    }

    /// Notes the first change of a clean state. With durability `reply` the
    /// author's side pushes a commit at the end of the turn
    /// ([`ActorContext::commit_state`]); with `interval` it is asked for one.
    pub fn mark_dirty(&self) {
        self.0.mark_dirty();
    }

    /// Begins a commit. With no changes it begins none, and what waited for the
    /// next commit waits for those already begun. Returns the number after which
    /// everything so far is durable; `None` when nothing can be saved now.
    pub fn commit_state(&self, deltas: Vec<StateDelta>) -> Option<CommitNumber> {
        self.0.commit_state(deltas)
    }

    /// Saves `deltas` and resolves when they are durable.
    ///
    /// # Errors
    ///
    /// `actor/stopping` when nothing can be saved any more, or `storage/*`.
    pub async fn save_state(&self, deltas: Vec<StateDelta>) -> Result<()> {
        let (reply, outcome) = Reply::channel();
        self.0.save_state(deltas, reply);
        outcome.await
    }

    /// Asks for a save, by default within the save interval.
    pub fn request_save(&self, request: SaveRequest) {
        self.0.request_save(request);
    }

    /// Asks for a save and resolves when it is durable.
    ///
    /// # Errors
    ///
    /// `actor/stopping` when no save will come any more, or what made it fail.
    pub async fn request_save_and_wait(&self, request: SaveRequest) -> Result<()> {
        let (reply, outcome) = Reply::channel();
        self.0.request_save_and_wait(request, reply);
        outcome.await
    }

    /// Resolves when everything so far is durable.
    ///
    /// # Errors
    ///
    /// What made a commit fail.
    pub async fn flushed(&self) -> Result<()> {
        let (reply, outcome) = Reply::channel();
        self.0.flushed(reply);
        outcome.await
    }

    /// Tells `reply` once an output may leave that was made before this call.
    pub fn output_may_leave(&self, reply: Reply<()>) {
        self.0.output_may_leave(reply);
    }

    /// Resolves when every commit that has begun is durable. Unlike
    /// [`ActorContext::flushed`] it asks the author's side for nothing, so it ends
    /// also where the author's side cannot run any more.
    ///
    /// # Errors
    ///
    /// What made the last commit fail, or the end of the generation.
    pub async fn begun_durable(&self) -> Result<()> {
        let (reply, outcome) = Reply::channel();
        self.0.begun_durable(reply);
        outcome.await
    }

    /// Begins a commit of the changes of rows that wait for the end of a turn, for an
    /// author's side that does not hand its state over with them. `None` when none
    /// wait, or nothing can be saved now.
    pub fn commit_rows(&self) -> Option<CommitNumber> {
        self.0.commit_rows()
    }

    /// The actor's queue.
    pub fn queue(&self) -> ActorQueue {
        ActorQueue::new(Arc::clone(&self.0))
    }

    /// What the actor is to do later.
    pub fn schedule(&self) -> ActorSchedule {
        ActorSchedule::new(Arc::clone(&self.0))
    }

    /// Has the actor woken at `at`, in milliseconds since the Unix epoch, beside all that its
    /// schedules want; `None` for never. A moment that passes while it is awake has come.
    pub fn set_alarm(&self, at: Option<i64>) {
        self.0.set_alarm(at);
    }

    /// The moment at which the actor must be awake again, in milliseconds since the
    /// Unix epoch; it may have passed.
    pub fn next_alarm(&self) -> Option<i64> {
        self.0.next_alarm()
    }

    /// Brackets the author's `onStateChange`: it keeps the actor awake.
    pub fn begin_on_state_change(&self) {
        self.0.begin_on_state_change();
    }

    /// Ends what [`ActorContext::begin_on_state_change`] began. Without a begin it
    /// changes nothing but the log.
    pub fn end_on_state_change(&self) {
        self.0.end_on_state_change();
    }

    /// Asks to be put to sleep. A repetition changes nothing.
    ///
    /// # Errors
    ///
    /// `actor/starting` before the start is over, `actor/stopping` once it stops.
    pub fn sleep(&self) -> Result<(), LifecycleError> {
        self.0.sleep()
    }

    /// Asks to be destroyed.
    ///
    /// # Errors
    ///
    /// `actor/starting` before the start is over, `actor/stopping` when a destroy
    /// was requested before.
    pub fn destroy(&self) -> Result<(), LifecycleError> {
        self.0.destroy()
    }

    /// Reports a crash: the host puts the actor to sleep. The message is cut at
    /// 2,048 bytes.
    ///
    /// # Errors
    ///
    /// Those of [`ActorContext::destroy`].
    pub fn stop_with_error(&self, message: &str) -> Result<(), LifecycleError> {
        self.0.stop_with_error(message)
    }

    /// Fires when the actor begins to stop: "wrap up".
    pub fn abort_signal(&self) -> CancellationToken {
        self.0.abort_signal()
    }

    /// Whether the actor has begun to stop.
    pub fn aborted(&self) -> bool {
        self.0.aborted()
    }

    /// Fires when the grace period is used up: "stop now".
    pub fn shutdown_deadline(&self) -> CancellationToken {
        self.0.shutdown_deadline()
    }

    /// Whether a destroy was requested, by the actor or by the host.
    pub fn is_destroy_requested(&self) -> bool {
        self.0.is_destroy_requested()
    }

    /// The host's word on a generation that is over: whether the directory no longer
    /// has the actor, or will not lose it by the end of this generation. The first
    /// word holds.
    pub fn mark_destruction(&self, destroyed: bool) {
        self.0.mark_destruction(destroyed);
    }

    /// Resolves with `true` when the actor is destroyed, and with `false` when this
    /// generation ended otherwise.
    pub async fn wait_for_destroy_completion(&self) -> bool {
        self.0.wait_for_destroy_completion().await
    }

    /// Opens a work region, which keeps the actor awake or holds its grace period
    /// as its kind says, until it is dropped.
    pub fn begin_region(&self, kind: WorkKind) -> WorkRegion {
        WorkRegion::new(&self.0, kind)
    }

    /// Runs `future` as tracked work of the given kind. After the teardown began
    /// it is dropped unrun, with a warning.
    pub fn spawn_work(&self, kind: WorkKind, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_work(kind, future);
    }

    /// Polls `future` within a work region that opens at the first poll.
    pub async fn track_work<F: Future>(&self, kind: WorkKind, future: F) -> F::Output {
        let _region = self.begin_region(kind);
        future.await
    }

    /// Keeps the actor awake while `future` runs.
    pub async fn keep_awake<F: Future>(&self, future: F) -> F::Output {
        self.track_work(WorkKind::KeepAwake, future).await
    }

    /// Runs `future` as work that holds the grace period but lets the actor fall
    /// asleep.
    pub fn wait_until(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.spawn_work(WorkKind::WaitUntil, future);
    }

    /// How much the author keeps awake.
    pub fn keep_awake_count(&self) -> usize {
        self.0.with_activity(|activity| activity.keep_awake_count())
    }

    /// How much the runtime keeps awake, actions included.
    pub fn internal_keep_awake_count(&self) -> usize {
        self.0.with_activity(|activity| activity.internal_keep_awake_count())
    }

    /// Resolves when no work holds the grace period: `true`, or `false` when the
    /// grace period is used up first.
    pub async fn wait_for_tracked_work(&self) -> bool {
        self.0.wait_for_tracked_work().await
    }

    /// Resolves when no work holds the grace period, however long it takes, or when
    /// the generation is over.
    pub async fn wait_for_tracked_work_unbounded(&self) {
        self.0.tracked_work_ended().await;
    }

    /// Everything the actor is busy with.
    pub fn holds(&self) -> Vec<Hold> {
        self.0.holds()
    }

    /// The time of the place that it runs in, in milliseconds since the epoch.
    pub fn unix_ms(&self) -> i64 {
        self.0.unix_ms()
    }

    /// Waits on the clock of the place that it runs in: `reply` is answered once
    /// `duration` has passed, or with `actor/aborted` at the end of the generation. It
    /// keeps the actor neither awake nor from stopping. `None`, and answered, when the
    /// generation is over.
    pub fn begin_wait(&self, duration: Duration, reply: Reply<()>) -> Option<WaitId> {
        self.0.begin_wait(duration, reply)
    }

    /// Gives up a wait, which is answered with `actor/dropped_reply`. `false` when it
    /// has ended.
    pub fn give_up_wait(&self, wait: WaitId) -> bool {
        self.0.give_up_wait(wait)
    }

    /// Whether the author's `run` runs.
    pub fn run_handler_active(&self) -> bool {
        self.0.run_handler_active()
    }

    /// Starts `run` anew, whatever the last one does.
    ///
    /// # Errors
    ///
    /// `actor/invalid_operation` when the author wrote none, `actor/stopping` when
    /// the actor does not run.
    pub fn restart_run_handler(&self) -> Result<()> {
        self.0.restart_run_handler()
    }
}

/// Shows who it is and nothing else: no state, nothing secret.
impl std::fmt::Debug for ActorContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let identity = self.identity();
        f.debug_struct("ActorContext")
            .field("actor_id", &identity.id)
            .field("name", &identity.name)
            .field("key", &identity.key)
            .field("region", &identity.region)
            .finish()
    }
}
