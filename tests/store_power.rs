//! What a loss of power leaves: a prefix of each actor's commits, everything that was
//! acknowledged, and sound files; at any moment, and whatever part of what was not
//! synced the disk kept.

#![cfg(all(feature = "faults", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "power/disk.rs"]
mod disk;
#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use disk::{Did, Disk, Rest};
use files::*;
use greenroom::store::{FileLimits, Place, RowOp, StoreError, WriteBatch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use support::*;

const CHILD_FOLDER: &str = "GREENROOM_TEST_FOLDER";
const ACTORS: usize = 4;
/// Commits of each actor in one recording.
const COMMITS: i64 = 60;
/// Losses that are tried of each recording.
const LOSSES: usize = 160;
/// Actors that are made, moved and destroyed meanwhile have ids from here on.
const SHORT_LIVED: u64 = 100;

/// Few open files, so that they close and open all the time; short logs, so that they
/// begin anew.
fn narrow() -> FileLimits {
    FileLimits {
        open_files: 2,
        pool_threads: 2,
        sync_threads: 2,
        log_frames: 24,
        ..FileLimits::default()
    }
}

/// Many open files, as usual.
fn wide() -> FileLimits {
    FileLimits { log_frames: 40, ..limits() }
}

/// Says what is acknowledged, into a file that the recorder sees.
#[derive(Clone)]
struct Acks(Arc<Mutex<File>>);

impl Acks {
    fn say(&self, line: &str) {
        // One write, so that a loss cannot leave half a line.
        self.0.lock().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

#[test]
#[ignore = "another test runs it in a process of its own, under the recorder"]
fn works_while_it_is_recorded() {
    let folder = PathBuf::from(std::env::var(CHILD_FOLDER).unwrap());
    let limits = if std::env::var("GREENROOM_TEST_NARROW").is_ok() { narrow() } else { wide() };
    let acks = folder.join("acks");
    let acks = OpenOptions::new().create(true).append(true).open(acks).unwrap();
    let acks = Acks(Arc::new(Mutex::new(acks)));
    let files = Files::open_at(folder, ACTORS as u64, limits);
    let mut chance = StdRng::seed_from_u64(7);
    // The last one stays small.
    let promoted: Vec<i64> = (0..ACTORS - 1).map(|_| chance.random_range(0..8)).collect();
    for number in 1..=COMMITS {
        let mut waiting = Vec::new();
        for n in 0..ACTORS {
            if promoted.get(n) == Some(&number) {
                files.promote(n).unwrap();
            }
            waiting.push((n, commit(&files, n, number, &acks)));
        }
        // Some commits are waited for, so that not everything is always on its way.
        if number % 3 == 0 {
            waiting.into_iter().for_each(|(_, waiting)| waiting.wait().unwrap());
        }
        if number % 2 == 0 {
            live_shortly(&files, SHORT_LIVED + u64::try_from(number).unwrap(), &acks);
        }
        if number % 15 == 0 {
            wait(files.actor(0).rest()).unwrap();
        }
    }
    drop(files.close_here());
}

/// Commits a number: as state, key and alarm, and of an actor with a file each second
/// one as a row, too.
fn commit(files: &Files, n: usize, number: i64, acks: &Acks) -> Ending {
    let text = number.to_string();
    let padding = if number % 16 == 5 { 300_000 } else { 10 };
    let ops = vec![
        RowOp::PutState(Bytes::from(format!("{text}{}", " ".repeat(padding)))),
        RowOp::PutKv { key: Bytes::from("last"), value: Bytes::from(text) },
    ];
    let batch = WriteBatch { alarm: Some(Some(number)), ..files.batch(n, ops) };
    let (ending, told) = Ending::new();
    let acks = acks.clone();
    let done = Box::new(move |result: Result<(), StoreError>| {
        if result.is_ok() {
            acks.say(&format!("ack {n} {number}"));
        }
        told(result);
    });
    if number % 2 == 0 && files.place(n) != Place::Shared {
        let turn = files.turn(n);
        turn.begin().unwrap();
        turn.execute("CREATE TABLE IF NOT EXISTS t (x INTEGER PRIMARY KEY)").unwrap();
        turn.execute(&format!("INSERT INTO t VALUES ({number})")).unwrap();
        turn.commit(batch, done);
    } else {
        files.actor(n).commit(batch, done);
    }
    ending
}

/// An actor that gets a file and is destroyed.
fn live_shortly(files: &Files, n: u64, acks: &Acks) {
    let number = make(&files.store, n).number;
    let generation = files.store.open_generation(number);
    save(&files.store, number, generation, "short").unwrap();
    acks.say(&format!("kept {n} 0"));
    wait(files.store.promote(number, generation)).unwrap();
    wait(files.store.destroy(number)).unwrap();
    acks.say(&format!("gone {n} 0"));
}

/// Builds the recorder, `None` where there is no C compiler.
fn recorder(to: &Path) -> Option<PathBuf> {
    let library = to.join("recorder.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power/recorder.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .args(["-ldl", "-pthread"])
        .status();
    match built {
        Ok(status) => {
            assert!(status.success(), "the recorder does not compile");
            Some(library)
        }
        Err(error) => {
            eprintln!("skipped: no C compiler ({error})");
            None
        }
    }
}

/// A disk that needs no waiting for: what is rebuilt need not outlive this process.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn record(narrow: bool) -> Option<(PathBuf, Vec<Did>, tempfile::TempDir)> {
    let dir = tempfile::tempdir().unwrap();
    let library = recorder(dir.path())?;
    let (folder, log) = (dir.path().join("data"), dir.path().join("log"));
    fs::create_dir(&folder).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "works_while_it_is_recorded", "--ignored", "--nocapture"])
        .env("LD_PRELOAD", library)
        .env("GREENROOM_RECORD_FOLDER", &folder)
        .env("GREENROOM_RECORD_LOG", &log)
        .env(CHILD_FOLDER, &folder);
    if narrow {
        child.env("GREENROOM_TEST_NARROW", "1");
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some((folder, disk::read(&log), dir))
}

/// What was acknowledged at one moment.
#[derive(Default)]
struct Acknowledged {
    numbers: HashMap<usize, i64>,
    kept: Vec<u64>,
    gone: Vec<u64>,
}

fn acknowledged(written: &[u8]) -> Acknowledged {
    let mut all = Acknowledged::default();
    for line in std::str::from_utf8(written).unwrap().lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["ack", n, number] => {
                let (n, number): (usize, i64) = (n.parse().unwrap(), number.parse().unwrap());
                let before = all.numbers.insert(n, number);
                assert!(before.is_none_or(|before| before < number), "in order");
            }
            ["kept", n, _] => all.kept.push(n.parse().unwrap()),
            ["gone", n, _] => all.gone.push(n.parse().unwrap()),
            _ => panic!("{line:?}"),
        }
    }
    all
}

fn check(folder: &Path, acknowledged: &Acknowledged, what: &str) {
    let before = wait_for_ids(folder);
    let files = Files::open_at(folder.to_owned(), ACTORS as u64, wide());
    wait(files.store.settle_alarms()).unwrap();
    for n in 0..ACTORS {
        let record = files.load(n);
        let number = record.state.map_or(0, |state| {
            std::str::from_utf8(&state).unwrap().trim_end().parse::<i64>().unwrap()
        });
        let wanted = acknowledged.numbers.get(&n).copied().unwrap_or(0);
        assert!(
            number >= wanted,
            "{what}: actor {n}: {wanted} was acknowledged, {number} is there"
        );
        assert!(wanted == 0 || before.contains(&(n as u64)), "{what}: actor {n} is gone");
        let stored = (number > 0).then(|| Bytes::from(number.to_string()));
        assert_eq!(files.get(n, "last"), stored, "{what}: actor {n}: half a commit");
        assert_eq!(files.alarm(n), (number > 0).then_some(number), "{what}: actor {n}");
        if files.place(n) != Place::Shared {
            let turn = files.turn(n);
            let bad = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'";
            assert_eq!(turn.number(bad), Ok(0), "{what}: actor {n}: its file is not sound");
            check_rows(&turn, number, &format!("{what}: actor {n}"));
        }
    }
    for &n in &acknowledged.kept {
        // Wherever it is: a switch that outran its file would have lost it.
        if let Some(row) = wait(files.store.find_by_id(id(n))).unwrap() {
            let found = wait(files.store.actor(row.number).load());
            let state = found.unwrap_or_else(|error| panic!("{what}: actor {n}: {error}")).state;
            assert_eq!(state, Some(Bytes::from("short")), "{what}: actor {n}");
        } else {
            let last = acknowledged.kept.last() == Some(&n);
            assert!(last || acknowledged.gone.contains(&n), "{what}: actor {n} is gone");
        }
    }
    for &n in &acknowledged.gone {
        assert_eq!(wait(files.store.find_by_id(id(n))), Ok(None), "{what}: {n} is back");
        let actors = folder.join("actors");
        let is_left = fs::read_dir(actors).into_iter().flatten().any(|entry| {
            entry.unwrap().file_name().to_str().unwrap().starts_with(&id(n).to_string())
        });
        assert!(!is_left, "{what}: a file of {n} is left");
    }
    // Life goes on.
    for n in 0..ACTORS {
        files.save(n, "1000").unwrap();
    }
    wait(files.store.close());
    let sqlite = rusqlite::Connection::open(folder.join("actors.db")).unwrap();
    let sound: String = sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok", "{what}: the shared store is not sound");
}

/// The rows of turns are those of a prefix: every second number from the first one on.
fn check_rows(turn: &greenroom::store::Turn, number: i64, what: &str) {
    let Ok(count) = turn.number("SELECT count(*) FROM t") else { return };
    if count == 0 {
        return;
    }
    let first = turn.number("SELECT min(x) FROM t").unwrap();
    let last = turn.number("SELECT max(x) FROM t").unwrap();
    assert_eq!(last, number - number % 2, "{what}: rows and state differ");
    assert_eq!(count, (last - first) / 2 + 1, "{what}: a row is missing");
}

/// Which actors the rebuilt directory has, read before anything is made anew.
fn wait_for_ids(folder: &Path) -> Vec<u64> {
    let store = open(folder);
    let found = (0..ACTORS as u64).filter(|&n| wait(store.find_by_id(id(n))).unwrap().is_some());
    let found = found.collect();
    wait(store.close());
    found
}

fn lose_power_often(narrow: bool) {
    let Some((folder, did, _dir)) = record(narrow) else { return };
    let is_sync = |(at, did): (usize, &Did)| matches!(did, Did::Sync { .. }).then_some(at + 1);
    let syncs: Vec<usize> = did.iter().enumerate().filter_map(is_sync).collect();
    assert!(syncs.len() > 100, "the recorder saw {} syncs", syncs.len());
    let mut chance = StdRng::seed_from_u64(11);
    let mut moments = Vec::new();
    for loss in 0..LOSSES {
        // Half of them right behind a sync, where what it made possible is still fresh.
        moments.push(match loss % 2 {
            0 => chance.random_range(0..=did.len()),
            _ => (syncs[chance.random_range(0..syncs.len())] + loss % 3).min(did.len()),
        });
    }
    moments.sort_unstable();
    let mut disk = Disk::default();
    let mut done = 0;
    for (loss, moment) in moments.into_iter().enumerate() {
        did[done..moment].iter().for_each(|did| disk.step(did));
        done = moment;
        let rest = [Rest::Nothing, Rest::Everything, Rest::Any, Rest::Any][loss % 4];
        let rebuilt = scratch();
        disk.lose(&folder, rebuilt.path(), rest, &mut chance);
        let acks = acknowledged(&disk.written(&folder.join("acks")));
        check(
            rebuilt.path(),
            &acks,
            &format!("loss {loss} at {moment} of {} with {rest:?}", did.len()),
        );
    }
}

#[test]
fn no_loss_of_power_loses_a_commit_while_files_stay_open() {
    lose_power_often(false);
}

#[test]
fn no_loss_of_power_loses_a_commit_while_files_close_and_open() {
    lose_power_often(true);
}
