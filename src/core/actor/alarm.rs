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
//! 4. The same from the first flush of a workflow on: one that a crash cuts short goes on
//!    with nobody calling, whatever it had yet to say of its next alarm.
//! 5. What the author's side asks for beside all this (`setAlarm`) is a moment of its own,
//!    which only the directory keeps. It has come when it passes while the actor is awake;
//!    one that passes while the generation ends is the next one's.
//! 6. The last commit of a generation leaves no alarm behind whose moment has passed
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
    /// When a message to complete was first handed out, or a workflow flushed (invariants
    /// 2 and 4).
    handed_out: Option<i64>,
    /// What the author's side wants beside these (invariant 5).
    own: Option<i64>,
}

impl Default for Alarm {
    /// That of a new actor, which has none.
    fn default() -> Self {
        Self { stored: Some(None), queue: None, schedules: None, handed_out: None, own: None }
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

    /// Notes what the author's side wants beside these; `None` for nothing (invariant 5).
    pub(super) fn set_own(&mut self, at: Option<i64>) {
        self.own = at;
    }

    /// Takes what was loaded, and queue and schedules do not want, for the author's own,
    /// unless it brought the actor here.
    pub(super) fn find_own(&mut self, unix_ms: i64) {
        let known = self.wanted();
        let stored = self.stored.flatten().filter(|at| *at > unix_ms);
        self.own = stored.filter(|at| known.is_none_or(|known| *at < known));
    }

    /// The actor was awake until here: what has passed of the author's own has come.
    pub(super) fn own_has_come(&mut self, unix_ms: i64) {
        self.own = self.own.filter(|at| *at > unix_ms);
    }

    /// Notes that consumers have messages to complete, or a workflow works (invariants 2
    /// and 4).
    pub(super) fn hand_out(&mut self, unix_ms: i64) {
        self.handed_out.get_or_insert(unix_ms);
    }

    /// The generation ends in order: what consumers had waits for the next one.
    pub(super) fn take_back(&mut self) {
        self.handed_out = None;
    }

    /// The earliest of all that is wanted.
    pub(super) fn wanted(&self) -> Option<i64> {
        self.or(self.schedules).into_iter().chain(self.handed_out).min()
    }

    /// The earliest of what the queue and the author's side want and this.
    pub(super) fn or(&self, other: Option<i64>) -> Option<i64> {
        self.queue.into_iter().chain(self.own).chain(other).min()
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
        assert_eq!((alarm.take(), alarm.or(None)), (None, Some(50)));
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

    #[test]
    fn the_authors_own_is_beside_the_others_and_found_again_where_they_do_not_explain_it() {
        let mut alarm = Alarm::default();
        alarm.set_schedules(Some(9));
        alarm.set_own(Some(5));
        assert_eq!((alarm.take(), alarm.or(Some(9))), (Some(Some(5)), Some(5)));

        let mut next = Alarm::default();
        next.loaded(Some(5));
        next.set_schedules(Some(9));
        next.find_own(1);
        assert_eq!((next.take(), next.wanted()), (None, Some(5)));
        next.own_has_come(4);
        assert_eq!(next.wanted(), Some(5));
        next.own_has_come(5);
        assert_eq!(next.take(), Some(Some(9)));

        let mut explained = Alarm::default();
        explained.loaded(Some(9));
        explained.set_schedules(Some(9));
        explained.find_own(1);
        explained.set_schedules(None);
        assert_eq!(explained.take(), Some(None));
    }

    #[test]
    fn what_brought_the_actor_here_is_nobodys_own_any_more() {
        let mut alarm = Alarm::default();
        alarm.loaded(Some(5));

        alarm.find_own(5);

        assert_eq!(alarm.take(), Some(None));
    }
}
