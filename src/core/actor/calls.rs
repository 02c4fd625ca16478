//! The calls of one generation that have not ended.
//!
//! A call has two independent ends: it is *answered* once (by its result, an
//! error, a timeout or a cancellation), and it is *released* when the author's
//! function has really ended. Until then its work region keeps the actor awake.
//!
//! # Invariants
//!
//! 1. A call is answered at most once, and released exactly once.
//! 2. Calls are numbered in the order of acceptance, and their deadlines grow
//!    with their numbers, since all calls of an actor have the same timeout and
//!    the clock is read under the lock. Those that were renewed are the exception,
//!    and are looked at apart.
//! 3. A call is admitted in place only when nothing accepted earlier is still
//!    not begun, so functions begin in the order of acceptance whatever the way.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::core::behavior::{CallId, Reply};
use crate::time::{Duration, Instant};

/// How a call is on its way.
#[derive(Debug)]
enum Way {
    /// Queued for the author's side, which has not begun it.
    Queued(Option<Reply<Bytes>>),
    /// Begun by the author's side.
    Begun(Option<Reply<Bytes>>),
    /// Whoever called holds the answer: admitted in place, which begins it, or
    /// queued behind older work.
    Held { begun: bool, answered: bool },
}

#[derive(Debug)]
struct OpenCall {
    way: Way,
    accepted: Instant,
    deadline: Instant,
}

impl OpenCall {
    fn is_answered(&self) -> bool {
        match &self.way {
            Way::Queued(reply) | Way::Begun(reply) => reply.is_none(),
            Way::Held { answered, .. } => *answered,
        }
    }

    fn answer(&mut self) -> Option<Reply<Bytes>> {
        match &mut self.way {
            Way::Queued(reply) | Way::Begun(reply) => reply.take(),
            Way::Held { answered, .. } => {
                *answered = true;
                None
            }
        }
    }

    fn is_queued(&self) -> bool {
        matches!(self.way, Way::Queued(_) | Way::Held { begun: false, .. })
    }
}

/// How a call whose caller holds the answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPlaceEnd {
    /// Its caller still waits for the result.
    InTime,
    /// It ended after its deadline; its caller is told of the timeout.
    Late,
    /// Its caller was answered before.
    Answered,
}

/// A call of the ordinary way whose function ended.
#[derive(Debug)]
pub(crate) struct Released {
    /// Who waits, unless it was answered before.
    pub(crate) reply: Option<Reply<Bytes>>,
    /// Whether the deadline has passed.
    pub(crate) late: bool,
    /// Since its acceptance.
    pub(crate) took: Duration,
}

/// The calls of one generation that have not ended.
#[derive(Debug)]
pub(crate) struct Calls {
    /// How long a call may take.
    timeout: Duration,
    last: u64,
    open: BTreeMap<CallId, OpenCall>,
    /// Queued calls in `open`, counted so that admission need not look.
    queued: usize,
    /// No call before this one waits for an answer, unless it was renewed: an answered
    /// call never waits again, so functions that hang are passed over once.
    first_unanswered: CallId,
    /// Open calls whose time began anew.
    renewed: BTreeSet<CallId>,
}

impl Calls {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            last: 0,
            open: BTreeMap::new(),
            queued: 0,
            first_unanswered: CallId(0),
            renewed: BTreeSet::new(),
        }
    }

    fn insert(&mut self, way: Way, now: Instant) -> CallId {
        self.last += 1;
        let call = CallId(self.last);
        self.open.insert(call, OpenCall { way, accepted: now, deadline: now + self.timeout });
        call
    }

    /// Accepts a call on the ordinary way.
    pub(crate) fn queue(&mut self, reply: Reply<Bytes>, now: Instant) -> CallId {
        self.queued += 1;
        self.insert(Way::Queued(Some(reply)), now)
    }

    /// Admits a call in place, unless older work waits (invariant 3).
    pub(crate) fn admit(&mut self, now: Instant) -> Option<CallId> {
        let free = self.queued == 0;
        free.then(|| self.insert(Way::Held { begun: true, answered: false }, now))
    }

    /// Accepts a call whose caller holds the answer, to begin after older work.
    pub(crate) fn queue_held(&mut self, now: Instant) -> CallId {
        self.queued += 1;
        self.insert(Way::Held { begun: false, answered: false }, now)
    }

    /// The author's side begins a queued call.
    pub(crate) fn begin(&mut self, call: CallId) {
        let Some(open) = self.open.get_mut(&call) else { return };
        match &mut open.way {
            Way::Queued(reply) => open.way = Way::Begun(reply.take()),
            Way::Held { begun, .. } if !*begun => *begun = true,
            Way::Begun(_) | Way::Held { .. } => return,
        }
        self.queued -= 1;
    }

    /// Takes a call out. An empty map keeps its last node, most of what an idle actor
    /// would weigh, so it is given back.
    fn take(&mut self, call: CallId) -> Option<OpenCall> {
        let open = self.open.remove(&call)?;
        self.renewed.remove(&call);
        if self.open.is_empty() {
            self.open = BTreeMap::new();
        }
        Some(open)
    }

    /// Releases a call of the ordinary way: its function ended. `None` when it is
    /// not open.
    pub(crate) fn release(&mut self, call: CallId, now: Instant) -> Option<Released> {
        if matches!(self.open.get(&call)?.way, Way::Held { .. }) {
            return None;
        }
        let mut open = self.take(call)?;
        self.queued -= usize::from(open.is_queued());
        Some(Released {
            reply: open.answer(),
            late: now >= open.deadline,
            took: now.since(open.accepted),
        })
    }

    /// Releases a call whose caller holds the answer, and tells how long it took;
    /// `None` when it is not open.
    pub(crate) fn release_held(
        &mut self,
        call: CallId,
        now: Instant,
    ) -> Option<(InPlaceEnd, Duration)> {
        let answered = match self.open.get(&call)?.way {
            Way::Held { answered, .. } => answered,
            Way::Queued(_) | Way::Begun(_) => return None,
        };
        let open = self.take(call)?;
        self.queued -= usize::from(open.is_queued());
        let end = match (answered, now >= open.deadline) {
            (true, _) => InPlaceEnd::Answered,
            (false, true) => InPlaceEnd::Late,
            (false, false) => InPlaceEnd::InTime,
        };
        Some((end, now.since(open.accepted)))
    }

    /// Answers a call whose function goes on: its caller gave up, or its
    /// deadline passed. `None` when it was answered before, else who waits, if that
    /// is not a caller who holds the answer.
    pub(crate) fn answer(&mut self, call: CallId) -> Option<Option<Reply<Bytes>>> {
        let open = self.open.get_mut(&call)?;
        (!open.is_answered()).then(|| open.answer())
    }

    /// Has the time of a call begin anew. `false`: nobody waits for it any more, or not
    /// for long enough.
    pub(crate) fn renew(&mut self, call: CallId, now: Instant) -> bool {
        let Some(open) = self.open.get_mut(&call) else { return false };
        if open.is_answered() || open.deadline <= now {
            return false;
        }
        open.deadline = now + self.timeout;
        self.renewed.insert(call);
        true
    }

    /// The first deadline of a call that is not answered.
    pub(crate) fn next_deadline(&mut self) -> Option<Instant> {
        let waits = |(call, open): &(&CallId, &OpenCall)| {
            !open.is_answered() && !self.renewed.contains(call)
        };
        let first = self.open.range(self.first_unanswered..).find(waits);
        self.first_unanswered = first.map_or(CallId(self.last + 1), |(call, _)| *call);
        let renewed = self.waiting_renewed().map(|(_, deadline)| deadline);
        first.map(|(_, open)| open.deadline).into_iter().chain(renewed).min()
    }

    /// The calls that are not answered and whose deadline has come.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<CallId> {
        let due = |call: &CallId, open: &OpenCall| {
            !open.is_answered() && !self.renewed.contains(call) && open.deadline <= now
        };
        // None of those behind the first that is not due is due either.
        let past = |(call, open): &(&CallId, &OpenCall)| {
            open.deadline <= now || self.renewed.contains(call)
        };
        let first = self.open.range(self.first_unanswered..).take_while(past);
        let first = first.filter(|(call, open)| due(call, open)).map(|(call, _)| *call);
        let renewed = self.waiting_renewed().filter(|(_, deadline)| *deadline <= now);
        first.chain(renewed.map(|(call, _)| call)).collect()
    }

    /// The renewed calls that are not answered, with their deadlines.
    fn waiting_renewed(&self) -> impl Iterator<Item = (CallId, Instant)> {
        let waits = |call: &CallId| {
            let open = self.open.get(call).filter(|open| !open.is_answered())?;
            Some((*call, open.deadline))
        };
        self.renewed.iter().filter_map(waits)
    }

    /// Answers everything, because the generation ends. Calls stay open until
    /// they are released.
    pub(crate) fn answer_all(&mut self) -> Vec<(CallId, Option<Reply<Bytes>>)> {
        self.open
            .iter_mut()
            .filter(|(_, open)| !open.is_answered())
            .map(|(call, open)| (*call, open.answer()))
            .collect()
    }

    /// Forgets all calls, which must have been answered.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.renewed.clear();
        self.queued = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;
    const TIMEOUT: Duration = Duration::from_secs(60);

    fn calls() -> Calls {
        Calls::new(TIMEOUT)
    }

    fn reply() -> Reply<Bytes> {
        Reply::new(|_| {})
    }

    #[test]
    fn nothing_is_admitted_in_place_while_an_older_call_is_not_begun() {
        let mut calls = calls();
        let queued = calls.queue(reply(), NOW);

        assert_eq!(calls.admit(NOW), None);
        calls.begin(queued);

        assert!(calls.admit(NOW).is_some());
    }

    #[test]
    fn a_call_whose_caller_holds_the_answer_waits_its_turn_like_any_other() {
        let mut calls = calls();
        let held = calls.queue_held(NOW);

        assert_eq!(calls.admit(NOW), None);
        assert!(calls.release(held, NOW).is_none());
        calls.begin(held);
        calls.begin(held);

        assert!(calls.admit(NOW).is_some());
        let (end, _) = calls.release_held(held, NOW).expect("open");
        assert_eq!(end, InPlaceEnd::InTime);
    }

    #[test]
    fn a_call_that_ends_without_having_begun_no_longer_blocks() {
        let mut calls = calls();
        let queued = calls.queue(reply(), NOW);

        let held = calls.queue_held(NOW);

        assert!(calls.release(queued, NOW).is_some());
        assert!(calls.release_held(held, NOW).is_some());

        assert!(calls.admit(NOW).is_some());
    }

    #[test]
    fn a_call_is_answered_once() {
        let mut calls = calls();
        let call = calls.queue(reply(), NOW);

        assert!(calls.answer(call).is_some());
        assert!(calls.answer(call).is_none());

        let released = calls.release(call, NOW).expect("still open");
        assert!(released.reply.is_none());
        assert!(calls.release(call, NOW).is_none());
    }

    #[test]
    fn a_renewed_call_has_its_time_once_more_and_holds_up_no_other_deadline() {
        let mut calls = calls();
        let first = calls.queue(reply(), NOW);
        let half = NOW + TIMEOUT / 2;
        let second = calls.queue(reply(), half);

        assert!(calls.renew(first, NOW + TIMEOUT * 3 / 4));

        assert_eq!(calls.overdue(NOW + TIMEOUT), []);
        assert_eq!(calls.next_deadline(), Some(half + TIMEOUT));
        assert_eq!(calls.overdue(half + TIMEOUT), [second]);
        assert!(calls.answer(second).is_some());
        assert_eq!(calls.next_deadline(), Some(NOW + TIMEOUT * 7 / 4));
        assert_eq!(calls.overdue(NOW + TIMEOUT * 7 / 4), [first]);
        let released = calls.release(first, NOW + TIMEOUT).expect("open");
        assert!(!released.late);
        assert_eq!(calls.next_deadline(), None);
    }

    #[test]
    fn a_call_that_is_answered_late_or_gone_is_not_renewed() {
        let mut calls = calls();
        let answered = calls.queue(reply(), NOW);
        let late = calls.queue(reply(), NOW);
        assert!(calls.answer(answered).is_some());

        assert!(!calls.renew(answered, NOW));
        assert!(!calls.renew(late, NOW + TIMEOUT));
        assert!(!calls.renew(CallId(99), NOW));
        assert_eq!(calls.overdue(NOW + TIMEOUT), [late]);
    }

    #[test]
    fn a_result_at_or_after_the_deadline_is_late_on_every_machine() {
        let mut calls = calls();
        let queued = calls.queue(reply(), NOW);
        calls.begin(queued);
        let in_place = calls.admit(NOW).unwrap();

        let released = calls.release(queued, NOW + TIMEOUT).expect("open");
        assert!(released.late);
        assert_eq!(released.took, TIMEOUT);
        let (end, _) = calls.release_held(in_place, NOW + TIMEOUT).expect("open");
        assert_eq!(end, InPlaceEnd::Late);
    }

    #[test]
    fn overdue_calls_are_those_past_their_deadline_that_nobody_answered() {
        let mut calls = calls();
        let first = calls.queue(reply(), NOW);
        let second = calls.queue(reply(), NOW);
        calls.queue(reply(), NOW + TIMEOUT);
        calls.answer(first);

        assert_eq!(calls.overdue(NOW + TIMEOUT), [second]);
        assert_eq!(calls.next_deadline(), Some(NOW + TIMEOUT));
    }
}
