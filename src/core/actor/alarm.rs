//! When the host must wake the actor, and what the directory says of it.
//!
//! # Invariants
//!
//! 1. A commit carries the alarm when it differs from what the directory was last
//!    given, and only then: most commits leave the directory alone.
//! 2. While a consumer has a message that it is to complete, the alarm has passed: a
//!    crash brings the actor back with nobody calling. What was set for the first such
//!    message stays until the last commit, or each message would change the directory
//!    twice; at worst an actor that crashes is woken once for nothing.
//! 3. The same while an attempt of a fire runs that is followed by another one if it
//!    does not end: its deadline stays until it ends.
//! 4. The last commit of a generation leaves no alarm behind whose moment has passed
//!    without need, or the host would wake the actor for nothing, again and again.

/// The alarm of one generation, in milliseconds since the Unix epoch.
#[derive(Debug)]
pub(super) struct Alarm {
    /// What the directory was last given; `None` when that is uncertain.
    stored: Option<Option<i64>>,
    /// What the queue wants.
    queue: Option<i64>,
    /// What the schedules want.
    schedules: Option<i64>,
    /// When a message to complete was first handed out (invariant 2).
    handed_out: Option<i64>,
}

impl Default for Alarm {
    /// That of a new actor, which has none.
    fn default() -> Self {
        Self { stored: Some(None), queue: None, schedules: None, handed_out: None }
    }
}

impl Alarm {
    /// Notes what the directory has.
    pub(super) fn loaded(&mut self, stored: Option<i64>) {
        self.stored = Some(stored);
    }

    /// Notes what the queue wants.
    pub(super) fn set_queue(&mut self, at: Option<i64>) {
        self.queue = at;
    }

    /// Notes what the schedules want.
    pub(super) fn set_schedules(&mut self, at: Option<i64>) {
        self.schedules = at;
    }

    /// Notes that consumers have messages to complete (invariant 2).
    pub(super) fn hand_out(&mut self, unix_ms: i64) {
        self.handed_out.get_or_insert(unix_ms);
    }

    /// The generation ends in order: what consumers had waits for the next one.
    pub(super) fn take_back(&mut self) {
        self.handed_out = None;
    }

    /// The earliest of all that is wanted.
    pub(super) fn wanted(&self) -> Option<i64> {
        self.queue_or(self.schedules).into_iter().chain(self.handed_out).min()
    }

    /// The earlier of what the queue wants and this.
    pub(super) fn queue_or(&self, other: Option<i64>) -> Option<i64> {
        self.queue.into_iter().chain(other).min()
    }

    /// Whether the directory must be told.
    pub(super) fn is_changed(&self) -> bool {
        self.stored != Some(self.wanted())
    }

    /// What a commit that begins now tells the directory, if anything.
    pub(super) fn take(&mut self) -> Option<Option<i64>> {
        let changed = self.is_changed();
        self.stored = Some(self.wanted());
        changed.then_some(self.wanted())
    }

    /// Notes that a commit which may have carried it failed.
    pub(super) fn unstored(&mut self) {
        self.stored = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_carries_the_alarm_when_it_changed_and_again_when_that_one_failed() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.take(), None);

        alarm.set_queue(Some(5));
        assert_eq!((alarm.take(), alarm.take()), (Some(Some(5)), None));
        alarm.unstored();
        assert_eq!((alarm.take(), alarm.take()), (Some(Some(5)), None));

        alarm.set_queue(None);
        assert_eq!((alarm.take(), alarm.take()), (Some(None), None));
    }

    #[test]
    fn a_message_in_the_hands_of_a_consumer_is_due_until_the_generation_ends_in_order() {
        let mut alarm = Alarm::default();
        alarm.set_queue(Some(50));
        alarm.hand_out(7);
        assert_eq!(alarm.take(), Some(Some(7)));

        alarm.hand_out(9);
        assert_eq!((alarm.take(), alarm.queue_or(None)), (None, Some(50)));
        alarm.take_back();
        assert_eq!((alarm.take(), alarm.take()), (Some(Some(50)), None));
    }

    #[test]
    fn the_earliest_of_queue_and_schedules_counts() {
        let mut alarm = Alarm::default();
        alarm.set_queue(Some(5));
        alarm.set_schedules(Some(3));
        assert_eq!((alarm.take(), alarm.take()), (Some(Some(3)), None));

        alarm.set_schedules(None);
        assert_eq!((alarm.take(), alarm.take()), (Some(Some(5)), None));
    }
}
