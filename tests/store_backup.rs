//! Copies of whole stores.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use files::*;
use greenroom::store::faults::CommitFault;
use greenroom::store::{
    Backup, Existing, Faults, Place, RowOp, SharedStore, StoreError, StoreLocation,
};
use support::*;
use tempfile::TempDir;

fn backup(bench: &Files, folder: &Path) -> Result<Backup, StoreError> {
    wait(bench.store.backup(folder.to_owned()))
}

/// The store of a copy, on a copy of it.
fn restored(folder: &Path, actors: u64) -> Files {
    Files::open_at(folder.to_owned(), actors, limits())
}

fn target() -> (TempDir, std::path::PathBuf) {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("copy");
    (out, path)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_store_opens_on_a_copy_and_every_actor_is_there() {
    let (bench, (_out, path)) = (Files::new(3), target());
    bench.save(0, "small").unwrap();
    bench.put(0, "k", "v").unwrap();
    bench.promote(1).unwrap();
    let turn = bench.turn(1);
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    turn.execute("INSERT INTO t VALUES (5)").unwrap();
    bench.commit_turn(1, turn, "large").wait().unwrap();

    let made = backup(&bench, &path).unwrap();

    assert_eq!((made.actors, made.files), (3, 1));
    assert_eq!(names(&path), ["actors", "actors.db"]);
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    let file = path.join("actors").join(format!("{}.1.db", id(1)));
    assert_eq!(made.bytes, size(&path.join("actors.db")) + size(&file));
    let copy = restored(&path, 3);
    assert_eq!(wait(copy.store.settle_alarms()), Ok(0));
    assert_eq!(copy.state(0).unwrap(), "small");
    assert_eq!(copy.get(0, "k").unwrap(), "v");
    assert_eq!(copy.state(1).unwrap(), "large");
    assert_eq!(copy.turn(1).number("SELECT x FROM t"), Ok(5));
    assert_eq!(copy.state(2), None);
    copy.save(1, "goes on").unwrap();
    assert_eq!(bench.state(1).unwrap(), "large");
}

#[test]
fn a_folder_that_has_something_or_is_the_stores_own_is_refused_and_left_alone() {
    let (bench, (out, path)) = (Files::new(1), target());
    bench.promote(0).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("mine"), "x").unwrap();

    let refused = backup(&bench, &path).unwrap_err();
    assert_eq!(refused, StoreError::NotEmpty { path: path.display().to_string() });
    assert_eq!(names(&path), ["mine"]);
    for own in [bench.path.clone(), bench.path.join("actors/copy"), bench.path.join("actors.db")] {
        let refused = backup(&bench, &own).unwrap_err();
        assert_eq!(refused, StoreError::Reserved { path: own.display().to_string() });
    }
    let file = out.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let refused = backup(&bench, &file.join("below")).unwrap_err();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    assert_eq!(bench.state(0), None);
}

#[test]
fn an_empty_folder_and_one_within_the_stores_folder_are_filled() {
    let (bench, (_out, path)) = (Files::new(1), target());
    std::fs::create_dir(&path).unwrap();

    backup(&bench, &path).unwrap();
    backup(&bench, &bench.path.join("backups/monday")).unwrap();

    assert_eq!(names(&path), ["actors.db"]);
    assert_eq!(names(&bench.path.join("backups/monday")), ["actors.db"]);
}

#[test]
fn the_alarms_of_a_copy_are_those_of_its_actors() {
    let (bench, (_out, path)) = (Files::new(2), target());
    bench.promote(0).unwrap();
    bench.arm(0, Some(40)).unwrap();
    bench.arm(0, Some(50)).unwrap();
    bench.arm(1, Some(60)).unwrap();

    backup(&bench, &path).unwrap();

    let copy = restored(&path, 2);
    assert_eq!([0, 1].map(|n| copy.alarm(n)), [Some(50), Some(60)]);
    assert_eq!(wait(copy.store.settle_alarms()), Ok(0));
}

#[test]
fn what_is_not_durable_is_not_in_a_copy() {
    let (bench, (_out, path)) = (Files::new(1), target());
    bench.promote(0).unwrap();
    bench.save(0, "durable").unwrap();
    bench.faults.hold_syncs(true);
    let sent = bench.send(0, "late");
    assert_eq!(bench.state(0).unwrap(), "late");

    let mut making = tokio_test::task::spawn(bench.store.backup(path.clone()));
    bench.faults.fail_syncs(1);
    assert!(making.poll().is_pending());
    bench.faults.hold_syncs(false);

    wait(making.into_inner()).unwrap_err();
    sent.wait().unwrap_err();
    assert!(!path.exists(), "a copy that failed leaves nothing");
}

#[test]
fn actors_that_slept_sleep_again_after_they_were_copied() {
    let (bench, (_out, path)) = (Files::new(2), target());
    for n in 0..2 {
        bench.promote(n).unwrap();
    }
    let bench = bench.reopen();
    bench.save(1, "awake").unwrap();

    let made = backup(&bench, &path).unwrap();

    assert_eq!(made.files, 2);
    until("only the one in use is open", || bench.store.file_stats().open == 1);
}

#[test]
fn a_copy_works_in_memory() {
    let (_out, path) = target();
    let store = SharedStore::open(StoreLocation::Memory, options()).unwrap();
    let rows = [0, 1].map(|n| make(&store, n));
    for row in &rows {
        let generation = store.open_generation(row.number);
        save(&store, row.number, generation, "state").unwrap();
        if row.id == id(1) {
            wait(store.promote(row.number, generation)).unwrap();
        }
    }

    wait(store.backup(path.clone())).unwrap();

    let copy = restored(&path, 2);
    assert_eq!([0, 1].map(|n| copy.place(n)), [Place::Shared, Place::File { n: 1 }]);
    assert_eq!([0, 1].map(|n| copy.state(n).unwrap()), ["state", "state"]);
}

#[test]
fn a_store_that_is_reopened_meanwhile_is_copied_from_the_beginning() {
    let faults = Faults::default();
    let (bench, (_out, path)) = (Files::with_faults(1, faults.clone()), target());
    for n in 0..100 {
        let (key, value) = (Bytes::from(format!("{n}")), Bytes::from(vec![7; 50_000]));
        bench.write(0, vec![RowOp::PutKv { key, value }]).unwrap();
    }

    let making = bench.store.backup(path.clone());
    until("it has begun", || path.join("actors.db.tmp").exists());
    faults.fail_commits(1, CommitFault::SyncFailed { kept: true });
    bench.save(0, "in doubt").unwrap_err();
    wait(making).unwrap();

    let copy = restored(&path, 1);
    assert_eq!(copy.get(0, "99").unwrap().len(), 50_000);
    assert_eq!(wait(bench.store.find_by_id(id(0))).unwrap().unwrap().number, bench.actors[0].0);
}

#[test]
fn a_copy_ends_with_its_store_and_leaves_nothing() {
    let (bench, (_out, path)) = (Files::new(1), target());
    for n in 0..100 {
        let (key, value) = (Bytes::from(format!("{n}")), Bytes::from(vec![7; 50_000]));
        bench.write(0, vec![RowOp::PutKv { key, value }]).unwrap();
    }
    let making = bench.store.backup(path.clone());
    until("it has begun", || path.join("actors.db.tmp").exists());

    wait(bench.store.close());

    // It may have been through.
    match wait(making) {
        Ok(made) => assert_eq!(made.actors, 1),
        Err(error) => {
            assert_eq!(error, StoreError::Closed);
            assert!(!path.exists());
        }
    }
    restored(&bench.path, 1);
}

#[test]
fn a_copy_without_the_file_of_an_actor_is_none() {
    let (bench, (_out, path)) = (Files::new(3), target());
    for n in 0..3 {
        bench.promote(n).unwrap();
    }
    let dir = bench.close();
    let file = dir.path().join("actors").join(format!("{}.1.db", id(1)));
    std::fs::remove_file(&file).unwrap();
    let bench = Files::open(dir, 3, limits());

    let failed = backup(&bench, &path).unwrap_err();

    assert_eq!(failed, StoreError::FileMissing { path: file.display().to_string() });
    assert!(!path.exists());
}

/// Actors whose state and row of SQL are the same number, that get files, end and come
/// while the copies are made.
#[test]
fn every_actor_of_a_copy_made_under_load_is_whole() {
    const ACTORS: usize = 24;
    let (bench, out) = (Arc::new(Files::new(ACTORS as u64)), tempfile::tempdir().unwrap());
    for n in 0..ACTORS / 2 {
        bench.promote(n).unwrap();
        bench.file(n).turn(bench.actors[n].1).unwrap().execute("CREATE TABLE t (x)").unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..ACTORS)
        .map(|n| {
            let (bench, stop) = (Arc::clone(&bench), Arc::clone(&stop));
            std::thread::spawn(move || write_until(&bench, n, &stop))
        })
        .collect();

    for round in 0..4 {
        let path = out.path().join(format!("{round}"));
        let before: Vec<_> = (0..ACTORS).map(|n| number(state_of(&bench, n))).collect();
        backup(&bench, &path).unwrap();
        let copy = restored(&path, 0);
        let rows = wait(copy.store.list(all())).unwrap();
        for row in &rows {
            let record = wait(copy.store.actor(row.number).load()).unwrap();
            let found = number(record.state);
            let at = bench.actors.iter().position(|(number, _)| *number == row.number);
            if let Some(n) = at {
                assert!(found >= before[n], "{n}: {found} after {}", before[n]);
            }
            assert_eq!(record.alarm, (found > 0).then_some(found), "alarm and state are one batch");
            if let (Place::File { .. }, Some(0..12)) = (row.place, at) {
                let generation = copy.store.open_generation(row.number);
                let file = copy.store.actor(row.number).file().unwrap();
                let most = file.turn(generation).unwrap().number("SELECT max(x) FROM t");
                assert_eq!(most.unwrap_or(0), found, "SQL and state are one commit");
            }
        }
        assert!(rows.len() >= ACTORS - 4, "only four end");
        let named = rows.iter().filter(|row| row.place != Place::Shared).count();
        assert_eq!(
            names(&path.join("actors")).iter().filter(|n| n.ends_with(".db")).count(),
            named
        );
    }
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
}

/// `None` too of one that has ended.
fn state_of(bench: &Files, n: usize) -> Option<Bytes> {
    wait(bench.actor(n).load()).ok().and_then(|record| record.state)
}

fn number(state: Option<Bytes>) -> i64 {
    state.map_or(0, |state| std::str::from_utf8(&state).unwrap().parse().unwrap())
}

/// The last four end, the four before get a file, the others count.
fn write_until(bench: &Files, n: usize, stop: &AtomicBool) {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let batch = greenroom::store::WriteBatch {
            alarm: Some(Some(count)),
            ..state(bench.actors[n].1, count.to_string())
        };
        if n < 12 {
            let turn = bench.turn(n);
            turn.begin().unwrap();
            turn.execute(&format!("INSERT INTO t VALUES ({count})")).unwrap();
            end_turn(turn, batch).wait().unwrap();
        } else {
            let sent = send(&bench.store, bench.actors[n].0, batch).wait();
            if sent == Err(StoreError::NotFound) {
                return;
            }
            sent.unwrap();
        }
        match n {
            16..20 if count == 200 => bench.promote(n).unwrap(),
            20..24 if count == 300 => {
                bench.promote(n).unwrap();
                wait(bench.store.destroy(bench.actors[n].0)).unwrap();
            }
            _ => {}
        }
        if count % 50 == 0 {
            make(&bench.store, 1_000_000 * (n as u64 + 1) + count.cast_unsigned());
        }
    }
}

#[test]
fn an_export_within_the_store_and_over_its_files_is_refused() {
    let bench = Files::new(1);
    for own in ["actors.db", "lock", "actors/x.db"] {
        let path = bench.path.join(own);
        let refused = wait(bench.store.export(bench.actors[0].0, path.clone(), Existing::Replace));
        assert_eq!(refused, Err(StoreError::Reserved { path: path.display().to_string() }));
    }
}
