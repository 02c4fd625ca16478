//! Actors made from copies of actors.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use files::*;
use greenroom::store::faults::CommitFault;
use greenroom::store::{
    ActorNumber, Created, Existing, Faults, ImportStep, MessageId, Place, QueueOp, RowOp,
    SharedStore, StoreError, StoreLocation,
};
use rusqlite::Connection;
use support::*;
use tempfile::TempDir;

const STEPS: [(&str, ImportStep); 5] = [
    ("reserved", ImportStep::Reserved),
    ("claimed", ImportStep::Claimed),
    ("adopted", ImportStep::Adopted),
    ("synced", ImportStep::Synced),
    ("entered", ImportStep::Entered),
];
const CHILD_FOLDER: &str = "GREENROOM_TEST_FOLDER";
const CHILD_SOURCE: &str = "GREENROOM_TEST_SOURCE";
const CHILD_STEP: &str = "GREENROOM_TEST_STEP";

/// The id and the key of what is imported.
const FORK: u64 = 500;

fn import(store: &SharedStore, path: &Path) -> Result<Created, StoreError> {
    wait(store.import(path.to_owned(), new_actor(FORK, &["fork"])))
}

fn export(bench: &Files, n: usize, path: &Path) {
    wait(bench.store.export(bench.actors[n].0, path.to_owned(), Existing::Refuse)).unwrap();
}

/// A copy of an actor with a row of each kind.
fn copy() -> (TempDir, PathBuf) {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.save(0, "mine").unwrap();
    bench.put(0, "k", "v").unwrap();
    bench.arm(0, Some(77)).unwrap();
    let send = QueueOp::Send {
        id: MessageId(1),
        name: "jobs".into(),
        body: Bytes::from_static(b"work"),
        created_at_ms: 5,
        available_at_ms: 5,
    };
    bench.write(0, vec![RowOp::Queue(send), RowOp::PutInitialized(true)]).unwrap();
    export(&bench, 0, &path);
    (out, path)
}

/// Checks that an actor has everything of [`copy`].
fn assert_is_copy(store: &Arc<SharedStore>, number: ActorNumber) {
    let record = wait(store.actor(number).load()).unwrap();
    assert_eq!(record.state.unwrap(), "mine");
    assert!(record.has_initialized);
    assert_eq!(record.input.unwrap(), "input");
    assert_eq!(record.queue.messages.len(), 1);
    assert_eq!(record.alarm, Some(77));
    assert_eq!(wait(store.alarm_of(number)), Ok(Some(77)));
    let values = wait(store.actor(number).kv_get(vec![Bytes::from_static(b"k")])).unwrap();
    assert_eq!(values, [Some(Bytes::from_static(b"v"))]);
}

fn actor_files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder.join("actors")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_import_has_all_that_the_copy_has_under_a_name_and_a_number_of_its_own() {
    let (_out, path) = copy();
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());

    let Created { row, created } = import(&store, &path).unwrap();

    assert!(created);
    assert_eq!(
        (row.id, row.key.clone(), row.place),
        (id(FORK), key(&["fork"]), Place::File { n: 1 })
    );
    assert_is_copy(&store, row.number);
    wait(store.close());
    let store = open(dir.path());
    assert_eq!(wait(store.find(&name("counter"), &key(&["fork"]))).unwrap(), Some(row.clone()));
    assert_is_copy(&store, row.number);
}

#[test]
fn a_fork_goes_its_own_way_and_has_the_tables_of_its_author() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    bench.promote(0).unwrap();
    let turn = bench.turn(0);
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    turn.execute("INSERT INTO t VALUES (41)").unwrap();
    bench.commit_turn(0, turn, "before").wait().unwrap();
    export(&bench, 0, &path);

    let row = import(&bench.store, &path).unwrap().row;
    let generation = bench.store.open_generation(row.number);
    let fork = bench.store.actor(row.number).file().unwrap();
    let turn = fork.turn(generation).unwrap();
    turn.begin().unwrap();
    turn.execute("UPDATE t SET x = 42").unwrap();
    end_turn(turn, state(generation, "after")).wait().unwrap();

    assert_eq!(fork.turn(generation).unwrap().number("SELECT x FROM t"), Ok(42));
    assert_eq!(bench.turn(0).number("SELECT x FROM t"), Ok(41));
    assert_eq!(bench.state(0).unwrap(), "before");
    assert_eq!(stored(&bench.store, row.number).unwrap(), "after");
}

#[test]
fn numbers_of_imported_actors_are_nobody_elses() {
    let (_out, path) = copy();
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());

    let first = import(&store, &path).unwrap().row.number;
    let second = make(&store, 1).number;
    let third =
        wait(store.import(path.clone(), new_actor(FORK + 1, &["third"]))).unwrap().row.number;

    assert!(first < second && second < third);
    assert_is_copy(&store, first);
    assert_is_copy(&store, third);
}

#[test]
fn a_key_that_exists_is_found_and_left_as_it_is() {
    let (_out, path) = copy();
    let bench = Files::new(1);
    bench.save(0, "own").unwrap();

    let found = wait(bench.store.import(path, new_actor(FORK, &["0"]))).unwrap();

    assert!(!found.created);
    assert_eq!(found.row.id, id(0));
    assert_eq!(bench.state(0).unwrap(), "own");
    assert!(actor_files(&bench.path).is_empty());
}

#[test]
fn of_two_imports_under_one_key_one_makes_the_actor() {
    let (_out, path) = copy();
    let bench = Files::new(0);

    let imports = [0, 1].map(|n| bench.store.import(path.clone(), new_actor(FORK + n, &["fork"])));
    let made = imports.map(|import| wait(import).unwrap());

    assert_eq!(made.iter().filter(|made| made.created).count(), 1);
    assert_eq!(made[0].row, made[1].row);
    assert_is_copy(&bench.store, made[0].row.number);
    let files = actor_files(&bench.path);
    assert!(files.iter().all(|file| file.starts_with(&made[0].row.id.to_string())), "{files:?}");
}

#[test]
fn what_is_no_copy_is_refused_by_name_and_leaves_nothing() {
    let (out, path) = copy();
    let bench = Files::new(0);
    let refused = |path: &Path| {
        let refused = import(&bench.store, path).unwrap_err();
        assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
        refused
    };

    let missing = refused(&out.path().join("missing.db"));
    assert!(matches!(missing, StoreError::Io { .. }), "{missing}");
    let folder = refused(out.path());
    assert!(matches!(folder, StoreError::NotAnActor { .. }), "{folder}");
    for (name, content) in
        [("text.db", &b"not a database at all, however long it is"[..]), ("empty.db", b"")]
    {
        let path = out.path().join(name);
        std::fs::write(&path, content).unwrap();
        let other = refused(&path);
        assert!(matches!(other, StoreError::NotAnActor { .. }), "{other}");
    }
    let newer = out.path().join("newer.db");
    std::fs::copy(&path, &newer).unwrap();
    Connection::open(&newer)
        .unwrap()
        .execute("UPDATE _gr_file SET schema_version = 99", [])
        .unwrap();
    let newer = refused(&newer);
    assert!(matches!(newer, StoreError::NewerSchema { found: 99, .. }), "{newer}");
    let own = refused(&bench.path.join("actors.db"));
    assert!(matches!(own, StoreError::Reserved { .. }), "{own}");
    assert!(actor_files(&bench.path).is_empty());
    assert_eq!(wait(bench.store.list(all())), Ok(Vec::new()));
}

#[test]
fn a_damaged_copy_is_refused_and_leaves_nothing() {
    let (bench, out) = (Files::new(1), tempfile::tempdir().unwrap());
    let path = out.path().join("copy.db");
    for n in 0..200 {
        bench.put(0, &format!("{n:04}"), &"x".repeat(500)).unwrap();
    }
    export(&bench, 0, &path);
    let sound = std::fs::read(&path).unwrap();

    let mut refusals = 0;
    for page in 1..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096..page * 4096 + 64].fill(0xff);
        std::fs::write(&path, damaged).unwrap();
        match import(&bench.store, &path) {
            Err(StoreError::Corrupt { .. } | StoreError::NotAnActor { .. }) => refusals += 1,
            Err(other) => panic!("page {page}: {other}"),
            Ok(_) => panic!("page {page} was not missed"),
        }
    }
    std::fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    let cut = import(&bench.store, &path).unwrap_err();

    assert!(refusals > 20);
    assert!(matches!(cut, StoreError::Corrupt { .. }), "{cut}");
    assert!(actor_files(&bench.path).is_empty());
}

#[test]
fn a_copy_that_another_program_is_writing_is_refused_as_busy() {
    let (_out, path) = copy();
    let bench = Files::new(0);
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();

    let refused = import(&bench.store, &path).unwrap_err();

    assert_eq!(refused, StoreError::Busy { path: path.display().to_string() });
    writer.execute_batch("COMMIT").unwrap();
    import(&bench.store, &path).unwrap();
}

#[test]
fn the_source_is_not_changed() {
    let (out, path) = copy();
    let before = std::fs::read(&path).unwrap();
    let bench = Files::new(0);

    import(&bench.store, &path).unwrap();

    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
}

#[test]
fn an_import_works_in_memory() {
    let (_out, path) = copy();
    let store = SharedStore::open(StoreLocation::Memory, options()).unwrap();

    let row = import(&store, &path).unwrap().row;

    assert_is_copy(&store, row.number);
    let generation = store.open_generation(row.number);
    save(&store, row.number, generation, "after").unwrap();
    assert_eq!(stored(&store, row.number).unwrap(), "after");
    let again = import(&store, &path).unwrap();
    assert!(!again.created);
}

#[test]
fn of_an_import_into_memory_that_fails_nothing_is_open() {
    let (_out, path) = copy();
    let faults = Faults::default();
    let mut options = options();
    options.faults = faults.clone();
    let store = SharedStore::open(StoreLocation::Memory, options).unwrap();
    faults.pass_commits(1);
    faults.fail_commits(1, CommitFault::Full);

    let failed = import(&store, &path).unwrap_err();

    assert!(matches!(failed, StoreError::Full { .. }), "{failed}");
    assert_eq!(store.file_stats().open, 0);
    assert_is_copy(&store, import(&store, &path).unwrap().row.number);
}

#[test]
fn an_import_that_fails_at_any_step_but_the_last_leaves_nothing() {
    let (_out, path) = copy();
    for (name, step) in &STEPS[..4] {
        let bench = Files::new(1);
        bench.faults.fail_import(*step);

        let failed = import(&bench.store, &path).unwrap_err();

        assert!(matches!(failed, StoreError::Io { .. }), "failed at {name}: {failed}");
        assert!(actor_files(&bench.path).is_empty(), "failed at {name}");
        let row = import(&bench.store, &path).unwrap().row;
        assert_is_copy(&bench.store, row.number);
    }
}

#[test]
fn an_import_whose_last_commit_is_in_doubt_has_happened_if_the_directory_says_so() {
    for kept in [true, false] {
        let (_out, path) = copy();
        let faults = Faults::default();
        let bench = Files::with_faults(1, faults.clone());
        // The number is reserved first.
        faults.pass_commits(1);
        faults.fail_commits(1, CommitFault::SyncFailed { kept });

        let result = import(&bench.store, &path);

        let found = wait(bench.store.find_by_id(id(FORK))).unwrap();
        assert_eq!(found.is_some(), kept);
        assert_eq!(actor_files(&bench.path).is_empty(), !kept);
        match result {
            Ok(made) => assert_eq!(Some(made.row), found),
            Err(error) => assert!(!kept, "{error}"),
        }
        if let Some(row) = found {
            assert_is_copy(&bench.store, row.number);
        }
    }
}

#[test]
fn an_import_into_a_full_disk_fails_and_leaves_nothing() {
    let (_out, path) = copy();
    let faults = Faults::default();
    let bench = Files::with_faults(1, faults.clone());
    faults.pass_commits(1);
    faults.fail_commits(1, CommitFault::Full);

    let failed = import(&bench.store, &path).unwrap_err();

    assert!(matches!(failed, StoreError::Full { .. }), "{failed}");
    assert!(actor_files(&bench.path).is_empty());
    import(&bench.store, &path).unwrap();
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn imports_and_dies_at_a_step() {
    let var = |name: &str| std::env::var(name).unwrap();
    let wanted = var(CHILD_STEP);
    let (_, step) = STEPS.into_iter().find(|(name, _)| *name == wanted).unwrap();
    let files = Files::open_at(var(CHILD_FOLDER).into(), 1, limits());
    files.faults.crash_in_import(step);
    drop(import(&files.store, Path::new(&var(CHILD_SOURCE))));
}

#[test]
fn an_import_that_died_has_happened_or_not_and_leaves_nothing_behind() {
    let (_out, path) = copy();
    for (name, step) in STEPS {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "imports_and_dies_at_a_step", "--ignored"])
            .env(CHILD_FOLDER, dir.path())
            .env(CHILD_SOURCE, &path)
            .env(CHILD_STEP, name)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "it died at {name}");

        let store = open(dir.path());

        let happened = step == ImportStep::Entered;
        let found = wait(store.find_by_id(id(FORK))).unwrap();
        assert_eq!(found.is_some(), happened, "died at {name}");
        assert_eq!(!actor_files(dir.path()).is_empty(), happened, "died at {name}");
        let row = import(&store, &path).unwrap().row;
        assert_is_copy(&store, row.number);
    }
}
