//! Copies of actors as database files.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::path::Path;

use bytes::Bytes;
use files::*;
use greenroom::store::faults::CommitFault;
use greenroom::store::{Existing, RowOp, StoreError};
use rusqlite::Connection;
use support::*;

fn text(path: &Path, sql: &str) -> String {
    let sqlite = Connection::open(path).unwrap();
    sqlite.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn state_in(path: &Path) -> String {
    assert_eq!(text(path, "PRAGMA integrity_check"), "ok");
    text(path, "SELECT CAST(state AS TEXT) FROM _rivet_actor_state")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_copy_of_a_small_actor_has_its_rows_and_is_one_file() {
    let (bench, out) = (Files::new(2), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.save(0, "mine").unwrap();
    bench.save(1, "another's").unwrap();
    bench.put(0, "k", "v").unwrap();

    wait(bench.store.export(bench.actors[0].0, path.clone(), Existing::Refuse)).unwrap();

    assert_eq!(names(out.path()), ["copy.db"]);
    assert_eq!(state_in(&path), "mine");
    assert_eq!(text(&path, "SELECT CAST(value AS TEXT) FROM _rivet_user_kv"), "v");
}

#[test]
fn a_copy_of_a_file_has_the_tables_of_its_author_and_is_one_file() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.promote(0).unwrap();
    let turn = bench.turn(0);
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    turn.execute("INSERT INTO t VALUES ('author')").unwrap();
    bench.commit_turn(0, turn, "mine").wait().unwrap();

    wait(bench.store.export(bench.actors[0].0, path.clone(), Existing::Refuse)).unwrap();

    assert_eq!(names(out.path()), ["copy.db"]);
    assert_eq!(state_in(&path), "mine");
    assert_eq!(text(&path, "SELECT x FROM t"), "author");
    bench.save(0, "goes on").unwrap();
    assert_eq!(state_in(&path), "mine");
}

#[test]
fn an_actor_goes_on_while_it_is_copied_and_the_copy_is_one_moment_of_it() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.promote(0).unwrap();
    for n in 0..200 {
        let (key, value) = (Bytes::from(format!("{n}")), Bytes::from(vec![7; 50_000]));
        bench.write(0, vec![RowOp::PutKv { key, value }]).unwrap();
    }

    let export = bench.store.export(bench.actors[0].0, path.clone(), Existing::Refuse);
    let mut sent = Vec::new();
    for n in 0..100 {
        let state = RowOp::PutState(Bytes::from(format!("{n}")));
        let (key, value) = (Bytes::from("0"), Bytes::from(format!("{n}")));
        sent.push(bench.send_ops(0, vec![state, RowOp::PutKv { key, value }]));
        drop(bench.turn(0));
    }
    wait(export).unwrap();

    sent.into_iter().for_each(|sent| sent.wait().unwrap());
    let last = text(&path, "SELECT CAST(value AS TEXT) FROM _rivet_user_kv WHERE key = x'30'");
    assert_eq!(text(&path, "PRAGMA integrity_check"), "ok");
    let states = text(&path, "SELECT CAST(count(*) AS TEXT) FROM _rivet_actor_state");
    if states == "1" {
        assert_eq!(state_in(&path), last);
    } else {
        assert_eq!(last.len(), 50_000, "the moment is before the first state");
    }
    assert_eq!(bench.state(0).unwrap(), "99");
}

#[test]
fn a_copy_waits_for_a_transaction_that_spans_turns_and_has_nothing_of_it() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.promote(0).unwrap();
    bench.save(0, "mine").unwrap();
    let generation = bench.actors[0].1;
    wait(bench.file(0).execute(generation, "BEGIN; CREATE TABLE t (x)")).unwrap().unwrap();

    let mut export = tokio_test::task::spawn(bench.store.export(
        bench.actors[0].0,
        path.clone(),
        Existing::Refuse,
    ));
    bench.others_run();
    assert!(export.poll().is_pending());
    wait(bench.file(0).execute(generation, "ROLLBACK")).unwrap().unwrap();
    wait(export.into_inner()).unwrap();

    assert_eq!(
        text(&path, "SELECT CAST(count(*) AS TEXT) FROM sqlite_schema WHERE name = 't'"),
        "0"
    );
}

#[test]
fn a_copy_replaces_an_older_one_and_what_an_attempt_left() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.promote(0).unwrap();
    std::fs::write(&path, "older").unwrap();
    std::fs::write(out.path().join("copy.db.tmp"), "left").unwrap();
    std::fs::write(out.path().join("copy.db.tmp-wal"), "left").unwrap();
    bench.save(0, "mine").unwrap();

    wait(bench.store.export(bench.actors[0].0, path.clone(), Existing::Replace)).unwrap();

    assert_eq!(names(out.path()), ["copy.db"]);
    assert_eq!(state_in(&path), "mine");
}

#[test]
fn a_copy_that_cannot_be_made_leaves_nothing_and_says_why() {
    let (bench, out) = (Files::new(2), tempfile::tempdir().unwrap());
    bench.promote(0).unwrap();
    let nowhere = out.path().join("missing/copy.db");

    for n in [0, 1] {
        let refused =
            wait(bench.store.export(bench.actors[n].0, nowhere.clone(), Existing::Refuse));
        assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
    }
    for n in [0, 1] {
        wait(bench.store.destroy(bench.actors[n].0)).unwrap();
        let path = out.path().join("copy.db");
        let gone = wait(bench.store.export(bench.actors[n].0, path, Existing::Refuse));
        assert_eq!(gone, Err(StoreError::NotFound));
    }
    assert!(names(out.path()).is_empty());
    assert_eq!(bench.store.file_stats().open, 0);
}

#[test]
fn a_copy_shows_nothing_before_it_is_durable() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.promote(0).unwrap();
    bench.faults.hold_syncs(true);
    let sent = bench.send(0, "a");
    assert_eq!(bench.state(0).unwrap(), "a");

    let mut export = tokio_test::task::spawn(bench.store.export(
        bench.actors[0].0,
        path.clone(),
        Existing::Refuse,
    ));
    assert!(export.poll().is_pending());
    assert!(!path.exists());
    bench.faults.fail_syncs(1);
    bench.faults.hold_syncs(false);

    let refused = wait(export.into_inner());
    sent.wait().unwrap_err();
    assert!(refused.is_err(), "what was copied may be lost");
    assert!(!path.exists());
}

/// An actor of 10 MB, and a copy of it that has begun.
fn begun(bench: &Files, path: &Path) -> impl Future<Output = Result<(), StoreError>> + use<> {
    bench.promote(0).unwrap();
    for n in 0..200 {
        let (key, value) = (Bytes::from(format!("{n}")), Bytes::from(vec![7; 50_000]));
        bench.write(0, vec![RowOp::PutKv { key, value }]).unwrap();
    }
    wait(bench.file(0).execute(bench.actors[0].1, "PRAGMA foreign_keys = ON")).unwrap().unwrap();
    let export = bench.store.export(bench.actors[0].0, path.to_owned(), Existing::Refuse);
    until("it has begun", || path.with_extension("db.tmp").exists());
    export
}

#[test]
fn a_copy_begins_anew_when_a_generation_begins_on_a_new_connection() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    let export = begun(&bench, &path);

    let generation = bench.store.open_generation(bench.actors[0].0);
    bench.load(0);
    save(&bench.store, bench.actors[0].0, generation, "next").unwrap();
    wait(export).unwrap();

    assert_eq!(names(out.path()), ["copy.db"]);
    assert_eq!(state_in(&path), "next");
    assert_eq!(bench.store.file_stats().open, 1);
}

#[test]
fn a_copy_begins_anew_when_a_commit_in_doubt_closes_the_file() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    let export = begun(&bench, &path);

    bench.faults.fail_commit(CommitFault::SyncFailed { kept: true });
    bench.save(0, "in doubt").unwrap_err();
    wait(export).unwrap();

    assert_eq!(text(&path, "PRAGMA integrity_check"), "ok");
    let keys = text(&path, "SELECT CAST(count(*) AS TEXT) FROM _rivet_user_kv");
    assert_eq!(keys, "200");
    let number = bench.actors[0].0;
    save(&bench.store, number, bench.store.open_generation(number), "after").unwrap();
}

#[test]
fn a_copy_of_an_actor_that_ends_meanwhile_leaves_nothing() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    let export = begun(&bench, &path);

    wait(bench.store.destroy(bench.actors[0].0)).unwrap();

    // It may have been through.
    if let Err(error) = wait(export) {
        assert_eq!(error, StoreError::NotFound);
        assert!(names(out.path()).is_empty());
    }
}
