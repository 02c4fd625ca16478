use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::store::{ConnectionOp, RowOp, StoredConnection};

/// A client that remembers what it was told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Peer for Told {
    fn accept(&self, _: &ConnId) {
        self.0.lock().push("accept".to_owned());
    }

    fn send(&self, event: &Arc<Event>) {
        self.0.lock().push(event.name().to_owned());
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.0.lock().push(format!("close {} {reason}", code.0));
    }
}

fn socket(n: u8) -> SocketId {
    SocketId { gateway: [0; 4], request: [n; 4] }
}

fn conn(n: u8, hibernatable: bool) -> Arc<Conn> {
    let request = ConnectRequest {
        params: Bytes::new(),
        request: None,
        peer: None,
        socket: hibernatable.then(|| socket(n)),
    };
    Arc::new(Conn::opening(ConnId::new(&n.to_string()), request))
}

fn accepted(table: &mut Connections, n: u8, hibernatable: bool) -> ConnId {
    let conn = conn(n, hibernatable);
    table.insert(Arc::clone(&conn));
    assert!(table.accept(&conn.id));
    conn.id.clone()
}

/// What a commit would carry, in short.
fn rows(table: &mut Connections) -> (Vec<String>, Pending) {
    let (ops, taken) = table.take_rows();
    let short = |op| match op {
        RowOp::Connection(ConnectionOp::Put(stored)) => format!("put {}", stored.id),
        RowOp::Connection(ConnectionOp::Delete(id)) => format!("delete {id}"),
        other => panic!("{other:?} is no change of a connection"),
    };
    (ops.into_iter().map(short).collect(), taken)
}

fn with_peer() -> (Arc<Told>, Conn) {
    let told = Arc::new(Told::default());
    let request = ConnectRequest {
        params: Bytes::new(),
        request: None,
        peer: Some(Arc::clone(&told) as Arc<dyn Peer>),
        socket: None,
    };
    (told, Conn::opening(ConnId::new("1"), request))
}

fn event(name: &str) -> Arc<Event> {
    Arc::new(Event::new(name, Bytes::new()))
}

#[test]
fn a_rejected_client_was_told_nothing_and_is_not_closed() {
    let (told, conn) = with_peer();

    conn.deliver(&event("a"));
    conn.close(CloseCode::NORMAL, "why");
    conn.accept();

    assert_eq!(*told.0.lock(), [""; 0]);
}

#[test]
fn what_was_sent_before_the_acceptance_leaves_first_and_in_order() {
    let (told, conn) = with_peer();
    conn.deliver(&event("a"));
    conn.deliver(&event("b"));

    conn.accept();
    conn.deliver(&event("c"));

    assert_eq!(*told.0.lock(), ["accept", "a", "b", "c"]);
}

#[test]
fn a_client_is_closed_once_and_told_nothing_behind_that() {
    let (told, conn) = with_peer();
    conn.accept();

    conn.close(CloseCode::POLICY, "why");
    conn.close(CloseCode::NORMAL, "again");
    conn.deliver(&event("a"));

    assert_eq!(*told.0.lock(), ["accept", "close 1008 why"]);
}

#[test]
fn an_event_is_encoded_once_for_each_form() {
    let event = event("a");
    let mut made = 0;

    for form in [0, 0, 2, 2, FORMS, FORMS] {
        event.encoded(form, |_| {
            made += 1;
            Bytes::from_static(b"x")
        });
    }

    assert_eq!(made, 4);
}

#[test]
fn only_connections_that_do_not_outlive_a_sleep_keep_the_actor_awake() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, false);
    accepted(&mut table, 2, true);

    assert_eq!(table.keeping_awake(), 1);
    table.remove(&id);
    assert_eq!(table.keeping_awake(), 0);
}

#[test]
fn a_connection_is_taken_out_once() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, false);

    assert!(table.remove(&id).is_some());
    assert!(table.remove(&id).is_none());
    assert!(table.subscribe(&id, "a").is_err());
    assert!(!table.accept(&id));
}

#[test]
fn nothing_is_stored_of_one_that_was_not_accepted_or_does_not_outlive_a_sleep() {
    let mut table = Connections::default();
    let opening = conn(1, true);
    table.insert(Arc::clone(&opening));
    table.touch(&opening.id, Urgency::Urgent);
    let brief = accepted(&mut table, 2, false);
    table.touch(&brief, Urgency::Urgent);

    assert!(table.pending().is_empty());
    table.reject(&opening.id);
    table.remove(&brief);
    assert!(table.pending().is_empty());
}

#[test]
fn a_message_number_is_stored_without_hurry_and_never_goes_back() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, true);
    let _ = table.take_rows();

    table.acknowledge(&id, 3).unwrap();
    table.acknowledge(&id, 2).unwrap();

    assert!(!table.pending().is_empty() && !table.pending().is_urgent());
    assert_eq!(table.arrival(&id, 3).unwrap(), Arrival::Duplicate);
    assert_eq!(table.arrival(&id, 4).unwrap(), Arrival::Next);
    let brief = accepted(&mut table, 2, false);
    let refused = table.arrival(&brief, 1).unwrap_err();
    assert_eq!(refused, ConnectionError::NotHibernatable { id: brief });
}

#[test]
fn a_number_is_due_that_is_far_behind_the_last_one_that_no_failed_commit_took() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, true);
    let _ = table.take_rows();
    assert!(!table.acknowledge(&id, 10_000).unwrap());
    let (_, first) = table.take_rows();
    assert!(!table.acknowledge(&id, 20_000).unwrap());
    let (_, second) = table.take_rows();
    assert!(!table.acknowledge(&id, 20_001).unwrap());

    table.give_back(first);
    table.give_back(second);

    assert!(table.acknowledge(&id, 20_002).unwrap());
    let _ = table.take_rows();
    assert!(!table.acknowledge(&id, 20_003).unwrap());
}

#[test]
fn what_is_stored_is_what_the_next_generation_takes_over() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, true);
    table.subscribe(&id, "b").unwrap();
    table.subscribe(&id, "a").unwrap();
    table.acknowledge(&id, 1).unwrap();
    table.get(&id).unwrap().set_state(Bytes::from_static(b"s"));

    let (ops, _) = table.take_rows();
    let [RowOp::Connection(ConnectionOp::Put(stored))] = &ops[..] else { panic!("{ops:?}") };
    let mut next = Connections::default();
    next.restore(Arc::new(Conn::restored(stored, None)), stored);

    assert_eq!(next.of_socket(socket(1)).unwrap().state(), "s");
    assert_eq!(next.subscriptions(&id), ["a", "b"]);
    assert_eq!(next.arrival(&id, 2).unwrap(), Arrival::Next);
    let missing = next.of_socket(socket(2)).unwrap_err();
    assert_eq!(missing, ConnectionError::RestoreNotFound { socket: socket(2) });
}

#[test]
fn a_failed_commit_gives_back_updates_and_removals_and_a_removal_wins() {
    let mut table = Connections::default();
    let (a, b) = (accepted(&mut table, 1, true), accepted(&mut table, 2, true));
    table.remove(&b);
    let (first, taken) = rows(&mut table);
    assert_eq!(first, ["put 1", "delete 2"]);

    table.remove(&a);
    table.give_back(taken);

    assert!(table.pending().is_urgent());
    assert_eq!(rows(&mut table).0, ["delete 1", "delete 2"]);
    assert!(rows(&mut table).0.is_empty());
}

#[test]
fn a_state_that_is_handed_over_beats_that_of_the_handle_and_loses_to_a_removal() {
    let mut table = Connections::default();
    let (a, b) = (accepted(&mut table, 1, true), accepted(&mut table, 2, true));
    let brief = accepted(&mut table, 3, false);
    let _ = table.take_rows();
    table.get(&a).unwrap().set_state(Bytes::from_static(b"older"));

    table.forget(b.clone());
    table.hand_over(&a, Bytes::from_static(b"given"));
    table.hand_over(&b, Bytes::from_static(b"given"));
    table.hand_over(&brief, Bytes::from_static(b"given"));
    table.hand_over(&ConnId::new("gone"), Bytes::from_static(b"given"));

    assert_eq!(table.get(&a).unwrap().state(), "given");
    assert_eq!(rows(&mut table).0, ["put 1", "delete 2"]);
    assert_eq!(table.check(&a), Ok(()));
    assert_eq!(table.check(&brief), Err(ConnectionError::NotHibernatable { id: brief }));
    let gone = ConnId::new("gone");
    assert_eq!(table.check(&gone), Err(ConnectionError::NotFound { id: gone }));
}

#[test]
fn states_are_given_back_also_to_what_is_gone_and_only_what_changed_is_stored_again() {
    let mut table = Connections::default();
    let (a, b) = (accepted(&mut table, 1, true), accepted(&mut table, 2, true));
    let _ = table.take_rows();
    let before = table.states();
    let gone = table.remove(&b).unwrap();
    gone.set_state(Bytes::from_static(b"within"));
    table.get(&a).unwrap().set_state(Bytes::from_static(b"within"));

    assert!(table.restore_states(before));

    assert_eq!((table.get(&a).unwrap().state(), gone.state()), (Bytes::new(), Bytes::new()));
    assert_eq!(rows(&mut table).0, ["put 1", "delete 2"]);
    let unchanged = table.states();
    assert!(!table.restore_states(unchanged));
    assert!(table.pending().is_empty());
}

#[test]
fn a_client_subscribes_to_so_many_events_and_no_more() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, true);
    for n in 0..MAX_SUBSCRIPTIONS {
        assert!(table.subscribe(&id, &n.to_string()).unwrap());
    }

    let refused = table.subscribe(&id, "more").unwrap_err();
    assert_eq!(refused, ConnectionError::TooManySubscriptions { id: id.clone() });
    assert!(!table.subscribe(&id, "0").unwrap());
    assert!(table.unsubscribe(&id, "0"));
    assert!(table.subscribe(&id, "more").unwrap());
}

#[test]
fn the_names_of_what_a_client_subscribes_to_have_a_limit_together() {
    let mut table = Connections::default();
    let id = accepted(&mut table, 1, true);
    table.subscribe(&id, &"a".repeat(MAX_SUBSCRIBED_BYTES - 1)).unwrap();

    assert!(table.subscribe(&id, "bb").is_err());
    assert!(table.subscribe(&id, "b").unwrap());
    assert_eq!(table.subscriptions(&id).len(), 2);
}

/// What happens to one of a few connections, or to the commit.
#[derive(Clone, Copy, Debug)]
enum Step {
    Connect(u8),
    State(u8, u8),
    Subscribe(u8),
    Acknowledge(u8),
    Remove(u8),
    /// A commit begins and ends well or badly.
    Commit(bool),
    /// A state is handed over with a commit, which ends well or badly.
    HandOver(u8, u8, bool),
    /// A commit begins, something happens, and it fails.
    FailAround(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..4_u8;
    prop_oneof![
        n.clone().prop_map(Step::Connect),
        (n.clone(), any::<u8>()).prop_map(|(n, to)| Step::State(n, to)),
        n.clone().prop_map(Step::Subscribe),
        n.clone().prop_map(Step::Acknowledge),
        n.clone().prop_map(Step::Remove),
        any::<bool>().prop_map(Step::Commit),
        (n.clone(), any::<u8>(), any::<bool>())
            .prop_map(|(n, to, ends_well)| Step::HandOver(n, to, ends_well)),
        n.prop_map(Step::FailAround),
    ]
}

/// What the store has.
#[derive(Debug, Default)]
struct Disk(BTreeMap<String, StoredConnection>);

impl Disk {
    fn apply(&mut self, ops: Vec<RowOp>) {
        for op in ops {
            match op {
                RowOp::Connection(ConnectionOp::Put(stored)) => {
                    self.0.insert(stored.id.clone(), *stored);
                }
                RowOp::Connection(ConnectionOp::Delete(id)) => {
                    self.0.remove(&id);
                }
                other => panic!("{other:?} is no change of a connection"),
            }
        }
    }
}

proptest! {
    #[test]
    fn after_a_commit_the_store_has_what_memory_has(steps in prop::collection::vec(step(), 0..60)) {
        let (mut table, mut disk) = (Connections::default(), Disk::default());
        // Ids are never used twice, so each slot gets a fresh one.
        let (mut next, mut slots) = (0_u8, BTreeMap::<u8, ConnId>::new());

        for step in steps {
            match step {
                Step::Connect(n) => {
                    slots.entry(n).or_insert_with(|| {
                        next += 1;
                        accepted(&mut table, next, true)
                    });
                }
                Step::State(n, to) => if let Some(id) = slots.get(&n) {
                    table.get(id).unwrap().set_state(Bytes::from(vec![to]));
                    table.touch(id, Urgency::Urgent);
                },
                Step::Subscribe(n) => if let Some(id) = slots.get(&n) {
                    table.subscribe(id, "a").unwrap();
                },
                Step::Acknowledge(n) => if let Some(id) = slots.get(&n) {
                    table.acknowledge(id, 1).unwrap();
                },
                Step::Remove(n) => if let Some(id) = slots.remove(&n) {
                    table.remove(&id);
                },
                Step::Commit(true) => disk.apply(table.take_rows().0),
                Step::Commit(false) => {
                    let (_, taken) = table.take_rows();
                    table.give_back(taken);
                }
                Step::HandOver(n, to, ends_well) => if let Some(id) = slots.get(&n) {
                    table.hand_over(id, Bytes::from(vec![to]));
                    let (ops, taken) = table.take_rows();
                    if ends_well { disk.apply(ops) } else { table.give_back(taken) }
                },
                Step::FailAround(n) => {
                    let (_, taken) = table.take_rows();
                    if let Some(id) = slots.remove(&n) {
                        table.remove(&id);
                    }
                    table.give_back(taken);
                }
            }
        }

        disk.apply(table.take_rows().0);
        let mut whole = Connections::default();
        for stored in disk.0.values() {
            whole.restore(Arc::new(Conn::restored(stored, None)), stored);
        }
        let ids = |table: &Connections| table.all().map(|conn| conn.id.clone()).collect::<Vec<_>>();
        prop_assert_eq!(ids(&whole), ids(&table));
        for conn in table.all() {
            prop_assert_eq!(whole.get(&conn.id).unwrap().state(), conn.state());
            prop_assert_eq!(whole.subscriptions(&conn.id), table.subscriptions(&conn.id));
            prop_assert_eq!(whole.arrival(&conn.id, 2).unwrap(), table.arrival(&conn.id, 2).unwrap());
        }
    }
}
