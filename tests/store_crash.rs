//! What a killed process leaves: everything that it acknowledged, nothing by halves.

#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use greenroom::ids::Generation;
use greenroom::store::{ActorStoreRef, RowOp, SharedStore, WriteBatch};
use support::*;

const CHILD_FOLDER: &str = "GREENROOM_TEST_FOLDER";
const ACTORS: u64 = 12;
const ROUNDS: u64 = 10;

fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::piped());
    command
}

fn child_store() -> Arc<SharedStore> {
    open(Path::new(&std::env::var(CHILD_FOLDER).unwrap()))
}

/// Saves one number after the other, for ever, and prints each once it is
/// acknowledged. State and alarm of a batch are the same number; every eighth
/// number is stored as a state of several pages.
fn count(actor: ActorStoreRef, n: u64, generation: Generation, number: u64) {
    let mut text = number.to_string();
    if number.is_multiple_of(8) {
        text.push_str(&" ".repeat(20_000));
    }
    let batch = WriteBatch {
        generation,
        ops: vec![RowOp::PutState(Bytes::from(text))],
        alarm: Some(Some(i64::try_from(number).unwrap())),
        fails_generation: false,
    };
    let next = Arc::clone(&actor);
    let done = Box::new(move |result: Result<(), _>| {
        result.unwrap();
        // One write call, so that a kill cannot leave half a line.
        std::io::stdout().write_all(format!("ack {n} {number}\n").as_bytes()).unwrap();
        count(next, n, generation, number + 1);
    });
    actor.commit(batch, done);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn counts_until_it_is_killed() {
    let store = child_store();
    println!();
    for n in 0..ACTORS {
        let row = wait(store.create(new_actor(n, &[&n.to_string()]))).unwrap().row;
        let actor = store.actor(row.number);
        let state = wait(actor.load()).unwrap().state;
        let last = state.map_or(0, |state| number_in(&state));
        count(actor, n, store.open_generation(row.number), last + 1);
    }
    loop {
        std::thread::park();
    }
}

fn number_in(state: &Bytes) -> u64 {
    std::str::from_utf8(state).unwrap().trim_end().parse().unwrap()
}

/// Reads acknowledgements until there are `enough` and kills; what was printed
/// before the kill counts too.
fn acknowledged(mut child: Child, enough: u64) -> HashMap<u64, u64> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = HashMap::new();
    let mut seen = 0;
    while let Some(Ok(line)) = lines.next() {
        let mut words = line.split(' ');
        let (Some("ack"), Some(n), Some(number)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        last.insert(n.parse().unwrap(), number.parse().unwrap());
        seen += 1;
        if seen == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= enough, "the child was killed, it did not end by itself");
    last
}

#[test]
fn nothing_acknowledged_is_missing_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged_before = HashMap::new();

    for round in 0..ROUNDS {
        let child = child("counts_until_it_is_killed", dir.path()).spawn().unwrap();
        let enough = 1 + round * round * 37;
        acknowledged_before.extend(acknowledged(child, enough));

        let store = open(dir.path());
        let alarms: HashMap<_, _> =
            wait(store.earliest_alarms(u32::MAX)).unwrap().into_iter().collect();
        for (&n, &number) in &acknowledged_before {
            let row = wait(store.find_by_id(id(n))).unwrap().expect("it was acknowledged");
            let found = stored(&store, row.number).map_or(0, |state| number_in(&state));
            assert!(found >= number, "round {round}: {number} was acknowledged, {found} is stored");
            let alarm = alarms.get(&row.number).copied();
            assert_eq!(alarm, i64::try_from(found).ok(), "a batch is there whole");
        }
        wait(store.close());
        let sqlite = rusqlite::Connection::open(dir.path().join("actors.db")).unwrap();
        let sound: String =
            sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
}

#[cfg(feature = "faults")]
mod at_a_point {
    use greenroom::store::StoreLocation;
    use greenroom::store::faults::{CrashPoint, Faults};

    use super::*;

    const CHILD_POINT: &str = "GREENROOM_TEST_CRASH_POINT";
    const POINTS: [(&str, CrashPoint); 3] = [
        ("applied", CrashPoint::Applied),
        ("committed", CrashPoint::Committed),
        ("answered", CrashPoint::Answered),
    ];

    #[test]
    #[ignore = "another test runs it in a process of its own"]
    fn commits_a_group_and_dies_at_a_point() {
        let wanted = std::env::var(CHILD_POINT).unwrap();
        let (_, point) = POINTS.into_iter().find(|(name, _)| *name == wanted).unwrap();
        let folder = std::env::var(CHILD_FOLDER).unwrap();
        let faults = Faults::default();
        let mut options = options();
        options.faults = faults.clone();
        let store = SharedStore::open(StoreLocation::Folder(folder.into()), options).unwrap();
        let actors: Vec<_> = (0..3)
            .map(|n| {
                let number = make(&store, n).number;
                let generation = store.open_generation(number);
                save(&store, number, generation, "before").unwrap();
                (number, generation)
            })
            .collect();

        faults.crash_at(point);
        let held = store.hold_writer();
        for (number, generation) in actors {
            let done = Box::new(|result: Result<(), _>| {
                result.unwrap();
                std::io::stdout().write_all(b"\nack\n").unwrap();
            });
            store.actor(number).commit(state(generation, "after"), done);
        }
        drop(held);
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_group_is_there_whole_or_not_at_all_and_whole_if_it_was_answered() {
        for ((name, _), (stored_state, acknowledged)) in
            POINTS.into_iter().zip([("before", 0), ("after", 0), ("after", 3)])
        {
            let dir = tempfile::tempdir().unwrap();
            let output = child("at_a_point::commits_a_group_and_dies_at_a_point", dir.path())
                .env(CHILD_POINT, name)
                .stderr(Stdio::null())
                .output()
                .unwrap();

            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed.lines().filter(|&line| line == "ack").count(), acknowledged);
            assert!(!output.status.success(), "it died at {name}");
            let store = open(dir.path());
            for n in 0..3 {
                let row = wait(store.find_by_id(id(n))).unwrap().unwrap();
                assert_eq!(stored(&store, row.number).unwrap(), stored_state, "died at {name}");
            }
        }
    }
}
