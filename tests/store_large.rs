//! An actor whose batch would keep everybody else waiting moves into a file of its own.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use bytes::Bytes;
use files::*;
use greenroom::store::{Place, PromotionStep, RowOp, StoreError};
use support::*;

/// More than a megabyte.
fn large(byte: u8) -> Bytes {
    Bytes::from(vec![byte; (1 << 20) + 1])
}

#[test]
fn a_batch_of_more_than_a_megabyte_goes_to_a_file_of_its_own() {
    let bench = Files::new(2);
    bench.save(0, "small").unwrap();
    bench.put(0, "k", "v").unwrap();
    bench.save(0, large(1)).unwrap();

    assert_eq!(bench.place(0), Place::File { n: 1 });
    assert_eq!(bench.state(0).unwrap(), large(1));
    assert_eq!(bench.get(0, "k"), Some(Bytes::from("v")));
    let log = std::fs::metadata(bench.path.join("actors.db-wal")).unwrap().len();
    assert!(log < 1 << 20, "the shared store has taken {log} bytes");
    assert_eq!(bench.reopen().state(0).unwrap(), large(1));
}

#[test]
fn one_that_is_not_larger_stays_and_many_rows_count_together() {
    let bench = Files::new(2);
    let value = Bytes::from(vec![7; 1 << 19]);
    let put = |key: &'static str| RowOp::PutKv { key: Bytes::from(key), value: value.clone() };

    bench.write(0, vec![put("a")]).unwrap();
    bench.write(0, vec![put("b")]).unwrap();
    bench.write(1, vec![put("a"), put("b")]).unwrap();

    assert_eq!(bench.place(0), Place::Shared);
    assert_eq!(bench.place(1), Place::File { n: 1 });
}

#[test]
fn what_comes_while_the_actor_moves_keeps_its_order() {
    let bench = Files::new(1);
    let sent: Vec<_> = (0..100u8)
        .map(|n| {
            let bytes = if n == 50 { large(n) } else { Bytes::from(vec![n]) };
            let sent = bench.send(0, bytes);
            // A reading sees what was taken before it, wherever that is at the moment.
            if n % 10 == 1 || n == 50 {
                assert_eq!(bench.state(0).unwrap()[0], n);
            }
            sent
        })
        .collect();

    sent.into_iter().for_each(|sent| sent.wait().unwrap());

    assert_eq!(bench.place(0), Place::File { n: 1 });
    assert_eq!(bench.state(0).unwrap(), vec![99]);
}

#[test]
fn a_turn_that_begins_while_the_actor_moves_comes_after_the_batch() {
    let bench = Files::new(1);
    let sent = bench.send(0, large(1));
    bench.promote(0).unwrap();

    let turn = bench.turn(0);
    assert_eq!(turn.number("SELECT length(state) FROM _rivet_actor_state"), Ok((1 << 20) + 1));
    drop(turn);

    sent.wait().unwrap();
    assert!(matches!(bench.place(0), Place::File { .. }));
}

#[test]
fn an_actor_that_cannot_move_goes_on_where_it_is() {
    for step in [PromotionStep::Written, PromotionStep::Drained, PromotionStep::Copied] {
        let bench = Files::new(1);
        bench.faults.fail_promotion(step);

        let sent = [bench.send(0, large(1)), bench.send(0, "after it")];
        assert_eq!(bench.state(0).unwrap(), "after it", "{step:?}");
        sent.into_iter().for_each(|sent| sent.wait().unwrap());

        assert_eq!(bench.place(0), Place::Shared, "{step:?}");
        bench.save(0, large(2)).unwrap();
        assert!(matches!(bench.place(0), Place::File { .. }), "the next one moves it");
        assert_eq!(bench.state(0).unwrap(), large(2));
    }
}

#[test]
fn a_generation_that_ended_moves_nothing() {
    let bench = Files::new(1);
    let (number, old) = bench.actors[0];
    bench.store.open_generation(number);

    let refused = send(&bench.store, number, state(old, large(1))).wait();

    assert_eq!(refused, Err(StoreError::Stale));
    assert_eq!(bench.place(0), Place::Shared);
}

#[test]
fn an_actor_that_is_destroyed_meanwhile_leaves_no_file() {
    let bench = Files::new(1);
    let sent = bench.send(0, large(1));
    wait(bench.store.destroy(bench.actors[0].0)).unwrap();

    if let Err(error) = sent.wait() {
        assert!(matches!(error, StoreError::NotFound | StoreError::Stale), "{error:?}");
    }
    until("the file is gone", || bench.files_of(0).is_empty());
}

#[test]
fn in_memory_a_large_actor_stays() {
    let store = open_memory();
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);

    send(&store, number, state(generation, large(1))).wait().unwrap();

    assert!(store.actor(number).file().is_none());
}
