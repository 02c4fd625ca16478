//! The rows of a queue, the same in a folder and in memory.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::sync::Arc;

use bytes::Bytes;
use greenroom::ids::Generation;
use greenroom::store::{
    ActorNumber, DeadLetter, DeadRow, MessageId, MessageRow, QueueOp, QueueRows, RowOp, SentKeyRow,
    SharedStore, WriteBatch,
};
use support::*;

/// One actor of a store and its generation.
struct Actor {
    store: Arc<SharedStore>,
    number: ActorNumber,
    generation: Generation,
}

impl Actor {
    fn new(store: &Arc<SharedStore>, n: u64) -> Self {
        let number = make(store, n).number;
        Self { store: Arc::clone(store), number, generation: store.open_generation(number) }
    }

    fn write(&self, ops: Vec<QueueOp>) {
        let ops = ops.into_iter().map(RowOp::Queue).collect();
        let batch =
            WriteBatch { generation: self.generation, ops, alarm: None, fails_generation: true };
        send(&self.store, self.number, batch).wait().unwrap();
    }

    fn rows(&self) -> QueueRows {
        wait(self.store.actor(self.number).load()).unwrap().queue
    }

    fn ids(&self) -> Vec<i64> {
        self.rows().messages.iter().map(|row| row.id.0).collect()
    }

    fn bodies(&self, ids: &[i64]) -> Vec<Option<Bytes>> {
        let ids = ids.iter().map(|id| MessageId(*id)).collect();
        wait(self.store.actor(self.number).message_bodies(ids)).unwrap()
    }

    fn dead(&self, after: i64, limit: u32) -> Vec<DeadLetter> {
        wait(self.store.actor(self.number).dead_letters(MessageId(after), limit)).unwrap()
    }
}

fn body(id: i64) -> Bytes {
    Bytes::from(format!("body {id}"))
}

fn message(id: i64) -> QueueOp {
    QueueOp::Send {
        id: MessageId(id),
        name: "job".into(),
        body: body(id),
        created_at_ms: 100 + id,
        available_at_ms: 200 + id,
    }
}

fn row(id: i64) -> MessageRow {
    MessageRow {
        id: MessageId(id),
        name: "job".into(),
        created_at_ms: 100 + id,
        available_at_ms: 200 + id,
        deliveries: 0,
    }
}

fn key(key: &str, id: i64) -> SentKeyRow {
    SentKeyRow { name: "job".into(), key: key.into(), id: MessageId(id), sent_at_ms: 100 + id }
}

/// Runs a rule on a store in a folder and on one in memory.
fn everywhere(rule: impl Fn(Actor, Arc<SharedStore>)) {
    let folder = tempfile::tempdir().unwrap();
    for store in [open(folder.path()), open_memory()] {
        rule(Actor::new(&store, 1), store);
    }
}

#[test]
fn messages_are_found_by_id_with_their_bodies_and_belong_to_one_actor() {
    everywhere(|actor, store| {
        let other = Actor::new(&store, 2);
        assert_eq!(actor.rows(), QueueRows::default());

        actor.write(vec![message(1), message(2), message(3)]);
        other.write(vec![message(1)]);
        actor.write(vec![QueueOp::Remove(MessageId(2))]);

        let messages = vec![row(1), row(3)];
        assert_eq!(actor.rows(), QueueRows { next_id: 4, messages, ..QueueRows::default() });
        assert_eq!(actor.bodies(&[3, 2, 1]), [Some(body(3)), None, Some(body(1))]);
        assert_eq!((other.ids(), other.rows().next_id), (vec![1], 2));
    });
}

#[test]
fn an_id_stays_used_when_its_message_is_gone() {
    everywhere(|actor, _| {
        actor.write(vec![message(1), message(2), QueueOp::Remove(MessageId(2)), QueueOp::Clear]);

        assert_eq!((actor.ids(), actor.rows().next_id), (vec![], 3));
    });
}

#[test]
fn deliveries_and_releases_change_what_they_name_and_nothing_else() {
    everywhere(|actor, _| {
        actor.write(vec![message(1), message(2)]);
        let id = MessageId(1);

        actor.write(vec![QueueOp::Deliver { id, deliveries: 7, available_at_ms: 900 }]);
        let delivered = MessageRow { deliveries: 7, available_at_ms: 900, ..row(1) };
        assert_eq!(actor.rows().messages, [delivered.clone(), row(2)]);
        actor.write(vec![QueueOp::Release { id, available_at_ms: 950, error: None }]);

        let released = MessageRow { available_at_ms: 950, ..delivered };
        assert_eq!(actor.rows().messages, [released, row(2)]);
        assert_eq!(actor.bodies(&[1]), [Some(body(1))]);
    });
}

#[test]
fn a_dead_message_keeps_its_last_word_and_comes_back_as_if_it_were_new() {
    everywhere(|actor, _| {
        let id = MessageId(1);
        actor.write(vec![message(1), message(2), message(3)]);
        let deliver = QueueOp::Deliver { id, deliveries: 2, available_at_ms: 0 };
        let release = QueueOp::Release { id, available_at_ms: 0, error: Some("no, and no".into()) };
        let bury = |id, error| QueueOp::Bury { id: MessageId(id), died_at_ms: 500, error };

        actor.write(vec![deliver, release, bury(1, None), bury(3, Some("bad".into()))]);

        let letter = |id, deliveries, error: &str| DeadLetter {
            id: MessageId(id),
            name: "job".into(),
            created_at_ms: 100 + id,
            deliveries,
            died_at_ms: 500,
            error: Some(error.into()),
            body: body(id),
        };
        let (first, third) = (letter(1, 2, "no, and no"), letter(3, 0, "bad"));
        assert_eq!(actor.dead(0, 10), [first.clone(), third.clone()]);
        assert_eq!((actor.dead(0, 1), actor.dead(1, 10)), (vec![first], vec![third]));
        let dead = |id| DeadRow { id: MessageId(id), name: "job".into(), created_at_ms: 100 + id };
        assert_eq!((actor.ids(), actor.rows().dead), (vec![2], vec![dead(1), dead(3)]));

        actor.write(vec![
            QueueOp::Revive { id, available_at_ms: 600 },
            QueueOp::DeleteDead(MessageId(3)),
        ]);
        let revived = MessageRow { available_at_ms: 600, ..row(1) };
        assert_eq!(actor.rows().messages, [revived, row(2)]);
        assert_eq!((actor.dead(0, 10), actor.bodies(&[1])), (vec![], vec![Some(body(1))]));
    });
}

#[test]
fn a_key_stands_for_its_last_message_until_it_is_forgotten() {
    everywhere(|actor, _| {
        actor.write(vec![message(1), QueueOp::RememberKey(key("a", 1))]);
        actor.write(vec![QueueOp::RememberKey(key("b", 2)), QueueOp::RememberKey(key("a", 3))]);
        assert_eq!(actor.rows().sent_keys, [key("a", 3), key("b", 2)]);

        actor.write(vec![QueueOp::ForgetKey { name: "job".into(), key: "a".into() }]);
        assert_eq!(actor.rows().sent_keys, [key("b", 2)]);
        actor.write(vec![QueueOp::Clear]);

        assert_eq!((actor.rows().sent_keys, actor.ids()), (vec![], vec![]));
    });
}

#[test]
fn a_clear_leaves_the_dead_and_other_actors_alone() {
    everywhere(|actor, store| {
        let other = Actor::new(&store, 2);
        other.write(vec![message(1)]);
        let bury = QueueOp::Bury { id: MessageId(1), died_at_ms: 0, error: None };
        actor.write(vec![message(1), message(2), bury]);

        actor.write(vec![QueueOp::Clear]);

        assert_eq!((actor.ids(), actor.dead(0, 10).len(), other.ids()), (vec![], 1, vec![1]));
    });
}

#[test]
fn everything_is_there_when_the_folder_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let actor = Actor::new(&store, 1);
    actor.write(vec![message(1), message(2), QueueOp::RememberKey(key("a", 2))]);
    let (before, number) = (actor.rows(), actor.number);
    drop((actor, store));

    let store = open(folder.path());

    assert_eq!(wait(store.actor(number).load()).unwrap().queue, before);
}

#[test]
fn a_destroyed_actor_leaves_no_row_of_its_queue() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let actor = Actor::new(&store, 1);
    let bury = QueueOp::Bury { id: MessageId(1), died_at_ms: 0, error: None };
    actor.write((1..=2_500).map(message).chain([bury]).collect());
    actor.write((1..=1_200).map(|id| QueueOp::RememberKey(key(&id.to_string(), id))).collect());
    assert!(wait(store.destroy(actor.number)).unwrap());
    let number = actor.number.0;
    drop(actor);
    // What is swept is swept in slices, each by a commit.
    wait(store.close());
    drop(store);
    let store = open(folder.path());
    for n in 2..20 {
        make(&store, n);
    }
    wait(store.close());
    drop(store);

    let sqlite = rusqlite::Connection::open(folder.path().join("actors.db")).unwrap();
    for table in ["_gr_queue", "_gr_queue_dead", "_gr_queue_key", "_gr_queue_next"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE num = ?1");
        let left: i64 = sqlite.query_row(&sql, [number], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}
