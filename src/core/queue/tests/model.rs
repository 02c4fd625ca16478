//! Random steps with crashes between, against a queue that is a plain list.
//!
//! Each step is a batch. A crash keeps all batches that were settled, some of those
//! behind them, and nothing else; only settled ones have been told to anybody.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["plain", "paused", "twice"];
const MAX_SIZE: usize = 6;
const PAUSE_MS: i64 = 100;

#[derive(Clone, Debug)]
enum Step {
    Send { name: usize, key: Option<u8>, delay_ms: u64 },
    Receive { names: Vec<usize>, count: usize, completable: bool, timeout_ms: Option<u64> },
    Complete(usize),
    Release { nth: usize, delay_ms: Option<u64> },
    CompleteById(usize),
    Cancel(usize),
    Revive(usize),
    DeleteDead(usize),
    Reset,
    Advance(u64),
    Settle(usize),
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let names = prop::collection::vec(0..NAMES.len(), 0..3);
    let timeout = prop::option::of(0..300_u64);
    prop_oneof![
        6 => (0..NAMES.len(), prop::option::weighted(0.3, 0..3_u8), prop_oneof![Just(0), 0..200_u64])
            .prop_map(|(name, key, delay_ms)| Step::Send { name, key, delay_ms }),
        6 => (names, 0..4_usize, any::<bool>(), timeout)
            .prop_map(|(names, count, completable, timeout_ms)| Step::Receive {
                names, count, completable, timeout_ms,
            }),
        3 => (0..4_usize).prop_map(Step::Complete),
        3 => (0..4_usize, prop::option::of(0..150_u64))
            .prop_map(|(nth, delay_ms)| Step::Release { nth, delay_ms }),
        1 => (0..6_usize).prop_map(Step::CompleteById),
        1 => (0..4_usize).prop_map(Step::Cancel),
        1 => (0..3_usize).prop_map(Step::Revive),
        1 => (0..3_usize).prop_map(Step::DeleteDead),
        1 => Just(Step::Reset),
        4 => (1..200_u64).prop_map(Step::Advance),
        4 => (0..8_usize).prop_map(Step::Settle),
        1 => (0..8_usize).prop_map(Step::Crash),
    ]
}

fn policies() -> HashMap<String, QueuePolicy> {
    let pause = Duration::from_millis(PAUSE_MS.unsigned_abs());
    let backoff = Some(Backoff { initial: pause, max: pause });
    let twice = QueuePolicy { max_deliveries: NonZeroU32::new(2), backoff: None };
    HashMap::from([
        ("paused".into(), QueuePolicy { max_deliveries: None, backoff }),
        ("twice".into(), twice),
    ])
}

#[derive(Clone, Debug, PartialEq)]
struct Message {
    id: i64,
    name: usize,
    key: Option<u8>,
    available: i64,
    deliveries: u32,
    in_hand: bool,
}

#[derive(Clone, Debug)]
struct Wait {
    id: u64,
    names: Vec<usize>,
    count: usize,
    completable: bool,
    deadline: Option<u64>,
}

/// What a wait hears: its messages, or that nothing came, or that it was cancelled.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Messages(u64, Vec<(i64, u32)>),
    TimedOut(u64),
    Aborted(u64),
}

/// The naive queue.
#[derive(Clone, Debug, Default)]
struct Model {
    last: i64,
    messages: Vec<Message>,
    dead: Vec<Message>,
    keys: HashMap<(usize, u8), i64>,
    waits: Vec<Wait>,
    last_wait: u64,
}

impl Model {
    fn send(&mut self, name: usize, key: Option<u8>, available: i64) -> Option<i64> {
        if let Some(id) = key.and_then(|key| self.keys.get(&(name, key))) {
            return Some(*id);
        }
        if self.messages.len() >= MAX_SIZE {
            return None;
        }
        self.last += 1;
        let id = self.last;
        self.keys.extend(key.map(|key| ((name, key), id)));
        self.messages.push(Message { id, name, key, available, deliveries: 0, in_hand: false });
        Some(id)
    }

    /// Lets all waits that can be served take what they want, the first first.
    fn serve(&mut self, now: i64) -> Vec<Heard> {
        let mut heard = Vec::new();
        for wait in std::mem::take(&mut self.waits) {
            match self.take(&wait, now) {
                Some(messages) => heard.push(messages),
                None => self.waits.push(wait),
            }
        }
        heard
    }

    fn take(&mut self, wait: &Wait, now: i64) -> Option<Heard> {
        let mut taken = Vec::new();
        for message in &mut self.messages {
            let wanted = wait.names.is_empty() || wait.names.contains(&message.name);
            let free = !message.in_hand && message.available <= now;
            if wanted && free && taken.len() < wait.count.max(1) {
                message.deliveries += 1;
                message.in_hand = true;
                if wait.completable && NAMES[message.name] == "paused" {
                    message.available = now + PAUSE_MS;
                }
                taken.push((message.id, message.deliveries));
            }
        }
        if !wait.completable {
            self.messages.retain(|message| !taken.iter().any(|(id, _)| *id == message.id));
        }
        (!taken.is_empty()).then_some(Heard::Messages(wait.id, taken))
    }

    fn release(&mut self, id: i64, delay: Option<u64>, now: i64) {
        let at = self.messages.iter().position(|message| message.id == id).unwrap();
        let message = &mut self.messages[at];
        message.in_hand = false;
        if NAMES[message.name] == "twice" && message.deliveries >= 2 {
            let message = self.messages.remove(at);
            self.bury(message);
            return;
        }
        let pause = if NAMES[message.name] == "paused" { PAUSE_MS } else { 0 };
        message.available = now + delay.map_or(pause, |ms| i64::try_from(ms).unwrap());
    }

    fn bury(&mut self, message: Message) {
        self.dead.push(message);
        self.dead.sort_by_key(|message| message.id);
    }

    fn revive(&mut self, id: i64, now: i64) {
        let at = self.dead.iter().position(|message| message.id == id).unwrap();
        let mut message = self.dead.remove(at);
        (message.available, message.deliveries) = (now, 0);
        self.messages.push(message);
        self.messages.sort_by_key(|message| message.id);
    }

    fn restart(&mut self) {
        self.waits.clear();
        self.last_wait = 0;
        for mut message in std::mem::take(&mut self.messages) {
            message.in_hand = false;
            if NAMES[message.name] == "twice" && message.deliveries >= 2 {
                self.bury(message);
            } else {
                self.messages.push(message);
            }
        }
    }
}

/// A queue, its rows, and what was told of it.
struct Bench {
    queue: Queue,
    model: Model,
    /// The rows after each batch, the settled ones first.
    history: Vec<(Rows, Model)>,
    settled: usize,
    now: u64,
    /// What consumers have in their hands: ids and deliveries.
    in_hand: Vec<(i64, u32)>,
    /// Who heard of messages that left with their delivery.
    taken: HashSet<i64>,
    /// What the batches that are not settled will tell.
    untold: Vec<(usize, Heard)>,
    plain_waits: HashSet<u64>,
}

impl Bench {
    fn new() -> Self {
        let settings = QueueSettings { policies: Arc::new(policies()), ..settings(MAX_SIZE) };
        Self {
            queue: Queue::load(QueueRows::default(), settings, START_MS).0,
            model: Model::default(),
            history: vec![(Rows::default(), Model::default())],
            settled: 0,
            now: 0,
            in_hand: Vec::new(),
            taken: HashSet::new(),
            untold: Vec::new(),
            plain_waits: HashSet::new(),
        }
    }

    fn at(&self) -> Moment {
        at(self.now)
    }

    /// Takes in the change of a step, which must tell what the model tells.
    fn check(&mut self, mut change: Change, expected: Vec<Heard>) {
        let mut rows = self.history.last().unwrap().0.clone();
        rows.apply(&change.ops);
        let mut heard = Vec::new();
        let mut wakes = std::mem::take(&mut change.wakes);
        while !wakes.is_empty() {
            match wakes.remove(0) {
                // Read at once, so that it makes no difference.
                Wake::Read { waiter, ids } => {
                    let body = |id| rows.messages.get(&id).map(|(_, body)| body.clone());
                    let read = ids.into_iter().map(|id| (id, body(id))).collect();
                    let more = self.queue.supply(waiter, read, self.at()).unwrap();
                    rows.apply(&more.ops);
                    wakes.splice(0..0, more.wakes);
                }
                Wake::Messages { waiter, messages } => {
                    for message in &messages {
                        let body = format!("{}", message.id.0);
                        assert_eq!(message.body, body.as_bytes());
                    }
                    let messages = messages.iter().map(|m| (m.id.0, m.deliveries)).collect();
                    heard.push(Heard::Messages(waiter.0, messages));
                }
                Wake::TimedOut(waiter) => heard.push(Heard::TimedOut(waiter.0)),
                Wake::Aborted(waiter) => heard.push(Heard::Aborted(waiter.0)),
                other => panic!("nobody waits for that: {other:?}"),
            }
        }
        assert_eq!(heard, expected);
        self.history.push((rows, self.model.clone()));
        let batch = self.history.len() - 1;
        self.untold.extend(heard.into_iter().map(|heard| (batch, heard)));
        self.compare();
    }

    fn compare(&self) {
        let waits: Vec<_> = self.queue.inspect().map(|(id, _, _)| id.0).collect();
        assert_eq!(waits, self.model.messages.iter().map(|m| m.id).collect::<Vec<_>>());
        let dead: Vec<_> = self.queue.dead.keys().map(|id| id.0).collect();
        assert_eq!(dead, self.model.dead.iter().map(|m| m.id).collect::<Vec<_>>());
        assert_eq!(self.queue.active_waits(), self.model.waits.len());
        let now = self.at().unix_ms;
        let later = self.model.messages.iter().map(|m| m.available).filter(|at| *at > now);
        assert_eq!(self.queue.alarm_ms(now), later.min());
        let rows = &self.history.last().unwrap().0;
        assert_eq!(rows.messages.keys().map(|id| id.0).collect::<Vec<_>>(), waits);
        assert_eq!(rows.dead.keys().map(|id| id.0).collect::<Vec<_>>(), dead);
    }

    /// Makes the first `count` batches durable that are not, and tells what they tell.
    fn settle(&mut self, count: usize) {
        self.settled = self.settled.saturating_add(count).min(self.history.len() - 1);
        let told: Vec<_> =
            self.untold.extract_if(.., |(batch, _)| *batch <= self.settled).collect();
        for (_, heard) in told {
            let Heard::Messages(waiter, messages) = heard else { continue };
            for (id, deliveries) in messages {
                if self.plain_waits.contains(&waiter) {
                    assert!(self.taken.insert(id), "{id} was handed out twice");
                } else {
                    let in_hand = self.in_hand.iter().any(|(other, _)| *other == id);
                    let waits = self.queue.messages.get(MessageId(id));
                    // It may be gone or back already, by its id or by a reset.
                    assert!(!in_hand, "two consumers have {id}");
                    if waits.is_some_and(|entry| entry.place() == index::Place::InFlight) {
                        self.in_hand.push((id, deliveries));
                    }
                }
            }
        }
    }

    fn crash(&mut self, kept: usize) {
        let kept = self.settled.saturating_add(kept).min(self.history.len() - 1);
        let (rows, model) = self.history.swap_remove(kept);
        let settings = self.queue.settings.clone();
        let (queue, ops) = Queue::load(rows.load(), settings, self.at().unix_ms);
        (self.queue, self.model) = (queue, model);
        self.model.restart();
        self.in_hand.clear();
        self.untold.clear();
        self.plain_waits.clear();
        self.history = vec![(rows.clone(), self.model.clone())];
        self.settled = 0;
        self.check(Change { ops, wakes: Vec::new() }, Vec::new());
        // What a start finds out is found out again by the next one.
        self.history[0] = (rows, self.model.clone());
    }

    fn run(&mut self, step: Step) {
        let at = self.at();
        let now = at.unix_ms;
        match step {
            Step::Send { name, key, delay_ms } => {
                let available = now + i64::try_from(delay_ms).unwrap();
                let expected = self.model.send(name, key, available);
                let message = NewMessage {
                    name: NAMES[name].into(),
                    body: Bytes::from(self.queue.next_id.to_string()),
                    delay: Duration::from_millis(delay_ms),
                    dedupe_key: key.map(|key| key.to_string().into()),
                };
                let sent = self.queue.send(message, at);
                assert_eq!(sent.as_ref().ok().map(|(sent, _)| sent.id.0), expected);
                if let Ok((_, change)) = sent {
                    let heard = self.model.serve(now);
                    self.check(change, heard);
                }
            }
            Step::Receive { names, count, completable, timeout_ms } => {
                let mut heard = self.model.serve(now);
                self.model.last_wait += 1;
                let wait = Wait {
                    id: self.model.last_wait,
                    names: names.clone(),
                    count,
                    completable,
                    deadline: timeout_ms.map(|ms| self.now + ms),
                };
                if !completable {
                    self.plain_waits.insert(wait.id);
                }
                match self.model.take(&wait, now) {
                    Some(messages) => heard.push(messages),
                    None if timeout_ms == Some(0) => heard.push(Heard::TimedOut(wait.id)),
                    None => self.model.waits.push(wait),
                }
                let names: Vec<_> = names.into_iter().map(|name| NAMES[name]).collect();
                let timeout = timeout_ms.map(Duration::from_millis);
                let patience = Patience { timeout, is_cancelled: false };
                let (_, change) =
                    self.queue.receive(wanted(&names, count, completable), patience, at);
                self.check(change, heard);
            }
            Step::Complete(nth) if nth < self.in_hand.len() => {
                let (id, deliveries) = self.in_hand.remove(nth);
                let change = self.queue.complete(MessageId(id), deliveries, None, at).unwrap();
                self.model.messages.retain(|message| message.id != id);
                self.check(change, Vec::new());
            }
            Step::Release { nth, delay_ms } if nth < self.in_hand.len() => {
                let (id, deliveries) = self.in_hand.remove(nth);
                if self.model.messages.iter().all(|message| message.id != id) {
                    return;
                }
                let delay = delay_ms.map(Duration::from_millis);
                let change =
                    self.queue.release(MessageId(id), deliveries, delay, None, at).unwrap();
                self.model.release(id, delay_ms, now);
                let heard = self.model.serve(now);
                self.check(change, heard);
            }
            Step::CompleteById(nth) if nth < self.model.messages.len() => {
                let Message { id, name, .. } = self.model.messages.remove(nth);
                let completed = self.queue.complete_by_id(MessageId(id), NAMES[name], None, at);
                self.in_hand.retain(|(other, _)| *other != id);
                self.check(completed.unwrap().1, Vec::new());
            }
            Step::Cancel(nth) if nth < self.model.waits.len() => {
                let wait = self.model.waits.remove(nth);
                let change = self.queue.cancel(WaiterId(wait.id));
                self.check(change, vec![Heard::Aborted(wait.id)]);
            }
            Step::Revive(nth) if nth < self.model.dead.len() => {
                let id = self.model.dead[nth].id;
                let revived = self.queue.revive(MessageId(id), at);
                assert_eq!(revived.is_err(), self.model.messages.len() >= MAX_SIZE);
                if let Ok((_, change)) = revived {
                    self.model.revive(id, now);
                    let heard = self.model.serve(now);
                    self.check(change, heard);
                }
            }
            Step::DeleteDead(nth) if nth < self.model.dead.len() => {
                let id = self.model.dead.remove(nth).id;
                let change = self.queue.delete_dead(MessageId(id)).1;
                self.check(change, Vec::new());
            }
            Step::Reset => {
                self.model.messages.clear();
                self.model.keys.clear();
                self.in_hand.clear();
                let change = self.queue.reset();
                self.check(change, Vec::new());
            }
            Step::Advance(ms) => self.advance(ms),
            Step::Settle(count) => self.settle(count),
            Step::Crash(kept) => self.crash(kept),
            _ => {}
        }
    }

    /// Lets time pass, stopping where the queue says that something is due.
    fn advance(&mut self, ms: u64) {
        let end = self.now + ms;
        loop {
            let due = self.queue.next_due(self.at()).filter(|due| *due <= at(end).now);
            self.now = due.map_or(end, |due| {
                u64::try_from(due.since(Instant::START).as_millis()).unwrap().max(self.now)
            });
            let change = self.queue.tick(self.at());
            let mut heard = self.model.serve(self.at().unix_ms);
            let mut overdue: Vec<_> = self
                .model
                .waits
                .extract_if(.., |wait| wait.deadline.is_some_and(|deadline| deadline <= self.now))
                .collect();
            overdue.sort_by_key(|wait| (wait.deadline, wait.id));
            heard.extend(overdue.into_iter().map(|wait| Heard::TimedOut(wait.id)));
            self.check(change, heard);
            if due.is_none() {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_does_what_a_plain_list_does_and_loses_and_doubles_nothing_in_crashes(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut bench = Bench::new();
        for step in steps {
            bench.run(step);
        }

        // Whatever is left comes out, once.
        bench.settle(usize::MAX);
        bench.crash(0);
        bench.now += 1_000;
        let everything = Step::Receive {
            names: Vec::new(), count: MAX_SIZE, completable: false, timeout_ms: Some(0),
        };
        bench.run(everything);
        bench.settle(usize::MAX);
        prop_assert!(bench.queue.is_empty());
    }
}
