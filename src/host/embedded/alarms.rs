//! When which sleeping actor is to be woken: a state machine without I/O or time.
//!
//! The directory has the alarm of every actor. Here is a window of it: all alarms up to
//! the *horizon*, and of those behind it nothing, so that a start reads a thousand rows
//! and not all of them.
//!
//! # Invariants
//!
//! 1. Every alarm of an actor that does not live is in the window, parked, being woken
//!    for, or in the directory behind the horizon. One of an actor that lives may be here,
//!    too: the actor serves it by itself.
//! 2. Nothing behind the horizon is waited for before the directory was asked for what
//!    else is there. One put off here is no longer in the directory at that moment, so
//!    it is kept (*pinned*) wherever the horizon is.
//! 3. What is heard of an actor while the directory is being asked is newer than what the
//!    directory says of it.
//! 4. At most [`MAX_WAKING`] actors are woken at a time. One that could not be woken, or
//!    broke, waits ever longer before the next attempt.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::core::behavior::StopOutcome;
use crate::ids::{ActorId, ActorName};
use crate::store::{ActorNumber, AlarmRow};

/// How many alarms the directory is asked for at a time.
pub(super) const WINDOW: u32 = 1_000;
/// How many alarms are kept before those behind are left to the directory again.
const MOST: usize = 2 * WINDOW as usize;
/// How many actors are woken at a time.
const MAX_WAKING: usize = 256;
/// How long an actor that could not be woken waits for the second attempt, in
/// milliseconds, and the longest it waits.
const FIRST_BACKOFF_MS: i64 = 1_000;
const LAST_BACKOFF_MS: i64 = 60_000;
/// How long to wait before the directory is asked again when it did not answer, in
/// milliseconds.
const ASK_AGAIN_MS: i64 = 1_000;

/// A place in the directory's order of alarms.
pub(super) type Cursor = (i64, ActorNumber);

/// A question for the alarm of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question(u64);

/// The alarms that are known.
#[derive(Debug)]
pub(super) struct Alarms {
    /// The alarms that are waited for.
    window: BTreeSet<Cursor>,
    /// Those of the window and those that are parked.
    known: HashMap<ActorNumber, Alarm>,
    horizon: Horizon,
    /// Of whom something was heard since the directory was asked; `None` while it is not.
    heard: Option<HashSet<ActorNumber>>,
    /// When the directory may be asked again after it did not answer.
    ask_at: Option<i64>,
    /// Whose own alarm the directory is asked for, and by which question.
    asked: HashMap<ActorNumber, Question>,
    last_question: u64,
    waking: HashMap<ActorNumber, Alarm>,
    /// Those that are due and that nobody can run, by type.
    parked: HashMap<ActorName, Vec<ActorNumber>>,
    /// How often in a row an actor could not be woken or broke.
    failures: HashMap<ActorNumber, u32>,
}

/// An actor's alarm.
#[derive(Clone, Debug)]
struct Alarm {
    at: i64,
    id: ActorId,
    name: ActorName,
    is_pinned: bool,
}

/// Up to where all alarms are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Horizon {
    /// None is.
    Start,
    /// Up to and with this one.
    At(Cursor),
    /// All are.
    End,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask the directory for what comes after this, then say [`Alarms::read`] or
    /// [`Alarms::not_read`].
    Read(Option<Cursor>),
    /// Wake these, and say [`Alarms::woken`] of each.
    Wake(Vec<(ActorNumber, ActorId)>),
    /// Look again at this moment, in milliseconds since the Unix epoch, or when something
    /// changes.
    WaitUntil(i64),
    /// Look again when something changes.
    Wait,
}

impl Alarms {
    /// Nothing is known yet.
    pub(super) fn new() -> Self {
        Self {
            window: BTreeSet::new(),
            known: HashMap::new(),
            horizon: Horizon::Start,
            heard: None,
            ask_at: None,
            asked: HashMap::new(),
            last_question: 0,
            waking: HashMap::new(),
            parked: HashMap::new(),
            failures: HashMap::new(),
        }
    }

    /// What is to be done at `now`. `runs` says whether anybody can run a type.
    pub(super) fn next(&mut self, now: i64, runs: impl Fn(&ActorName) -> bool) -> Next {
        let due = self.take_due(now, runs);
        if !due.is_empty() {
            return Next::Wake(due);
        }
        let is_full = self.waking.len() >= MAX_WAKING;
        let first = self.window.first().map(|(at, _)| *at).filter(|_| !is_full);
        let reads = self.heard.is_none() && !is_full && self.ends_before(self.window.first());
        match (reads, self.ask_at) {
            (true, Some(at)) if at > now => {
                Next::WaitUntil(first.map_or(at, |first| first.min(at)))
            }
            (true, _) => {
                self.heard = Some(HashSet::new());
                self.ask_at = None;
                Next::Read(match self.horizon {
                    Horizon::At(cursor) => Some(cursor),
                    Horizon::Start | Horizon::End => None,
                })
            }
            (false, _) => first.map_or(Next::Wait, Next::WaitUntil),
        }
    }

    /// What the directory said: at most `limit` alarms in its order.
    pub(super) fn read(&mut self, rows: Vec<AlarmRow>, limit: u32) {
        let heard = self.heard.take().unwrap_or_default();
        self.horizon = match rows.last() {
            Some(last) if rows.len() >= limit as usize => Horizon::At((last.at, last.number)),
            _ => Horizon::End,
        };
        for AlarmRow { number, id, name, at } in rows {
            let is_newer = heard.contains(&number) || self.known.contains_key(&number);
            if !is_newer && !self.waking.contains_key(&number) {
                self.insert(number, Alarm { at, id, name, is_pinned: false });
            }
        }
        self.trim();
    }

    /// The directory did not answer.
    pub(super) fn not_read(&mut self, now: i64) {
        self.heard = None;
        self.ask_at = Some(now.saturating_add(ASK_AGAIN_MS));
        // What was heard meanwhile may lie behind the horizon, which does no harm.
    }

    /// A generation of an actor ended, which `at` was the last alarm of. Returns what the
    /// directory is to be asked, where that is void.
    pub(super) fn ended(
        &mut self,
        number: ActorNumber,
        id: ActorId,
        name: &ActorName,
        outcome: &StopOutcome,
        at: Option<i64>,
    ) -> Option<Question> {
        match outcome {
            StopOutcome::Slept => self.slept(number, id, name, at),
            StopOutcome::Destroyed => self.destroyed(number),
            StopOutcome::StartFailed(_) | StopOutcome::Broken(_) => return Some(self.ask(number)),
        }
        None
    }

    /// An actor does not live any more; `at` is its alarm in the directory.
    fn slept(&mut self, number: ActorNumber, id: ActorId, name: &ActorName, at: Option<i64>) {
        self.failures.remove(&number);
        self.hear(number);
        let Some(at) = at else { return };
        if self.heard.is_some() || !self.ends_before(Some(&(at, number))) {
            self.insert(number, Alarm { at, id, name: name.clone(), is_pinned: false });
            self.trim();
        }
    }

    /// The directory is asked for the alarm of an actor whose generation broke.
    fn ask(&mut self, number: ActorNumber) -> Question {
        self.last_question += 1;
        let question = Question(self.last_question);
        self.asked.insert(number, question);
        question
    }

    /// The directory has answered; says whether that is news still (invariant 3).
    pub(super) fn is_news(&mut self, number: ActorNumber, question: Question) -> bool {
        let is_news = self.asked.get(&number) == Some(&question);
        if is_news {
            self.asked.remove(&number);
        }
        is_news
    }

    /// A generation of an actor broke, or could not start; `at` is its alarm in the
    /// directory.
    pub(super) fn broke(
        &mut self,
        number: ActorNumber,
        id: ActorId,
        name: &ActorName,
        at: Option<i64>,
        now: i64,
    ) {
        // Whoever woke it has heard of the same failure, and it is put off already.
        if self.known.get(&number).is_some_and(|alarm| alarm.is_pinned && alarm.at > now) {
            if let Some(heard) = &mut self.heard {
                heard.insert(number);
            }
            return;
        }
        self.hear(number);
        match at {
            Some(at) => {
                self.put_off(number, Alarm { at, id, name: name.clone(), is_pinned: false }, now)
            }
            None => drop(self.failures.remove(&number)),
        }
    }

    /// An actor is gone, whether it lived or slept: nobody tries to wake it again.
    pub(super) fn destroyed(&mut self, number: ActorNumber) {
        self.failures.remove(&number);
        self.waking.remove(&number);
        self.hear(number);
    }

    /// Whether an actor was woken. One that was not is tried again later.
    pub(super) fn woken(&mut self, number: ActorNumber, is_awake: bool, now: i64) {
        let Some(alarm) = self.waking.remove(&number) else { return };
        // Something newer may have been heard of it since.
        if !is_awake && !self.known.contains_key(&number) {
            self.put_off(number, alarm, now);
        }
    }

    /// Somebody can run a type. Says whether anything waited for that.
    pub(super) fn registered(&mut self, name: &ActorName) -> bool {
        let parked = self.parked.remove(name).unwrap_or_default();
        for number in &parked {
            if let Some(alarm) = self.known.get(number) {
                self.window.insert((alarm.at, *number));
            }
        }
        !parked.is_empty()
    }

    /// How many alarms are in memory.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len() + self.waking.len()
    }

    /// Takes out what is due and can be woken.
    fn take_due(
        &mut self,
        now: i64,
        runs: impl Fn(&ActorName) -> bool,
    ) -> Vec<(ActorNumber, ActorId)> {
        let mut due = Vec::new();
        while self.waking.len() < MAX_WAKING
            && let Some(&(at, number)) = self.window.first()
            && at <= now
        {
            self.window.pop_first();
            let Some(alarm) = self.known.get(&number) else { continue };
            if !runs(&alarm.name) {
                self.parked.entry(alarm.name.clone()).or_default().push(number);
                continue;
            }
            due.push((number, alarm.id));
            if let Some(alarm) = self.known.remove(&number) {
                self.waking.insert(number, alarm);
            }
        }
        due
    }

    /// Waits with an actor that failed (invariant 4).
    fn put_off(&mut self, number: ActorNumber, alarm: Alarm, now: i64) {
        let failures = self.failures.entry(number).or_default();
        let wait = FIRST_BACKOFF_MS.checked_shl(*failures).unwrap_or(LAST_BACKOFF_MS);
        *failures = failures.saturating_add(1).min(6);
        let at = alarm.at.max(now.saturating_add(wait.min(LAST_BACKOFF_MS)));
        self.insert(number, Alarm { at, is_pinned: true, ..alarm });
    }

    /// What was known of an actor is outdated.
    fn hear(&mut self, number: ActorNumber) {
        self.asked.remove(&number);
        if let Some(alarm) = self.known.remove(&number) {
            self.window.remove(&(alarm.at, number));
            if let Some(parked) = self.parked.get_mut(&alarm.name) {
                parked.retain(|other| *other != number);
            }
        }
        if let Some(heard) = &mut self.heard {
            heard.insert(number);
        }
    }

    fn insert(&mut self, number: ActorNumber, alarm: Alarm) {
        self.window.insert((alarm.at, number));
        if let Some(before) = self.known.insert(number, alarm) {
            let at = self.known[&number].at;
            if before.at != at {
                self.window.remove(&(before.at, number));
            }
        }
    }

    /// Whether the horizon lies before an alarm, or before all there are.
    fn ends_before(&self, alarm: Option<&Cursor>) -> bool {
        match self.horizon {
            Horizon::Start => true,
            Horizon::At(horizon) => alarm.is_none_or(|alarm| *alarm > horizon),
            Horizon::End => false,
        }
    }

    /// Leaves what is far away to the directory, when there is too much.
    fn trim(&mut self) {
        if self.window.len() <= MOST || self.heard.is_some() {
            return;
        }
        let Some(&last) = self.window.iter().nth(WINDOW as usize - 1) else { return };
        let behind = self.window.split_off(&last);
        for cursor in behind {
            let (_, number) = cursor;
            let is_kept =
                cursor == last || self.known.get(&number).is_some_and(|alarm| alarm.is_pinned);
            if is_kept {
                self.window.insert(cursor);
            } else {
                self.known.remove(&number);
            }
        }
        if self.ends_before(Some(&last)) {
            return;
        }
        self.horizon = Horizon::At(last);
    }
}

#[cfg(test)]
#[path = "alarms/tests.rs"]
mod tests;
