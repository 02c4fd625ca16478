//! What a killed process leaves of actors that have their own file, and of those that
//! were just getting one.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use files::*;
use greenroom::store::{ActorStoreRef, FileStep, Place, PromotionStep, StoreError, WriteBatch};
use support::*;

const CHILD_FOLDER: &str = "GREENROOM_TEST_FOLDER";
const CHILD_STEP: &str = "GREENROOM_TEST_STEP";
const ACTORS: u64 = 6;
const ROUNDS: u64 = 8;

fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn child_files(actors: u64) -> Files {
    let folder = std::env::var(CHILD_FOLDER).unwrap();
    Files::open_at(folder.into(), actors, limits())
}

fn say(line: &str) {
    // One write call, so that a kill cannot leave half a line.
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// Saves one number after the other, for ever, and prints each once it is acknowledged.
/// State and alarm of a batch are the same number.
fn count(files: &Arc<Files>, n: u64, number: u64) {
    let actor: ActorStoreRef = files.actor(usize::try_from(n).unwrap());
    let generation = files.actors[usize::try_from(n).unwrap()].1;
    let mut text = number.to_string();
    if number.is_multiple_of(8) {
        text.push_str(&" ".repeat(20_000));
    }
    let batch =
        WriteBatch { alarm: Some(Some(i64::try_from(number).unwrap())), ..state(generation, text) };
    let files = Arc::clone(files);
    let done = Box::new(move |result: Result<(), StoreError>| {
        result.unwrap();
        say(&format!("ack {n} {number}"));
        count(&files, n, number + 1);
    });
    actor.commit(batch, done);
}

fn number_in(state: Option<Bytes>) -> u64 {
    state.map_or(0, |state| std::str::from_utf8(&state).unwrap().trim_end().parse().unwrap())
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn counts_and_promotes_until_it_is_killed() {
    let files = Arc::new(child_files(ACTORS));
    for n in 0..ACTORS {
        let last = number_in(files.state(usize::try_from(n).unwrap()));
        count(&files, n, last + 1);
    }
    for n in 0..usize::try_from(ACTORS).unwrap() {
        let place = files.place(n);
        if place == Place::Shared {
            files.promote(n).unwrap();
            break;
        }
    }
    // Turns of the first one, in between.
    let mut rows = 0;
    loop {
        if files.place(0) == Place::Shared {
            std::thread::park();
            continue;
        }
        let turn = files.turn(0);
        turn.begin().unwrap();
        turn.execute("CREATE TABLE IF NOT EXISTS t (x)").unwrap();
        rows = rows.max(turn.number("SELECT count(*) FROM t").unwrap());
        turn.execute("INSERT INTO t VALUES (1)").unwrap();
        rows += 1;
        end_turn(turn, files.batch(0, Vec::new())).wait().unwrap();
        say(&format!("row {rows} 0"));
    }
}

/// Reads acknowledgements until there are `enough` and kills; what was printed before
/// the kill counts too. Returns the last number of each actor and the rows.
fn acknowledged(mut child: Child, enough: u64) -> (HashMap<usize, u64>, i64) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut last, mut rows, mut seen) = (HashMap::new(), 0, 0);
    while let Some(Ok(line)) = lines.next() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["ack", n, number] => {
                last.insert(n.parse().unwrap(), number.parse().unwrap());
            }
            ["row", count, _] => rows = count.parse().unwrap(),
            _ => continue,
        }
        seen += 1;
        if seen == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= enough, "the child was killed, it did not end by itself");
    (last, rows)
}

#[test]
fn nothing_acknowledged_is_missing_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (mut acknowledged_before, mut rows_before) = (HashMap::new(), 0);

    for round in 0..ROUNDS {
        let child = child("counts_and_promotes_until_it_is_killed", dir.path()).spawn().unwrap();
        let (acks, rows) = acknowledged(child, 20 + round * round * 61);
        acknowledged_before.extend(acks);
        rows_before = rows.max(rows_before);

        let files = Files::open_at(dir.path().to_owned(), ACTORS, limits());
        wait(files.store.settle_alarms()).unwrap();
        for (&n, &number) in &acknowledged_before {
            let found = number_in(files.state(n));
            assert!(found >= number, "round {round}: {number} was acknowledged, {found} is stored");
            assert_eq!(files.alarm(n), i64::try_from(found).ok(), "a batch is there whole");
        }
        if files.place(0) != Place::Shared {
            let rows = files.turn(0).number("SELECT count(*) FROM t").unwrap_or(0);
            assert!(rows >= rows_before, "{rows_before} rows were acknowledged, {rows} are stored");
        }
        wait(files.store.close());
        // Killed early, there is no folder yet.
        for entry in std::fs::read_dir(dir.path().join("actors")).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "db") {
                let sqlite = rusqlite::Connection::open(path).unwrap();
                let sound: String =
                    sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
                assert_eq!(sound, "ok");
            }
        }
    }
}

const PROMOTION: [(&str, PromotionStep); 6] = [
    ("drained", PromotionStep::Drained),
    ("written", PromotionStep::Written),
    ("created", PromotionStep::Created),
    ("copied", PromotionStep::Copied),
    ("synced", PromotionStep::Synced),
    ("switched", PromotionStep::Switched),
];

#[test]
#[ignore = "another test runs it in a process of its own"]
fn promotes_and_dies_at_a_step() {
    let wanted = std::env::var(CHILD_STEP).unwrap();
    let (_, step) = PROMOTION.into_iter().find(|(name, _)| *name == wanted).unwrap();
    let files = child_files(2);
    files.save(0, "before").unwrap();
    files.put(0, "k", "v").unwrap();
    files.arm(0, Some(7)).unwrap();
    files.faults.crash_in_promotion(step);
    files.promote(0).unwrap();
    std::thread::park();
}

#[test]
fn a_promotion_that_died_has_happened_or_not_and_leaves_nothing_behind() {
    for (name, step) in PROMOTION {
        let dir = tempfile::tempdir().unwrap();
        let status = child("promotes_and_dies_at_a_step", dir.path())
            .env(CHILD_STEP, name)
            .status()
            .unwrap();
        assert!(!status.success(), "it died at {name}");

        let files = Files::open(dir, 2, limits());

        let moved = step == PromotionStep::Switched;
        let place = if moved { Place::File { n: 1 } } else { Place::Shared };
        assert_eq!(files.place(0), place, "died at {name}");
        assert_eq!(files.files_of(0).is_empty(), !moved, "died at {name}");
        assert_eq!(files.state(0).unwrap(), "before");
        assert_eq!(files.get(0, "k").unwrap(), "v");
        assert_eq!(files.alarm(0), Some(7));
        files.promote(0).unwrap();
        files.save(0, "after").unwrap();
        let files = files.reopen();
        assert_eq!(files.state(0).unwrap(), "after");
        assert_eq!(files.get(0, "k").unwrap(), "v");
    }
}

const COMMIT: [(&str, FileStep); 3] = [
    ("applied", FileStep::Applied),
    ("committed", FileStep::Committed),
    ("synced", FileStep::Synced),
];

#[test]
#[ignore = "another test runs it in a process of its own"]
fn commits_a_turn_and_dies_at_a_step() {
    let wanted = std::env::var(CHILD_STEP).unwrap();
    let (_, step) = COMMIT.into_iter().find(|(name, _)| *name == wanted).unwrap();
    let files = child_files(1);
    files.promote(0).unwrap();
    let turn = files.turn(0);
    turn.begin().unwrap();
    turn.execute("CREATE TABLE t (x)").unwrap();
    files.commit_turn(0, turn, "before").wait().unwrap();
    files.faults.crash_at(step);
    let turn = files.turn(0);
    turn.begin().unwrap();
    turn.execute("INSERT INTO t VALUES (1)").unwrap();
    files.commit_turn(0, turn, "after").wait().unwrap();
    say("ack");
}

#[test]
fn a_turn_that_died_is_there_whole_or_not_at_all() {
    for (name, step) in COMMIT {
        let dir = tempfile::tempdir().unwrap();
        let output = child("commits_a_turn_and_dies_at_a_step", dir.path())
            .env(CHILD_STEP, name)
            .output()
            .unwrap();
        assert!(!output.status.success(), "it died at {name}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("ack"));

        let files = Files::open(dir, 1, limits());

        let (state, rows) = if step == FileStep::Applied { ("before", 0) } else { ("after", 1) };
        assert_eq!(files.state(0).unwrap(), state, "died at {name}");
        assert_eq!(files.turn(0).number("SELECT count(*) FROM t"), Ok(rows));
    }
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn changes_alarms_and_dies() {
    let files = child_files(3);
    for n in 0..3 {
        files.arm(n, Some(100)).unwrap();
    }
    files.promote(0).unwrap();
    files.promote(1).unwrap();
    files.arm(0, Some(50)).unwrap();
    files.arm(1, None).unwrap();
    std::process::abort();
}

#[test]
fn a_start_reads_the_alarms_of_actors_that_were_awake_in_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let status = child("changes_alarms_and_dies", dir.path()).status().unwrap();
    assert!(!status.success());

    let files = Files::open(dir, 3, limits());
    assert_eq!([0, 1, 2].map(|n| files.alarm(n)), [Some(100); 3]);

    assert_eq!(wait(files.store.settle_alarms()), Ok(2));
    assert_eq!([0, 1, 2].map(|n| files.alarm(n)), [Some(50), None, Some(100)]);
    let files = files.reopen();
    assert_eq!(wait(files.store.settle_alarms()), Ok(0));
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn destroys_and_dies() {
    let files = child_files(1);
    files.promote(0).unwrap();
    // Whoever hears of the end dies before the file is deleted, or while it is.
    wait(files.store.destroy(files.actors[0].0)).unwrap();
    std::process::abort();
}

#[test]
fn a_start_finishes_an_end_that_a_crash_interrupted() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let status = child("destroys_and_dies", dir.path()).status().unwrap();
        assert!(!status.success());

        let store = open(dir.path());

        assert_eq!(wait(store.find_by_id(id(0))), Ok(None));
        assert_eq!(std::fs::read_dir(dir.path().join("actors")).unwrap().count(), 0);
    }
}
