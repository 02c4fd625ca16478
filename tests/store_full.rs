//! A disk that is really full.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "support/store.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use greenroom::store::StoreError;
use rusqlite::Connection;
use support::*;

/// A file system of a few megabytes in memory.
struct SmallDisk {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one; `None`, with the reason printed, where that is not allowed.
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        std::fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "greenroom-test"])
            .arg(&path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { _dir: dir, path }),
            Ok(output) => {
                println!("skipped: mount: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: mount: {error}");
                None
            }
        }
    }

    fn fill_up_to(&self, bytes: usize) -> PathBuf {
        let filler = self.path.join("filler");
        std::fs::write(&filler, vec![0; bytes]).unwrap();
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.path).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} stays mounted", self.path);
    }
}

/// What a fresh connection finds in a copy made by another process.
fn states_in_copy(folder: &Path) -> Vec<Vec<u8>> {
    let copy = tempfile::tempdir().unwrap();
    for file in ["actors.db", "actors.db-wal"] {
        let copied = Command::new("cp").arg(folder.join(file)).arg(copy.path()).status();
        assert!(copied.unwrap().success());
    }
    let sqlite = Connection::open(copy.path().join("actors.db")).unwrap();
    let sound: String = sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let mut query = sqlite.prepare("SELECT state FROM _gr_state ORDER BY num").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn on_a_full_disk_what_was_acknowledged_stays_and_small_saves_pass() {
    let Some(disk) = SmallDisk::mount() else { return };
    let store = open_with(&disk.path.join("data"), keeping_large_actors()).unwrap();
    let numbers: Vec<_> = (0..4).map(|n| make(&store, n).number).collect();
    let generations: Vec<_> = numbers.iter().map(|&n| store.open_generation(n)).collect();
    let save = |n: usize, bytes: Vec<u8>| save(&store, numbers[n], generations[n], bytes);
    for n in 0..4 {
        save(n, vec![1; 100]).unwrap();
    }

    let sent: Vec<_> = [5 << 20, 200, 200, 200]
        .into_iter()
        .enumerate()
        .map(|(n, len)| send(&store, numbers[n], state(generations[n], vec![2; len])))
        .collect();
    let answers: Vec<_> = sent.into_iter().map(Pending::wait).collect();

    assert!(matches!(answers[0], Err(StoreError::Full { .. })), "{answers:?}");
    assert_eq!(answers[1..], [Ok(()), Ok(()), Ok(())]);
    let expected = [vec![1; 100], vec![2; 200], vec![2; 200], vec![2; 200]];
    assert_eq!(states_in_copy(&disk.path.join("data")), expected);
    assert_eq!(stored(&store, numbers[0]), Some(Bytes::from(vec![1; 100])));
}

#[test]
fn a_store_goes_on_once_the_full_disk_has_room_again() {
    let Some(disk) = SmallDisk::mount() else { return };
    let store = open_with(&disk.path.join("data"), keeping_large_actors()).unwrap();
    let number = make(&store, 1).number;
    let generation = store.open_generation(number);
    let filler = disk.fill_up_to(3 << 20);

    // Larger states until one does not fit.
    let mut fitting = 0;
    let refused = loop {
        let len = fitting + 50_000;
        match save(&store, number, generation, vec![7; len]) {
            Ok(()) => fitting = len,
            Err(error) => break error,
        }
        assert!(fitting < 4 << 20, "the disk is never full");
    };

    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    assert_eq!(stored(&store, number).map(|state| state.len()).unwrap_or(0), fitting);
    assert_eq!(states_in_copy(&disk.path.join("data")).first().map_or(0, Vec::len), fitting);
    std::fs::remove_file(filler).unwrap();
    save(&store, number, generation, vec![8; 500_000]).unwrap();
    assert_eq!(stored(&store, number), Some(Bytes::from(vec![8; 500_000])));
    assert_eq!(store.stats().fail_stops, 0);
    wait(store.close());
    let store = open_with(&disk.path.join("data"), keeping_large_actors()).unwrap();
    assert_eq!(stored(&store, number), Some(Bytes::from(vec![8; 500_000])));
}
