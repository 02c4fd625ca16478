//! Opening a folder: what is refused, and how, and what is taken.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use greenroom::store::StoreError;
use rusqlite::Connection;
use support::*;

const CHILD_FOLDER: &str = "GREENROOM_TEST_FOLDER";

/// A closed store with one actor, whose state fills several pages.
fn closed_store(path: &Path) {
    let store = open(path);
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    save(&store, number, generation, vec![1; 20_000]).unwrap();
    wait(store.close());
}

/// Another process that has the folder open.
fn holder(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_folder_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD_FOLDER, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("open")), "the child has opened the folder");
    child
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn holds_a_folder_until_it_is_killed() {
    let _store = open(Path::new(&std::env::var(CHILD_FOLDER).unwrap()));
    println!("\nopen");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_folder_that_another_process_has_open_is_refused_by_naming_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = holder(dir.path());

    let refused = try_open(dir.path()).unwrap_err();

    let StoreError::Locked { owner, pid, path } = refused else { panic!("{refused}") };
    assert_eq!(pid, Some(child.id()));
    assert!(owner.starts_with(&format!("process {} on ", child.id())), "{owner}");
    assert_eq!(path, dir.path().display().to_string());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_folder_of_a_killed_process_is_free_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = holder(dir.path());

    child.kill().unwrap();
    child.wait().unwrap();

    let store = open(dir.path());
    assert_eq!(store.epoch(), 2);
}

#[test]
fn a_folder_is_open_once_within_a_process_too() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());

    let refused = try_open(dir.path()).unwrap_err();
    assert!(refused.to_string().contains("this process"), "{refused}");
    wait(first.close());

    // Closed is enough: the handle may live on.
    open(dir.path());
    drop(first);
}

#[test]
fn a_dropped_store_has_freed_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        drop(open(dir.path()));
    }
}

#[test]
fn a_file_of_garbage_is_corrupt_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("actors.db");
    let garbage = b"this is no database at all, only words. ".repeat(300);
    fs::write(&file, &garbage).unwrap();

    let refused = try_open(dir.path()).unwrap_err();

    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().contains("actors.db"), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), garbage);
}

#[test]
fn a_truncated_database_is_corrupt() {
    for pages in [1, 3, 8] {
        let dir = tempfile::tempdir().unwrap();
        closed_store(dir.path());
        let file = fs::OpenOptions::new().write(true).open(dir.path().join("actors.db")).unwrap();
        file.set_len(pages * 4096).unwrap();

        let refused = try_open(dir.path()).unwrap_err();

        assert!(matches!(refused, StoreError::Corrupt { .. }), "{pages} pages: {refused}");
    }
}

#[test]
fn an_empty_file_is_a_fresh_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("actors.db"), "").unwrap();

    let store = open(dir.path());

    assert_eq!(store.epoch(), 1);
    make(&store, 1);
}

#[test]
fn a_damaged_page_is_reported_by_what_reads_it_and_harms_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path());
    let file = dir.path().join("actors.db");
    let root: usize = Connection::open(&file)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = '_gr_state'", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap()
        .try_into()
        .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[(root - 1) * 4096] ^= 0xff;
    fs::write(&file, bytes).unwrap();

    let store = open(dir.path());

    let row = wait(store.find_by_id(id(1))).unwrap().unwrap();
    let refused = wait(store.actor(row.number).load()).unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    let generation = store.open_generation(row.number);
    let refused = save(&store, row.number, generation, "x").unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    make(&store, 2);
}

#[test]
fn a_log_whose_database_is_gone_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("actors.db-wal"), "leftover").unwrap();

    let refused = try_open(dir.path()).unwrap_err();

    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().contains("actors.db-wal"), "{refused}");
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path());
    let file = dir.path().join("actors.db");
    let sqlite = Connection::open(&file).unwrap();
    let supported =
        sqlite.query_row("SELECT schema_version FROM store_meta", [], |row| row.get(0)).unwrap();
    sqlite.execute_batch("UPDATE store_meta SET schema_version = 99").unwrap();
    drop(sqlite);
    let before = fs::read(&file).unwrap();

    let refused = try_open(dir.path()).unwrap_err();

    let path = file.display().to_string();
    assert_eq!(refused, StoreError::NewerSchema { path, found: 99, supported });
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn the_database_of_another_program_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("actors.db");
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&file).unwrap();

    let refused = try_open(dir.path()).unwrap_err();

    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    fs::create_dir_all(dir.path().join("nested/actors.db")).unwrap();

    for folder in [file.clone(), file.join("below"), dir.path().join("nested")] {
        let refused = try_open(&folder).unwrap_err();

        assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
        assert!(refused.to_string().contains(&folder.display().to_string()), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission_is_an_error_that_names_it() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("private");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(folder.join("probe"), "").is_ok() {
        println!("skipped: this user may write everywhere");
        return;
    }

    let refused = try_open(&folder).unwrap_err();

    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    assert!(refused.to_string().contains("private"), "{refused}");
}

#[test]
fn what_destroyed_actors_left_is_swept_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    closed_store(dir.path());
    let sqlite = Connection::open(dir.path().join("actors.db")).unwrap();
    sqlite
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 3600)
             INSERT INTO garbage SELECT i FROM n;
             INSERT INTO _gr_state SELECT num, x'00' FROM garbage;
             INSERT INTO _gr_actor SELECT num, 1, NULL FROM garbage;
             INSERT INTO _gr_kv SELECT 100, CAST(num AS BLOB), x'00' FROM garbage;
             INSERT INTO _gr_kv SELECT 1, CAST(num AS BLOB), x'00' FROM garbage LIMIT 5;",
        )
        .unwrap();

    let store = open(dir.path());
    let left = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        sqlite.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    until("the sweep", || left("garbage") == 0);

    assert_eq!((left("_gr_state"), left("_gr_actor"), left("directory")), (1, 1, 1));
    assert_eq!(left("_gr_kv"), 5);
    let row = wait(store.find_by_id(id(1))).unwrap().unwrap();
    assert_eq!(stored(&store, row.number), Some(Bytes::from(vec![1; 20_000])));
}

#[test]
fn rows_of_a_destroyed_actor_are_swept_while_the_store_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let numbers: Vec<_> = (0..50).map(|n| make(&store, n).number).collect();
    for &number in &numbers {
        let generation = store.open_generation(number);
        save(&store, number, generation, "x").unwrap();
    }

    for &number in &numbers[1..] {
        wait(store.destroy(number)).unwrap();
    }

    let sqlite = Connection::open(dir.path().join("actors.db")).unwrap();
    let left = || -> (i64, i64, i64) {
        let count = "SELECT (SELECT count(*) FROM _gr_state), (SELECT count(*) FROM _gr_actor),
                     (SELECT count(*) FROM garbage)";
        sqlite.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    };
    until("the sweep", || left() == (1, 1, 0));
}
