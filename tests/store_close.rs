//! The end of a store: closing it, dropping it, and callbacks that misbehave.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::sync::Arc;
use std::sync::mpsc;

use bytes::Bytes;
use greenroom::store::{SharedStore, StoreError};
use rusqlite::Connection;
use support::*;

#[test]
fn everything_queued_before_a_close_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let numbers: Vec<_> = (0..20).map(|n| make(&store, n).number).collect();
    let generations: Vec<_> = numbers.iter().map(|&n| store.open_generation(n)).collect();

    let sent: Vec<_> = (0..2_000)
        .map(|n| send(&store, numbers[n % 20], state(generations[n % 20], n.to_string())))
        .collect();
    let loads: Vec<_> = numbers.iter().map(|&number| store.actor(number).load()).collect();
    let closed = store.close();
    let late = send(&store, numbers[0], state(generations[0], "late"));
    wait(closed);

    sent.into_iter().for_each(|sent| sent.wait().unwrap());
    assert_eq!(late.wait(), Err(StoreError::Closed));
    for load in loads {
        assert!(wait(load).unwrap().state.is_some());
    }
    let store = open(dir.path());
    for (index, &number) in numbers.iter().enumerate() {
        assert_eq!(stored(&store, number), Some(Bytes::from((1_980 + index).to_string())));
    }
}

#[test]
fn a_closed_store_answers_that_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    for store in [open(dir.path()), open_memory()] {
        let row = make(&store, 1);
        let generation = store.open_generation(row.number);
        wait(store.close());
        wait(store.close());

        let closed = StoreError::Closed;
        assert_eq!(wait(store.find(&row.name, &row.key)), Err(closed.clone()));
        assert_eq!(wait(store.find_by_id(row.id)), Err(closed.clone()));
        assert_eq!(wait(store.list(all())), Err(closed.clone()));
        assert_eq!(wait(store.earliest_alarms(1)), Err(closed.clone()));
        assert_eq!(wait(store.create(new_actor(2, &[]))), Err(closed.clone()));
        assert_eq!(wait(store.destroy(row.number)), Err(closed.clone()));
        assert_eq!(wait(store.actor(row.number).load()), Err(closed.clone()));
        assert_eq!(save(&store, row.number, generation, "x"), Err(closed));
    }
}

#[test]
fn a_closed_store_leaves_one_file_and_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    make(&store, 1);
    wait(store.find_by_id(id(1))).unwrap();

    wait(store.close());

    let mut files: Vec<_> =
        dir.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["actors.db", "lock"]);
    let sqlite = Connection::open(dir.path().join("actors.db")).unwrap();
    let sound: String = sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn a_close_whose_future_is_dropped_closes_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());

    drop(store.close());

    until("the folder is free", || try_open(dir.path()).is_ok());
}

#[test]
fn a_creation_whose_future_is_dropped_happens_all_the_same() {
    let store = open_memory();

    drop(store.create(new_actor(1, &[])));

    assert!(wait(store.find_by_id(id(1))).unwrap().is_some());
}

#[test]
fn dropping_the_last_handle_commits_what_is_queued_and_frees_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);

    let sent: Vec<_> =
        (0..500).map(|n: u32| send(&store, number, state(generation, n.to_string()))).collect();
    drop(store);

    let store = open(dir.path());
    sent.into_iter().for_each(|sent| sent.wait().unwrap());
    assert_eq!(stored(&store, number), Some(Bytes::from_static(b"499")));
}

#[test]
fn an_actors_handle_keeps_the_store_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let actor = store.actor(make(&store, 1).number);

    drop(store);

    assert!(wait(actor.load()).is_ok());
    assert!(matches!(try_open(dir.path()), Err(StoreError::Locked { .. })));
    drop(actor);
    open(dir.path());
}

#[test]
fn the_last_handle_may_be_dropped_by_a_callback() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    let actor = store.actor(number);
    let (give, given) = mpsc::channel::<Arc<SharedStore>>();
    let (tell, told) = mpsc::channel();

    let done = Box::new(move |result| {
        drop(given.recv().unwrap());
        tell.send(result).unwrap();
    });
    actor.commit(state(generation, "x"), done);
    drop(actor);
    give.send(store).unwrap();

    told.recv_timeout(PATIENCE).unwrap().unwrap();
    until("the folder is free", || try_open(dir.path()).is_ok());
}

#[test]
fn a_callback_may_commit_again() {
    let store = open_memory();
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    let actor = store.actor(number);
    let (tell, told) = mpsc::channel();

    let next = Arc::clone(&actor);
    let first = Box::new(move |result: Result<(), StoreError>| {
        result.unwrap();
        next.commit(
            state(generation, "second"),
            Box::new(move |result| tell.send(result).unwrap()),
        );
    });
    actor.commit(state(generation, "first"), first);

    told.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(stored(&store, number), Some(Bytes::from_static(b"second")));
}

#[test]
fn a_callback_that_panics_harms_nobody() {
    let store = open_memory();
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);

    store.actor(number).commit(state(generation, "x"), Box::new(|_| panic!("on purpose")));
    let beside = send(&store, number, state(generation, "y"));

    beside.wait().unwrap();
    assert_eq!(stored(&store, number), Some(Bytes::from_static(b"y")));
}

#[test]
fn a_store_may_be_closed_while_many_threads_use_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let numbers: Vec<_> = (0..8).map(|n| make(&store, n).number).collect();
    let (tell, told) = mpsc::channel();
    let threads: Vec<_> = numbers
        .into_iter()
        .map(|number| {
            let (store, tell) = (Arc::clone(&store), tell.clone());
            std::thread::spawn(move || {
                let generation = store.open_generation(number);
                let mut last = 0;
                for n in 1.. {
                    match save(&store, number, generation, n.to_string()) {
                        Ok(()) => last = n,
                        Err(error) => {
                            assert_eq!(error, StoreError::Closed);
                            return (number, last);
                        }
                    }
                    if n == 20 {
                        tell.send(()).unwrap();
                    }
                }
                unreachable!("the loop has no end");
            })
        })
        .collect();

    told.recv_timeout(PATIENCE).unwrap();
    wait(store.close());

    let last: Vec<(_, i32)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let store = open(dir.path());
    for (number, last) in last {
        // Nothing was in flight any more, so the last answer is what is stored.
        let expected = (last > 0).then(|| Bytes::from(last.to_string()));
        assert_eq!(stored(&store, number), expected);
    }
}
