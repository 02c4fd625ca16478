//! Databases in files, over closes, crashes and migrations.

use std::path::Path;

use super::place::{Stage, asked, ready};
use super::*;
use crate::error::Coded;
use crate::time::Duration;

const NONE: Bindings = Bindings::None;

/// What a power loss or `kill -9` would leave, the locks apart.
fn copy(from: &Path, to: &Path) {
    for end in ["", "-wal"] {
        let name = |path: &Path| format!("{}{end}", path.display());
        std::fs::copy(name(from), name(to)).unwrap();
    }
}

fn count(stage: &Stage) -> SqlValue {
    stage.column("SELECT count(*) FROM t")[0].clone()
}

#[test]
fn a_close_rolls_back_what_is_open_and_keeps_what_was_there_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let stage = Stage::in_file(&path);
    stage.execute("CREATE TABLE t (x)").unwrap();

    for life in 1..=3 {
        let stage = Stage::in_file(&path);
        stage.execute("INSERT INTO t VALUES (1)").unwrap();
        let transaction = stage.begin(Duration::from_secs(1));
        stage.get(transaction.execute("INSERT INTO t VALUES (2)", NONE)).unwrap();
        let mut queued = asked(transaction.execute("INSERT INTO t VALUES (3)", NONE));
        let mut parked = asked(stage.database.execute("INSERT INTO t VALUES (4)", NONE));
        let mut running = asked(stage.database.close());
        stage.work();

        assert!(ready(&mut running).is_ok() && stage.fixture.sqlite.is_autocommit());
        // The first of them had begun.
        assert!(ready(&mut queued).is_ok());
        assert_eq!(ready(&mut parked).unwrap_err(), SqlError::TransactionClosed);
        for late in [stage.execute("SELECT 1"), stage.get(transaction.execute("SELECT 1", NONE))] {
            assert_eq!(late.unwrap_err(), SqlError::TransactionClosed);
        }
        drop(stage);
        assert_eq!(count(&Stage::in_file(&path)), life.into());
    }
}

#[test]
fn a_transaction_left_open_by_hand_is_rolled_back_at_the_close() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::in_file(&dir.path().join("a.db"));
    stage.get(stage.database.exec("CREATE TABLE t (x); BEGIN; INSERT INTO t VALUES (1)")).unwrap();

    stage.get(stage.database.close()).unwrap();

    let rows: i64 =
        stage.fixture.sqlite.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!((rows, stage.fixture.sqlite.is_autocommit()), (0, true));
}

#[test]
fn a_crash_keeps_what_was_committed_and_nothing_of_an_open_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let (path, crashed) = (dir.path().join("a.db"), dir.path().join("b.db"));
    let stage = Stage::in_file(&path);
    stage.execute("CREATE TABLE t (x)").unwrap();
    let transaction = stage.begin(Duration::from_secs(1));
    stage.get(transaction.execute("INSERT INTO t VALUES (1)", NONE)).unwrap();
    stage.get(transaction.commit()).unwrap();
    stage.execute("INSERT INTO t VALUES (2)").unwrap();
    let open = stage.begin(Duration::from_secs(1));
    stage.get(open.execute("INSERT INTO t VALUES (3)", NONE)).unwrap();

    copy(&path, &crashed);

    assert_eq!(
        Stage::in_file(&crashed).column("SELECT x FROM t"),
        [1.into(), 2.into()] as [SqlValue; 2]
    );
}

/// What the start of an actor does with its author's migration.
fn migrate(stage: &Stage, body: &[&str]) -> Result<(), SqlError> {
    let timeout = Some(Duration::from_secs(300));
    let options = BeginOptions { timeout, ..BeginOptions::default() };
    let transaction = stage.get(stage.database.begin(options))?;
    stage.get(transaction.execute("SAVEPOINT __rivet_on_migrate", NONE))?;
    for sql in body {
        if let Err(error) = stage.get(transaction.execute(*sql, NONE)) {
            stage.get(transaction.execute("ROLLBACK TO __rivet_on_migrate", NONE))?;
            stage.get(transaction.execute("RELEASE __rivet_on_migrate", NONE))?;
            stage.get(transaction.roll_back())?;
            return Err(error);
        }
    }
    stage.get(transaction.execute("RELEASE __rivet_on_migrate", NONE))?;
    stage.get(transaction.commit())
}

#[test]
fn a_migration_that_fails_leaves_nothing_and_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let good = "CREATE TABLE IF NOT EXISTS t (x)";
    {
        let stage = Stage::in_file(&path);
        let failed = migrate(&stage, &[good, "INSERT INTO t VALUES (1)", "nonsense"]);
        assert!(failed.unwrap_err().to_string().contains("syntax error"));
        assert_eq!(stage.column("SELECT count(*) FROM sqlite_schema"), [0.into()] as [SqlValue; 1]);

        migrate(&stage, &[good, "INSERT INTO t VALUES (1)"]).unwrap();
    }

    let woken = Stage::in_file(&path);
    migrate(&woken, &[good]).unwrap();

    assert_eq!(count(&woken), 1.into());
}

#[test]
fn a_disk_that_is_full_fails_the_commit_for_certain() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::in_file(&dir.path().join("a.db"));
    stage.execute("CREATE TABLE t (x)").unwrap();
    stage.fixture.sqlite.execute_batch("PRAGMA max_page_count = 10").unwrap();
    let transaction = stage.begin(Duration::from_secs(1));

    let big = Bindings::Positional(vec![vec![7; 100_000].into()]);
    let full = stage.get(transaction.execute("INSERT INTO t VALUES (?)", big));

    assert_eq!(fault(full).0, rusqlite::ffi::SQLITE_FULL);
    stage.get(transaction.roll_back()).unwrap();
    stage.execute("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(count(&stage), 1.into());
    assert!(stage.place.failures.lock().is_empty());
    let error = SqlError::Statement { code: 13, index: 0, message: "full".into() };
    assert!(!error.leaves_commit_unknown() && error.code().group == "core");
}
