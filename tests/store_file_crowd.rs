//! Many actors with files under several threads at once: whatever they do in whatever
//! order, each sees what it committed, and nobody waits for ever.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/files.rs"]
mod files;
#[path = "support/store.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use files::*;
use greenroom::ids::Generation;
use greenroom::store::{
    ActorNumber, FileLimits, SharedStore, StoreLocation, StoreOptions, Turn, WriteBatch,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use support::*;

const THREADS: u64 = 3;
const ACTORS: u64 = 4;
const STEPS: usize = 150;

/// One actor of a thread, and what it must be.
struct Member {
    n: u64,
    number: ActorNumber,
    generation: Generation,
    state: Option<String>,
    alarm: Option<i64>,
    /// Rows of the author's table; `None` before there is one.
    rows: Option<i64>,
    has_file: bool,
    sent: Vec<Answer>,
}

enum Answer {
    Batch(Pending),
    Turn(Ending),
}

struct Thread {
    store: Arc<SharedStore>,
    chance: StdRng,
    out: tempfile::TempDir,
    members: Vec<Member>,
    next_id: u64,
    said: u64,
}

impl Thread {
    fn new(store: &Arc<SharedStore>, index: u64, seed: u64) -> Self {
        let mut thread = Self {
            store: Arc::clone(store),
            chance: StdRng::seed_from_u64(seed * 100 + index),
            out: tempfile::tempdir().unwrap(),
            members: Vec::new(),
            next_id: 1 + index * 1_000_000,
            said: 0,
        };
        for _ in 0..ACTORS {
            let member = thread.member();
            thread.members.push(member);
        }
        thread
    }

    fn member(&mut self) -> Member {
        let n = self.next_id;
        self.next_id += 1;
        let number = make(&self.store, n).number;
        let generation = self.store.open_generation(number);
        Member {
            n,
            number,
            generation,
            state: None,
            alarm: None,
            rows: None,
            has_file: false,
            sent: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Member> {
        for _ in 0..STEPS {
            let at = self.chance.random_range(0..self.members.len());
            let mut member = self.members.swap_remove(at);
            match self.chance.random_range(0..20) {
                0..6 => self.save(&mut member),
                6..11 => self.turn(&mut member),
                11..14 => self.check(&member),
                14 => self.promote(&mut member),
                15 => self.rest(&mut member),
                16 => member.generation = self.restart(&mut member),
                17 => self.export(&member),
                18 => {
                    member.settle();
                    assert!(wait(self.store.destroy(member.number)).unwrap());
                    member = self.member();
                }
                _ => member.settle(),
            }
            self.members.push(member);
        }
        self.members.iter_mut().for_each(Member::settle);
        self.members
    }

    fn batch(&mut self, member: &mut Member) -> WriteBatch {
        self.said += 1;
        let text = self.said.to_string();
        member.state = Some(text.clone());
        let mut batch = state(member.generation, text);
        if self.chance.random_bool(0.3) {
            member.alarm = self.chance.random_bool(0.7).then_some(self.said as i64);
            batch.alarm = Some(member.alarm);
        }
        batch
    }

    fn save(&mut self, member: &mut Member) {
        let batch = self.batch(member);
        member.sent.push(Answer::Batch(send(&self.store, member.number, batch)));
    }

    fn turn(&mut self, member: &mut Member) {
        if !member.has_file {
            return self.save(member);
        }
        let file = self.store.actor(member.number).file().expect("it has a file");
        let turn = file.turn(member.generation).unwrap();
        assert_eq!(rows(&turn), member.rows);
        if self.chance.random_bool(0.2) {
            // Given up.
            turn.begin().unwrap();
            turn.execute("CREATE TABLE other (x)").unwrap();
            return;
        }
        turn.begin().unwrap();
        turn.execute("CREATE TABLE IF NOT EXISTS t (x)").unwrap();
        turn.execute("INSERT INTO t VALUES (1)").unwrap();
        member.rows = Some(member.rows.unwrap_or(0) + 1);
        let batch = self.batch(member);
        member.sent.push(Answer::Turn(end_turn(turn, batch)));
    }

    fn check(&self, member: &Member) {
        let found = wait(self.store.actor(member.number).load()).unwrap();
        assert_eq!(found.state, member.state.clone().map(Bytes::from));
        assert_eq!(found.alarm, member.alarm);
    }

    fn promote(&self, member: &mut Member) {
        wait(self.store.promote(member.number, member.generation)).unwrap();
        member.has_file = true;
    }

    fn rest(&self, member: &mut Member) {
        member.settle();
        wait(self.store.actor(member.number).rest()).unwrap();
        assert_eq!(wait(self.store.alarm_of(member.number)).unwrap(), member.alarm);
    }

    fn restart(&self, member: &mut Member) -> Generation {
        // What is on its way belongs to the generation that ends.
        member.settle();
        self.store.open_generation(member.number)
    }

    fn export(&self, member: &Member) {
        let path = self.out.path().join("copy.db");
        wait(self.store.export(member.number, path.clone())).unwrap();
        let sqlite = rusqlite::Connection::open(&path).unwrap();
        let sound: String =
            sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        let found: Option<String> = sqlite
            .query_row("SELECT max(CAST(state AS TEXT)) FROM _rivet_actor_state", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(found, member.state);
    }
}

impl Member {
    fn settle(&mut self) {
        for answer in self.sent.drain(..) {
            match answer {
                Answer::Batch(answer) => answer.wait().unwrap(),
                Answer::Turn(answer) => answer.wait().unwrap(),
            }
        }
    }
}

fn rows(turn: &Turn) -> Option<i64> {
    turn.number("SELECT count(*) FROM t").ok()
}

fn open_narrow(path: &Path, limits: &FileLimits) -> Arc<SharedStore> {
    let options = StoreOptions { files: limits.clone(), ..options() };
    SharedStore::open(StoreLocation::Folder(path.to_owned()), options).unwrap()
}

fn crowd(seed: u64, limits: &FileLimits) {
    let dir = tempfile::tempdir().unwrap();
    let store = open_narrow(dir.path(), limits);
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let thread = Thread::new(&store, index, seed);
            std::thread::spawn(move || thread.run())
        })
        .collect();
    let members: Vec<_> =
        threads.into_iter().flat_map(|thread| thread.join().expect("its checks hold")).collect();
    wait(store.close());
    drop(store);

    let store = open_narrow(dir.path(), limits);
    wait(store.settle_alarms()).unwrap();
    for member in members {
        let row = wait(store.find_by_id(id(member.n))).unwrap().expect("it was not destroyed");
        let found = wait(store.actor(row.number).load()).unwrap();
        assert_eq!(found.state, member.state.map(Bytes::from));
        assert_eq!(wait(store.alarm_of(row.number)).unwrap(), member.alarm);
        if let Some(file) = store.actor(row.number).file() {
            let generation = store.open_generation(row.number);
            assert_eq!(rows(&file.turn(generation).unwrap()), member.rows);
        }
    }
}

#[test]
fn each_of_many_actors_finds_what_it_committed() {
    let narrow = FileLimits {
        open_files: 1,
        pool_threads: 1,
        sync_threads: 1,
        log_frames: 16,
        ..FileLimits::default()
    };
    let usual = FileLimits {
        open_files: 6,
        pool_threads: 3,
        sync_threads: 2,
        log_frames: 64,
        ..FileLimits::default()
    };
    for seed in 0..4 {
        crowd(seed, if seed % 2 == 0 { &narrow } else { &usual });
    }
}
