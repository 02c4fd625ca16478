//! What the tests of the queue share.

mod finish;
mod model;
mod receive;
mod send;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::store::{DeadRow, MessageRow, SentKeyRow};

/// What a store keeps of a queue, in memory.
#[derive(Clone, Debug, Default)]
struct Rows {
    next_id: i64,
    messages: BTreeMap<MessageId, (MessageRow, Bytes)>,
    dead: BTreeMap<MessageId, (MessageRow, Bytes)>,
    keys: HashMap<(Arc<str>, Arc<str>), SentKeyRow>,
}

impl Rows {
    fn apply(&mut self, ops: &[QueueOp]) {
        for op in ops {
            match op.clone() {
                QueueOp::Send { id, name, body, created_at_ms, available_at_ms } => {
                    assert!(id.0 >= self.next_id, "{id:?} was used before");
                    self.next_id = id.0 + 1;
                    let row =
                        MessageRow { id, name, created_at_ms, available_at_ms, deliveries: 0 };
                    self.messages.insert(id, (row, body));
                }
                QueueOp::Deliver { id, deliveries, available_at_ms } => {
                    let (row, _) = self.messages.get_mut(&id).unwrap();
                    (row.deliveries, row.available_at_ms) = (deliveries, available_at_ms);
                }
                QueueOp::Release { id, available_at_ms, .. } => {
                    self.messages.get_mut(&id).unwrap().0.available_at_ms = available_at_ms;
                }
                QueueOp::Remove(id) => drop(self.messages.remove(&id).unwrap()),
                QueueOp::Bury { id, .. } => {
                    self.dead.insert(id, self.messages.remove(&id).unwrap());
                }
                QueueOp::Revive { id, available_at_ms } => {
                    let (mut row, body) = self.dead.remove(&id).unwrap();
                    (row.deliveries, row.available_at_ms) = (0, available_at_ms);
                    self.messages.insert(id, (row, body));
                }
                QueueOp::DeleteDead(id) => drop(self.dead.remove(&id).unwrap()),
                QueueOp::RememberKey(row) => {
                    self.keys.insert((row.name.clone(), row.key.clone()), row);
                }
                QueueOp::ForgetKey { name, key } => drop(self.keys.remove(&(name, key)).unwrap()),
                QueueOp::Clear => {
                    self.messages.clear();
                    self.keys.clear();
                }
            }
        }
    }

    fn load(&self) -> QueueRows {
        let dead = self.dead.values().map(|(row, _)| DeadRow {
            id: row.id,
            name: row.name.clone(),
            created_at_ms: row.created_at_ms,
        });
        QueueRows {
            next_id: self.next_id,
            messages: self.messages.values().map(|(row, _)| row.clone()).collect(),
            sent_keys: self.keys.values().cloned().collect(),
            dead: dead.collect(),
        }
    }
}

const START_MS: i64 = 1_700_000_000_000;

/// So many milliseconds after the beginning.
fn at(ms: u64) -> Moment {
    Moment {
        now: Instant::START + Duration::from_millis(ms),
        unix_ms: START_MS + i64::try_from(ms).unwrap(),
    }
}

fn settings(max_size: usize) -> QueueSettings {
    QueueSettings { max_size, max_message_len: 65_536, policies: Arc::default() }
}

/// A queue with one policy.
fn with_policy(name: &str, max_deliveries: u32, pause_ms: u64) -> Queue {
    let pause = Duration::from_millis(pause_ms);
    let policy = QueuePolicy {
        max_deliveries: NonZeroU32::new(max_deliveries),
        backoff: (pause_ms > 0).then_some(Backoff { initial: pause, max: 10 * pause }),
    };
    let policies = Arc::new(HashMap::from([(name.to_owned(), policy)]));
    Queue::load(QueueRows::default(), QueueSettings { policies, ..settings(1_000) }, START_MS).0
}

fn empty() -> Queue {
    Queue::load(QueueRows::default(), settings(1_000), START_MS).0
}

fn message(name: &str) -> NewMessage {
    NewMessage {
        name: name.into(),
        body: Bytes::from(format!("body of {name}")),
        delay: Duration::ZERO,
        dedupe_key: None,
    }
}

fn keyed(name: &str, key: &str) -> NewMessage {
    NewMessage { dedupe_key: Some(key.into()), ..message(name) }
}

fn delayed(name: &str, ms: u64) -> NewMessage {
    NewMessage { delay: Duration::from_millis(ms), ..message(name) }
}

fn send(queue: &mut Queue, name: &str) -> MessageId {
    queue.send(message(name), at(0)).unwrap().0.id
}

fn wanted(names: &[&str], count: usize, completable: bool) -> Wanted {
    let names = Names::of(names.iter().copied());
    Wanted { names, want: Want::Messages { count, completable } }
}

fn within(ms: u64) -> Patience {
    Patience { timeout: Some(Duration::from_millis(ms)), is_cancelled: false }
}

/// Takes what is there.
fn poll(queue: &mut Queue, wanted: Wanted, at: Moment) -> Vec<Delivery> {
    let (_, change) = queue.receive(wanted, within(0), at);
    messages(change)
}

/// Takes one message to complete.
fn take(queue: &mut Queue, name: &str, at: Moment) -> Option<Delivery> {
    poll(queue, wanted(&[name], 1, true), at).pop()
}

/// All messages that a change hands out.
fn messages(change: Change) -> Vec<Delivery> {
    change
        .wakes
        .into_iter()
        .flat_map(|wake| match wake {
            Wake::Messages { messages, .. } => messages,
            _ => Vec::new(),
        })
        .collect()
}

fn ids(deliveries: &[Delivery]) -> Vec<i64> {
    deliveries.iter().map(|delivery| delivery.id.0).collect()
}
