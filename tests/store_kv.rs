//! User keys and values, the same in a folder and in memory.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use greenroom::ids::Generation;
use greenroom::store::{
    ActorNumber, CrashPoint, KeptMemory, KeyRange, KvQuery, Mishaps, RowOp, SharedStore,
    StoreError, StoreLocation, WriteBatch,
};
use proptest::prelude::*;
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

    fn write(&self, ops: Vec<RowOp>) -> Result<(), StoreError> {
        let batch =
            WriteBatch { generation: self.generation, ops, alarm: None, fails_generation: false };
        send(&self.store, self.number, batch).wait()
    }

    fn put(&self, entries: &[(&'static str, &'static str)]) {
        self.write(entries.iter().map(|(key, value)| put(key, value)).collect()).unwrap();
    }

    fn get(&self, keys: &[&'static str]) -> Vec<Option<String>> {
        let keys = keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        let found = wait(self.store.actor(self.number).kv_get(keys)).unwrap();
        found.into_iter().map(|value| value.map(|value| text(&value))).collect()
    }

    fn list(&self, range: KeyRange, reverse: bool, limit: Option<u32>) -> Vec<String> {
        let query = KvQuery { range, reverse, limit };
        let found = wait(self.store.actor(self.number).kv_list(query)).unwrap();
        found.into_iter().map(|(key, value)| format!("{}={}", text(&key), text(&value))).collect()
    }

    fn all(&self) -> Vec<(Bytes, Bytes)> {
        let query = KvQuery { range: prefix(""), reverse: false, limit: None };
        wait(self.store.actor(self.number).kv_list(query)).unwrap()
    }
}

fn put(key: &'static str, value: &'static str) -> RowOp {
    RowOp::PutKv {
        key: Bytes::from_static(key.as_bytes()),
        value: Bytes::from_static(value.as_bytes()),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn prefix(prefix: &'static str) -> KeyRange {
    KeyRange::prefix(Bytes::from_static(prefix.as_bytes()))
}

fn between(start: &'static str, end: &'static str) -> KeyRange {
    KeyRange::between(Bytes::from_static(start.as_bytes()), Bytes::from_static(end.as_bytes()))
}

/// Runs a rule on a store in a folder and on one in memory.
fn everywhere(rule: impl Fn(Actor, Arc<SharedStore>)) {
    let dir = tempfile::tempdir().unwrap();
    for store in [open(dir.path()), open_memory()] {
        rule(Actor::new(&store, 1), store);
    }
}

#[test]
fn keys_are_read_in_the_order_in_which_they_are_asked_for() {
    everywhere(|actor, _| {
        actor.put(&[("alpha", "1"), ("beta", "2")]);

        let found = actor.get(&["beta", "missing", "alpha", "beta"]);

        let some = |text: &str| Some(text.to_owned());
        assert_eq!(found, [some("2"), None, some("1"), some("2")]);
        assert_eq!(actor.get(&[]), []);
    });
}

#[test]
fn the_last_value_of_a_key_counts() {
    everywhere(|actor, _| {
        actor.put(&[("a", "1"), ("a", "2")]);
        assert_eq!(actor.get(&["a"]), [Some("2".to_owned())]);

        actor.write(vec![RowOp::DeleteKv(Bytes::from_static(b"a")), put("a", "3")]).unwrap();
        assert_eq!(actor.get(&["a"]), [Some("3".to_owned())]);
    });
}

#[test]
fn lists_have_their_start_and_not_their_end() {
    everywhere(|actor, _| {
        actor.put(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);

        assert_eq!(actor.list(between("b", "d"), false, None), ["b=2", "c=3"]);
        assert_eq!(actor.list(between("a", "d"), true, Some(2)), ["c=3", "b=2"]);
        assert_eq!(actor.list(between("c", "c"), false, None), Vec::<String>::new());
        assert_eq!(actor.list(between("d", "a"), false, None), Vec::<String>::new());
        assert_eq!(actor.list(prefix(""), false, Some(0)), Vec::<String>::new());
        assert_eq!(actor.list(prefix(""), true, Some(1)), ["d=4"]);

        actor.write(vec![RowOp::DeleteKvRange(between("b", "d"))]).unwrap();
        assert_eq!(actor.list(prefix(""), false, None), ["a=1", "d=4"]);
        actor.write(vec![RowOp::DeleteKvRange(between("d", "a"))]).unwrap();
        assert_eq!(actor.list(prefix(""), false, None), ["a=1", "d=4"]);
        actor.write(vec![RowOp::DeleteKvRange(prefix(""))]).unwrap();
        assert_eq!(actor.all(), []);
    });
}

#[test]
fn empty_keys_and_values_are_keys_and_values() {
    everywhere(|actor, _| {
        actor.put(&[("", "nothing"), ("nothing", "")]);

        let some = |text: &str| Some(text.to_owned());
        assert_eq!(actor.get(&["", "nothing"]), [some("nothing"), some("")]);
        assert_eq!(actor.list(prefix(""), false, None), ["=nothing", "nothing="]);
    });
}

#[test]
fn no_actor_sees_the_keys_of_another() {
    everywhere(|actor, store| {
        let other = Actor::new(&store, 2);
        actor.put(&[("a", "mine")]);
        other.put(&[("b", "other")]);

        assert_eq!(other.get(&["a"]), [None]);
        assert_eq!(other.list(prefix(""), false, None), ["b=other"]);
        other.write(vec![RowOp::DeleteKvRange(prefix(""))]).unwrap();
        assert_eq!(actor.list(prefix(""), false, None), ["a=mine"]);
    });
}

#[test]
fn a_read_sees_what_was_written_before_it_though_nobody_was_answered() {
    everywhere(|actor, store| {
        for n in 0..50 {
            let value = Bytes::from(n.to_string());
            let op = RowOp::PutKv { key: Bytes::from_static(b"n"), value: value.clone() };
            let batch = WriteBatch {
                generation: actor.generation,
                ops: vec![op],
                alarm: None,
                fails_generation: false,
            };
            let answer = send(&store, actor.number, batch);

            assert_eq!(actor.get(&["n"]), [Some(n.to_string())]);
            answer.wait().unwrap();
        }
    });
}

/// One random change.
fn change() -> impl Strategy<Value = RowOp> {
    let key = || {
        // A few bytes, so that keys meet, the last byte among them.
        let byte = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xFE), Just(0xFF)];
        proptest::collection::vec(byte, 0..4).prop_map(Bytes::from)
    };
    let range = prop_oneof![
        (key(), key()).prop_map(|(start, end)| KeyRange::between(start, end)),
        key().prop_map(KeyRange::prefix),
    ];
    prop_oneof![
        4 => (key(), any::<u8>()).prop_map(|(key, n)| RowOp::PutKv { key, value: vec![n].into() }),
        1 => key().prop_map(RowOp::DeleteKv),
        1 => range.prop_map(RowOp::DeleteKvRange),
    ]
}

fn apply(model: &mut BTreeMap<Bytes, Bytes>, op: &RowOp) {
    match op {
        RowOp::PutKv { key, value } => drop(model.insert(key.clone(), value.clone())),
        RowOp::DeleteKv(key) => drop(model.remove(key)),
        RowOp::DeleteKvRange(range) => model.retain(|key, _| !range.contains(key)),
        other => unreachable!("{other:?} is no change of a key"),
    }
}

/// What a process does with keys before it dies in the middle of a commit.
#[derive(Clone, Debug)]
struct Life {
    batches: Vec<Vec<RowOp>>,
    point: CrashPoint,
    /// What it commits then, and what it would have committed behind that.
    last: Vec<RowOp>,
    behind: Vec<RowOp>,
}

fn life() -> impl Strategy<Value = Life> {
    let batch = || proptest::collection::vec(change(), 1..6);
    let point = prop_oneof![Just(CrashPoint::BeforeCommit), Just(CrashPoint::AfterCommit)];
    (proptest::collection::vec(batch(), 0..5), point, batch(), batch())
        .prop_map(|(batches, point, last, behind)| Life { batches, point, last, behind })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn keys_behave_as_those_of_a_sorted_map(
        batches in proptest::collection::vec(proptest::collection::vec(change(), 0..8), 1..12),
        query in (change(), any::<bool>(), proptest::option::of(0u32..5)),
    ) {
        let actor = Actor::new(&open_memory(), 1);
        let mut model = BTreeMap::new();
        for batch in batches {
            for op in &batch {
                apply(&mut model, op);
            }
            actor.write(batch).unwrap();
            let expected: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(actor.all(), expected);
        }
        if let (RowOp::DeleteKvRange(range), reverse, limit) = query {
            let mut expected: Vec<_> =
                model.into_iter().filter(|(key, _)| range.contains(key)).collect();
            if reverse {
                expected.reverse();
            }
            expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
            let query = KvQuery { range, reverse, limit };
            prop_assert_eq!(wait(actor.store.actor(actor.number).kv_list(query)).unwrap(), expected);
        }
    }

    #[test]
    fn keys_are_those_of_a_sorted_map_that_is_given_what_each_process_stored_before_it_died(
        lives in proptest::collection::vec(life(), 1..5),
    ) {
        let memory = KeptMemory::new().unwrap();
        let mut number = None;
        let mut model = BTreeMap::new();
        for Life { batches, point, last, behind } in lives {
            let location = StoreLocation::Kept(memory.clone());
            let store = SharedStore::open(location, options()).unwrap();
            let number = *number.get_or_insert_with(|| make(&store, 1).number);
            let generation = store.open_generation(number);
            let actor = Actor { store, number, generation };
            let found: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(actor.all(), found);
            let mishaps = Mishaps::default();
            let place = mishaps.around(actor.store.actor(number));
            let batch =
                |ops| WriteBatch { generation, ops, alarm: None, fails_generation: false };
            for ops in batches {
                ops.iter().for_each(|op| apply(&mut model, op));
                wait(greenroom::store::commit(place.as_ref(), batch(ops))).unwrap();
            }
            mishaps.crash_at(point, || {});
            if point == CrashPoint::AfterCommit {
                last.iter().for_each(|op| apply(&mut model, op));
            }
            let unheard = [last, behind].map(|ops| {
                let (tell, told) = mpsc::channel();
                place.commit(batch(ops), Box::new(move |result| drop(tell.send(result))));
                // A reading comes behind every batch, and so does the death that one meets.
                drop(actor.all());
                told
            });
            for told in &unheard {
                prop_assert!(told.try_recv().is_err(), "nobody hears of it");
            }
            mishaps.bury();
        }
        let store = SharedStore::open(StoreLocation::Kept(memory), options()).unwrap();
        let number = number.unwrap();
        let actor = Actor { generation: store.open_generation(number), store, number };
        prop_assert_eq!(actor.all(), model.into_iter().collect::<Vec<_>>());
    }
}
