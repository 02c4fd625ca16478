//! The directory and the rows of actors, the same in a folder and in memory.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::sync::Arc;

use bytes::Bytes;
use greenroom::ids::ActorKey;
use greenroom::store::{
    ActorNumber, ActorRecord, ListFilter, Place, RowOp, SharedStore, StoreError, WriteBatch,
};
use support::*;

/// Runs a rule on a store in a folder and on one in memory.
fn everywhere(rule: impl Fn(Arc<SharedStore>)) {
    let dir = tempfile::tempdir().unwrap();
    rule(open(dir.path()));
    rule(open_memory());
}

#[test]
fn an_actor_is_found_as_it_was_created() {
    everywhere(|store| {
        let made = wait(store.create(new_actor(1, &["a", "b"]))).unwrap();

        assert!(made.created);
        assert_eq!((made.row.id, made.row.place), (id(1), Place::Shared));
        assert_eq!(made.row.created_at_ms, 1_700_000_000_000);
        let found = wait(store.find(&name("counter"), &key(&["a", "b"]))).unwrap();
        assert_eq!(found, Some(made.row.clone()));
        assert_eq!(wait(store.find_by_id(id(1))).unwrap(), Some(made.row.clone()));
        let record = wait(store.actor(made.row.number).load()).unwrap();
        let input = Some(Bytes::from_static(b"input"));
        assert_eq!(record, ActorRecord { input, ..ActorRecord::default() });
    });
}

#[test]
fn what_does_not_exist_is_not_found() {
    everywhere(|store| {
        make(&store, 1);

        assert_eq!(wait(store.find(&name("counter"), &key(&[]))).unwrap(), None);
        assert_eq!(wait(store.find(&name("other"), &key(&["1"]))).unwrap(), None);
        assert_eq!(wait(store.find_by_id(id(2))).unwrap(), None);
        let absent = ActorNumber(99);
        assert_eq!(wait(store.actor(absent).load()), Err(StoreError::NotFound));
        assert_eq!(wait(store.destroy(absent)), Ok(false));
        let generation = store.open_generation(absent);
        assert_eq!(save(&store, absent, generation, "x"), Err(StoreError::NotFound));
    });
}

#[test]
fn creating_an_actor_again_gives_the_one_that_exists() {
    everywhere(|store| {
        let first = wait(store.create(new_actor(1, &["a"]))).unwrap();

        let second = wait(store.create(new_actor(2, &["a"]))).unwrap();

        assert!(!second.created);
        assert_eq!(second.row, first.row);
        assert_eq!(wait(store.find_by_id(id(2))).unwrap(), None);
    });
}

#[test]
fn two_hundred_concurrent_creations_make_one_actor() {
    everywhere(|store| {
        let threads: Vec<_> = (0..200)
            .map(|n| {
                let store = Arc::clone(&store);
                std::thread::spawn(move || wait(store.create(new_actor(n, &["same"]))).unwrap())
            })
            .collect();
        let made: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();

        assert_eq!(made.iter().filter(|made| made.created).count(), 1);
        assert!(made.iter().all(|one| one.row == made[0].row));
        assert_eq!(wait(store.list(all())).unwrap().len(), 1);
    });
}

#[test]
fn an_id_that_is_taken_is_refused_and_harms_no_neighbour() {
    everywhere(|store| {
        make(&store, 1);

        let twice = store.create(new_actor(1, &["other"]));
        let fine = store.create(new_actor(2, &["fine"]));

        assert!(matches!(wait(twice), Err(StoreError::Sqlite { .. })));
        assert!(wait(fine).unwrap().created);
        assert_eq!(wait(store.find(&name("counter"), &key(&["other"]))).unwrap(), None);
    });
}

#[test]
fn a_batch_changes_all_of_its_rows() {
    everywhere(|store| {
        let number = make(&store, 1).number;
        let generation = store.open_generation(number);
        let batch = WriteBatch {
            generation,
            ops: vec![
                RowOp::PutState(Bytes::from_static(b"old")),
                RowOp::PutInitialized(true),
                RowOp::PutInput(None),
                RowOp::PutState(Bytes::from_static(b"new")),
            ],
            alarm: Some(Some(7)),
            fails_generation: false,
        };

        send(&store, number, batch).wait().unwrap();

        let record = wait(store.actor(number).load()).unwrap();
        let state = Some(Bytes::from_static(b"new"));
        assert_eq!(
            record,
            ActorRecord { has_initialized: true, state, alarm: Some(7), ..ActorRecord::default() }
        );
        assert_eq!(wait(store.earliest_alarms(10)).unwrap(), [(number, 7)]);
    });
}

#[test]
fn states_may_be_empty_and_may_be_large() {
    everywhere(|store| {
        let number = make(&store, 1).number;
        let generation = store.open_generation(number);

        save(&store, number, generation, "").unwrap();
        assert_eq!(stored(&store, number), Some(Bytes::new()));
        let large = Bytes::from(vec![7; 16 << 20]);
        save(&store, number, generation, large.clone()).unwrap();

        assert_eq!(stored(&store, number), Some(large));
    });
}

#[test]
fn batches_of_one_actor_are_applied_in_order() {
    everywhere(|store| {
        let number = make(&store, 1).number;
        let generation = store.open_generation(number);

        let sent: Vec<_> = (0..2_000)
            .map(|n: u32| send(&store, number, state(generation, n.to_string())))
            .collect();
        sent.into_iter().for_each(|sent| sent.wait().unwrap());

        assert_eq!(stored(&store, number), Some(Bytes::from_static(b"1999")));
    });
}

#[test]
fn a_load_sees_every_batch_that_was_taken_before_it() {
    everywhere(|store| {
        let number = make(&store, 1).number;
        let generation = store.open_generation(number);

        for n in 0..200u32 {
            let sent = send(&store, number, state(generation, n.to_string()));
            assert_eq!(stored(&store, number), Some(Bytes::from(n.to_string())));
            sent.wait().unwrap();
        }
    });
}

#[test]
fn alarms_come_earliest_first_and_can_be_cleared() {
    everywhere(|store| {
        let alarms = |store: &SharedStore| wait(store.earliest_alarms(2)).unwrap();
        let set = |n: u64, alarm: Option<i64>| {
            let row = wait(store.find(&name("counter"), &key(&[&n.to_string()]))).unwrap();
            let number = row.map_or_else(|| make(&store, n).number, |row| row.number);
            let generation = store.open_generation(number);
            let batch = WriteBatch {
                generation,
                ops: Vec::new(),
                alarm: Some(alarm),
                fails_generation: false,
            };
            send(&store, number, batch).wait().unwrap();
            number
        };
        let late = set(1, Some(300));
        let early = set(2, Some(-5));
        let middle = set(3, Some(200));

        assert_eq!(alarms(&store), [(early, -5), (middle, 200)]);
        set(2, None);
        set(3, Some(400));

        assert_eq!(alarms(&store), [(late, 300), (middle, 400)]);
    });
}

#[test]
fn a_list_is_filtered_and_goes_on_after_a_row() {
    everywhere(|store| {
        let make = |n: u64, actor: &str, parts: &[&str]| {
            let new = greenroom::store::NewActor { name: name(actor), ..new_actor(n, parts) };
            wait(store.create(new)).unwrap().row.number
        };
        let a = make(1, "room", &["eu", "1"]);
        let b = make(2, "room", &["eu", "2"]);
        let c = make(3, "room", &["eur"]);
        let d = make(4, "user", &["eu"]);
        let list = |filter: ListFilter| {
            let rows = wait(store.list(filter)).unwrap();
            rows.iter().map(|row| row.number).collect::<Vec<_>>()
        };

        assert_eq!(list(all()), [a, b, c, d]);
        assert_eq!(list(ListFilter { name: Some(name("room")), ..all() }), [a, b, c]);
        assert_eq!(list(ListFilter { key_prefix: key(&["eu"]), ..all() }), [a, b, d]);
        let room_in_eu = ListFilter { name: Some(name("room")), key_prefix: key(&["eu"]), ..all() };
        assert_eq!(list(room_in_eu.clone()), [a, b]);
        assert_eq!(list(ListFilter { after: Some(a), ..room_in_eu }), [b]);
        assert_eq!(list(ListFilter { limit: 2, ..all() }), [a, b]);
        assert_eq!(list(ListFilter { limit: 0, ..all() }), []);
    });
}

#[test]
fn a_list_longer_than_one_slice_is_complete() {
    everywhere(|store| {
        let made: Vec<_> =
            (0..2_500).map(|n| store.create(new_actor(n, &[&n.to_string()]))).collect();
        let numbers: Vec<_> = made.into_iter().map(|made| wait(made).unwrap().row.number).collect();

        let rows = wait(store.list(all())).unwrap();
        let some = wait(store.list(ListFilter { limit: 2_100, ..all() })).unwrap();

        assert!(rows.iter().map(|row| row.number).eq(numbers.iter().copied()));
        assert_eq!(some.len(), 2_100);
    });
}

#[test]
fn a_destroyed_actor_is_gone_and_its_number_is_not_used_again() {
    everywhere(|store| {
        let row = make(&store, 1);
        let generation = store.open_generation(row.number);
        save(&store, row.number, generation, "x").unwrap();

        assert_eq!(wait(store.destroy(row.number)), Ok(true));
        assert_eq!(wait(store.destroy(row.number)), Ok(false));

        assert_eq!(wait(store.find_by_id(row.id)).unwrap(), None);
        assert_eq!(wait(store.actor(row.number).load()), Err(StoreError::NotFound));
        let late = save(&store, row.number, generation, "y");
        assert_eq!(late, Err(StoreError::NotFound));
        let again = wait(store.create(new_actor(2, &["1"]))).unwrap();
        assert!(again.created && again.row.number > row.number);
        assert_eq!(stored(&store, again.row.number), None);
    });
}

#[test]
fn a_generation_opened_for_a_destroyed_actor_can_write_nothing() {
    everywhere(|store| {
        let number = make(&store, 1).number;
        wait(store.destroy(number)).unwrap();

        let generation = store.open_generation(number);

        assert_eq!(save(&store, number, generation, "x"), Err(StoreError::NotFound));
    });
}

#[test]
fn an_actor_and_its_key_survive_a_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let parts = vec![
        greenroom::ids::KeyPart::Number(-1.5),
        greenroom::ids::KeyPart::String("a\0b".into()),
        greenroom::ids::KeyPart::String(String::new()),
    ];
    let actor = greenroom::store::NewActor {
        key: ActorKey::new(parts).unwrap(),
        name: name("naïve 🌱"),
        ..new_actor(1, &[])
    };
    let row = wait(store.create(actor)).unwrap().row;
    let first = store.open_generation(row.number);
    save(&store, row.number, first, "kept").unwrap();
    let epoch = store.epoch();
    wait(store.close());

    let store = open(dir.path());

    assert_eq!(store.epoch(), epoch + 1);
    assert_eq!(wait(store.find(&row.name, &row.key)).unwrap(), Some(row.clone()));
    assert_eq!(stored(&store, row.number), Some(Bytes::from_static(b"kept")));
    assert!(store.open_generation(row.number) > first);
    assert_eq!(save(&store, row.number, first, "x"), Err(StoreError::Stale));
}

#[test]
fn a_write_while_another_connection_writes_is_refused_as_busy_and_works_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    let other = rusqlite::Connection::open(dir.path().join("actors.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let refused = save(&store, number, generation, "a");
    other.execute_batch("ROLLBACK").unwrap();

    let path = dir.path().join("actors.db").display().to_string();
    assert_eq!(refused, Err(StoreError::Busy { path }));
    assert_eq!(stored(&store, number), None);
    save(&store, number, generation, "b").unwrap();
}
