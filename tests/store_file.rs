//! An actor that has a file of its own: promotion, commits, readings, turns, its end.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::sync::Arc;

use bytes::Bytes;
use files::*;
use greenroom::store::{ActorRecord, FileLimits, KeyRange, KvQuery, Place, RowOp, StoreError};
use support::*;

#[test]
fn a_promoted_actor_keeps_its_rows() {
    let bench = Files::new(1);
    bench.save(0, "before").unwrap();
    bench.put(0, "k", "v").unwrap();
    let before = bench.load(0);

    bench.promote(0).unwrap();

    assert_eq!(bench.load(0), before);
    assert_eq!(bench.get(0, "k"), Some(Bytes::from("v")));
    assert_eq!(bench.place(0), Place::File { n: 1 });
    assert_eq!(bench.files_of(0), ["1.db", "1.db-wal"]);
}

#[test]
fn what_a_promoted_actor_saves_is_there_after_a_restart() {
    let bench = Files::new(2);
    bench.promote(0).unwrap();
    bench.save(0, "in the file").unwrap();
    bench.put(0, "k", "v").unwrap();
    bench.save(1, "in the store").unwrap();

    let bench = bench.reopen();

    assert_eq!(bench.state(0).unwrap(), "in the file");
    assert_eq!(bench.get(0, "k"), Some(Bytes::from("v")));
    assert_eq!(bench.state(1).unwrap(), "in the store");
}

#[test]
fn a_second_promotion_does_nothing() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "a").unwrap();

    bench.promote(0).unwrap();
    let bench = bench.reopen();
    bench.promote(0).unwrap();

    assert_eq!(bench.place(0), Place::File { n: 1 });
    assert_eq!(bench.state(0).unwrap(), "a");
}

#[test]
fn commits_around_a_promotion_keep_their_order() {
    let bench = Files::new(1);
    let sent: Vec<_> = (0..200)
        .map(|n| {
            if n == 100 {
                drop(bench.store.promote(bench.actors[0].0, bench.actors[0].1));
            }
            bench.send(0, format!("{n}"))
        })
        .collect();

    sent.into_iter().for_each(|sent| sent.wait().unwrap());

    assert_eq!(bench.state(0).unwrap(), "199");
    until("the actor has moved", || bench.place(0) == Place::File { n: 1 });
    assert_eq!(bench.state(0).unwrap(), "199");
    assert_eq!(bench.reopen().state(0).unwrap(), "199");
}

#[test]
fn readings_see_every_batch_that_was_taken_before_them() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();

    for n in 0..50 {
        let sent = bench.send(0, format!("{n}"));
        assert_eq!(bench.state(0).unwrap(), format!("{n}"));
        sent.wait().unwrap();
    }
}

#[test]
fn keys_of_a_file_are_listed_and_deleted_like_others() {
    let bench = Files::new(1);
    for key in ["a", "b", "c"] {
        bench.put(0, key, key).unwrap();
    }
    bench.promote(0).unwrap();
    bench.put(0, "d", "d").unwrap();
    let range = KeyRange::between(Bytes::from("b"), Bytes::from("d"));
    bench.write(0, vec![RowOp::DeleteKvRange(range)]).unwrap();

    let all = KvQuery { range: KeyRange::prefix(Bytes::new()), reverse: true, limit: None };
    let found = wait(bench.actor(0).kv_list(all)).unwrap();

    let keys: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["d", "a"]);
}

#[test]
fn a_generation_that_ended_changes_nothing_in_a_file() {
    let mut bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "first").unwrap();
    let (number, old) = bench.actors[0];
    bench.actors[0].1 = bench.store.open_generation(number);

    assert_eq!(save(&bench.store, number, old, "late"), Err(StoreError::Stale));
    assert!(matches!(bench.file(0).turn(old), Err(StoreError::Stale)));

    bench.save(0, "second").unwrap();
    assert_eq!(bench.state(0).unwrap(), "second");
}

#[test]
fn only_the_current_generation_promotes() {
    let bench = Files::new(1);
    let (number, old) = bench.actors[0];
    let new = bench.store.open_generation(number);

    let refused = wait(bench.store.promote(number, old)).unwrap_err();

    assert_eq!(refused, StoreError::Stale);
    assert_eq!(bench.place(0), Place::Shared);
    assert!(bench.files_of(0).is_empty());
    save(&bench.store, number, new, "goes on").unwrap();
    assert_eq!(bench.state(0).unwrap(), "goes on");
}

#[test]
fn a_turn_commits_its_statements_and_its_batch_together() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let turn = bench.turn(0);
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    turn.execute("INSERT INTO t VALUES (7)").unwrap();

    bench.commit_turn(0, turn, "with it").wait().unwrap();

    let bench = bench.reopen();
    assert_eq!(bench.turn(0).number("SELECT x FROM t").unwrap(), 7);
    assert_eq!(bench.state(0).unwrap(), "with it");
}

#[test]
fn a_turn_sees_what_was_committed_before_it_and_comes_after_it() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();

    for n in 0..50 {
        let sent = bench.send(0, format!("{n}"));
        let turn = bench.turn(0);
        let seen =
            turn.number("SELECT CAST(CAST(state AS TEXT) AS INTEGER) FROM _rivet_actor_state");
        assert_eq!(seen, Ok(n));
        turn.begin().unwrap();
        bench.commit_turn(0, turn, "turn").wait().unwrap();
        sent.wait().unwrap();
        assert_eq!(bench.state(0).unwrap(), "turn");
    }
}

#[test]
fn a_turn_that_is_dropped_has_changed_nothing() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    {
        let turn = bench.turn(0);
        turn.begin().unwrap();
        turn.execute("CREATE TABLE t (x)").unwrap();
    }

    assert!(bench.turn(0).number("SELECT count(*) FROM t").is_err());
    bench.save(0, "goes on").unwrap();
}

#[test]
fn a_turn_of_a_generation_that_ended_meanwhile_has_changed_nothing() {
    let mut bench = Files::new(1);
    bench.promote(0).unwrap();
    let turn = bench.turn(0);
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    let old = bench.actors[0].1;
    bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);

    let ended = bench.commit_turn_of(old, turn, "late").wait();

    assert_eq!(ended, Err(StoreError::Stale));
    assert!(bench.turn(0).number("SELECT count(*) FROM t").is_err());
}

#[test]
fn a_thread_that_has_a_turn_is_told_instead_of_waiting_for_itself() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let _turn = bench.turn(0);

    let second = bench.file(0).turn(bench.actors[0].1);

    assert!(matches!(second, Err(StoreError::Busy { .. })));
}

#[test]
fn commits_and_readings_wait_for_the_end_of_a_turn() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let turn = bench.turn(0);
    turn.begin().unwrap();
    let sent = bench.send(0, "after");
    let loaded = bench.actor(0).load();
    bench.others_run();
    assert!(sent.is_unanswered());

    bench.commit_turn(0, turn, "turn").wait().unwrap();

    sent.wait().unwrap();
    assert_eq!(wait(loaded).unwrap().state.unwrap(), "after");
}

#[test]
fn batches_wait_for_a_transaction_that_spans_turns_and_no_turn_slips_into_it() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let generation = bench.actors[0].1;
    wait(bench.file(0).execute(generation, "CREATE TABLE t (x)")).unwrap().unwrap();
    wait(bench.file(0).execute(generation, "BEGIN; INSERT INTO t VALUES (1)")).unwrap().unwrap();

    let sent = bench.send(0, "after");
    let refused = bench.file(0).turn(generation);
    bench.others_run();

    assert!(matches!(refused, Err(StoreError::TransactionOpen { .. })));
    assert!(sent.is_unanswered());
    wait(bench.file(0).execute(generation, "ROLLBACK")).unwrap().unwrap();
    sent.wait().unwrap();
    assert_eq!(bench.turn(0).number("SELECT count(*) FROM t"), Ok(0));
    assert_eq!(bench.state(0).unwrap(), "after");
}

#[test]
fn the_next_generation_undoes_a_transaction_that_was_left_open() {
    let mut bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "kept").unwrap();
    let old = bench.actors[0].1;
    wait(bench.file(0).execute(old, "BEGIN; CREATE TABLE t (x)")).unwrap().unwrap();
    bench.actors[0].1 = bench.store.open_generation(bench.actors[0].0);

    assert_eq!(bench.state(0).unwrap(), "kept");

    assert!(bench.turn(0).number("SELECT count(*) FROM t").is_err());
}

#[test]
fn a_destroyed_actor_leaves_no_file_and_its_name_can_be_taken_again() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "gone").unwrap();
    let (number, generation) = bench.actors[0];

    assert!(wait(bench.store.destroy(number)).unwrap());

    until("the file is deleted", || bench.files_of(0).is_empty());
    assert_eq!(save(&bench.store, number, generation, "late"), Err(StoreError::NotFound));
    assert_eq!(wait(bench.store.actor(number).load()), Err(StoreError::NotFound));
    let again = make(&bench.store, 0);
    assert_ne!(again.number, number);
    let record = wait(bench.store.actor(again.number).load()).unwrap();
    assert_eq!(record, ActorRecord { input: Some("input".into()), ..ActorRecord::default() });
}

#[test]
fn a_missing_file_is_an_error_and_not_an_empty_actor() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let dir = bench.close();
    for file in std::fs::read_dir(dir.path().join("actors")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }

    let bench = Files::open(dir, 1, limits());

    assert!(matches!(wait(bench.actor(0).load()), Err(StoreError::FileMissing { .. })));
    assert!(matches!(bench.save(0, "x"), Err(StoreError::FileMissing { .. })));
    assert!(bench.files_of(0).is_empty());
}

#[test]
fn the_file_of_another_actor_is_refused() {
    let bench = Files::new(2);
    bench.promote(0).unwrap();
    bench.promote(1).unwrap();
    let paths = [bench.file(0).path(), bench.file(1).path()];
    let dir = bench.close();
    for suffix in ["", "-wal"] {
        let [to, from] = [0, 1].map(|n: usize| format!("{}{suffix}", paths[n]));
        std::fs::copy(from, to).unwrap();
    }

    let bench = Files::open(dir, 2, limits());

    assert!(matches!(wait(bench.actor(0).load()), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_start_deletes_the_files_that_no_row_names_and_leaves_others_alone() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "kept").unwrap();
    let dir = bench.close();
    let actors = dir.path().join("actors");
    let strays = [format!("{}.2.db", id(0)), format!("{}.1.db-wal", id(7))];
    for stray in &strays {
        std::fs::write(actors.join(stray), "x").unwrap();
    }
    std::fs::write(actors.join("notes.txt"), "x").unwrap();

    let bench = Files::open(dir, 1, limits());

    assert_eq!(bench.state(0).unwrap(), "kept");
    assert!(strays.iter().all(|stray| !actors.join(stray).exists()));
    assert!(actors.join("notes.txt").exists());
}

#[test]
fn no_more_files_are_open_than_the_limit_says() {
    let limits =
        FileLimits { open_files: 4, pool_threads: 2, sync_threads: 2, ..FileLimits::default() };
    let bench = Files::with_limits(40, limits);
    for n in 0..40 {
        bench.promote(n).unwrap();
        bench.save(n, format!("{n}")).unwrap();
        assert!(bench.store.file_stats().open <= 4, "{:?}", bench.store.file_stats());
    }

    let sent: Vec<_> = (0..400).map(|n| bench.send(n % 40, format!("{n}"))).collect();
    sent.into_iter().for_each(|sent| sent.wait().unwrap());

    assert!(bench.store.file_stats().open <= 4, "{:?}", bench.store.file_stats());
    for n in 0..40 {
        assert_eq!(bench.state(n).unwrap(), format!("{}", 360 + n));
    }
}

#[test]
fn turns_may_open_more_files_and_the_rest_closes_afterwards() {
    let limits =
        FileLimits { open_files: 2, pool_threads: 1, sync_threads: 1, ..FileLimits::default() };
    let bench = Files::with_limits(5, limits);
    (0..5).for_each(|n| bench.promote(n).unwrap());

    let turns: Vec<_> = (0..5).map(|n| bench.turn(n)).collect();
    assert_eq!(bench.store.file_stats().open, 5);
    drop(turns);

    bench.save(0, "x").unwrap();
    until("files close", || {
        bench.save(1, "x").unwrap();
        bench.store.file_stats().open <= 2
    });
}

#[test]
fn a_sleeping_actor_closes_its_file() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    bench.save(0, "x").unwrap();
    assert_eq!(bench.store.file_stats().open, 1);

    wait(bench.actor(0).rest()).unwrap();

    until("the file closes", || bench.store.file_stats().open == 0);
    assert_eq!(bench.state(0).unwrap(), "x");
}

#[test]
fn an_actor_that_sleeps_in_the_middle_of_a_transaction_leaves_nothing_of_it() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let generation = bench.actors[0].1;
    wait(bench.file(0).execute(generation, "BEGIN; CREATE TABLE t (x)")).unwrap().unwrap();
    let sent = bench.send(0, "last");

    wait(bench.actor(0).rest()).unwrap();

    sent.wait().unwrap();
    until("the file closes", || bench.store.file_stats().open == 0);
    assert!(bench.turn(0).number("SELECT count(*) FROM t").is_err());
    assert_eq!(bench.state(0).unwrap(), "last");
}

#[test]
fn two_promotions_at_once_make_one_file() {
    let bench = Files::new(4);
    for n in 0..4 {
        let (number, generation) = bench.actors[n];
        let both = [0, 1].map(|_| bench.store.promote(number, generation));

        both.into_iter().for_each(|promoted| drop(wait(promoted).unwrap()));

        bench.save(n, "x").unwrap();
        let Place::File { n: file } = bench.place(n) else { panic!("it is not promoted") };
        until("one file is left", || {
            bench.files_of(n) == [format!("{file}.db"), format!("{file}.db-wal")]
        });
        assert_eq!(bench.state(n).unwrap(), "x");
    }
}

#[test]
fn a_pause_is_used_to_copy_a_log() {
    let clock = greenroom::time::Clock::manual(0);
    let limits = FileLimits { log_frames: 240, ..limits() };
    let bench = Files::on_clock(clock.clock(), limits);
    bench.promote(0).unwrap();
    for n in 0..100 {
        bench.save(0, format!("{n}")).unwrap();
    }
    let before = bench.store.file_stats().checkpoints;

    clock.advance(std::time::Duration::from_millis(60));

    until("the log is copied", || bench.store.file_stats().checkpoints > before);
    assert_eq!(bench.state(0).unwrap(), "99");
}

#[test]
fn a_log_that_grew_long_is_copied_and_begins_anew() {
    let bench = Files::new(1);
    bench.promote(0).unwrap();
    let before = bench.store.file_stats().checkpoints;

    let sent: Vec<_> = (0..9_000).map(|n| bench.send(0, format!("{n}"))).collect();
    sent.into_iter().for_each(|sent| sent.wait().unwrap());

    assert!(bench.store.file_stats().checkpoints > before);
    let log = std::fs::metadata(format!("{}-wal", bench.file(0).path())).unwrap().len();
    assert!(log < 40 << 20, "{log} bytes");
    assert_eq!(bench.reopen().state(0).unwrap(), "8999");
}

#[test]
fn in_memory_an_actor_moves_into_a_database_of_its_own() {
    let store = open_memory();
    let number = make(&store, 0).number;
    let generation = store.open_generation(number);
    save(&store, number, generation, "before").unwrap();

    let file = wait(store.promote(number, generation)).unwrap();
    let turn = file.turn(generation).unwrap();
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    drop(turn);
    save(&store, number, generation, "after").unwrap();
    wait(store.actor(number).rest()).unwrap();

    assert_eq!(stored(&store, number).unwrap(), "after");
    assert_eq!(file.path(), ":memory:");
    wait(store.close());
}

#[test]
fn a_closed_store_has_committed_what_was_sent_before_and_takes_nothing_more() {
    let bench = Files::new(3);
    (0..3).for_each(|n| bench.promote(n).unwrap());
    let sent: Vec<_> = (0..300).map(|n| bench.send(n % 3, format!("{n}"))).collect();
    let (number, generation) = bench.actors[0];
    let store = Arc::clone(&bench.store);

    let dir = bench.close();

    assert_eq!(save(&store, number, generation, "late"), Err(StoreError::Closed));
    drop(store);
    sent.into_iter().for_each(|sent| sent.wait().unwrap());
    let bench = Files::open(dir, 3, limits());
    assert_eq!(bench.state(0).unwrap(), "297");
    assert_eq!(bench.state(2).unwrap(), "299");
}
