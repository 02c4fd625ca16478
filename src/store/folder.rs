//! The folder of a store, and the lock that gives it one owner.
//!
//! # Invariants
//!
//! 1. The lock is taken before any database file is looked at and outlives the
//!    last connection.
//! 2. The lock file is never deleted and never replaced: two owners would then
//!    hold two different files.
//! 3. No database file is opened here. POSIX locks belong to the process, and
//!    closing any descriptor of such a file would drop those of SQLite.
//!
//! Local disks only: a network file system may not know the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::StoreError;

const LOCK_FILE: &str = "lock";
pub(super) const DATABASE_FILE: &str = "actors.db";
pub(super) const ACTORS_FOLDER: &str = "actors";

/// What the lock file says of its holder. For messages only: the lock is what counts.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    pid: u32,
    started_at_ms: i64,
    host: String,
}

/// A folder that this object alone may use. Dropping it frees the folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing would not do: a child process that is being started has a copy of
        // the descriptor until it becomes its own program, and keeps the lock.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, path = %self.path.display(), "could not unlock the folder");
        }
    }
}

impl Folder {
    /// Creates the folder if it is missing and takes its lock, or refuses at once.
    pub(super) fn acquire(path: &Path, started_at_ms: i64) -> Result<Self, StoreError> {
        create_durably(path).map_err(|error| unusable(path, &error))?;
        let lock_path = path.join(LOCK_FILE);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|error| unusable(&lock_path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(path, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(unusable(&lock_path, &error)),
        }
        let owner = Owner { pid: std::process::id(), started_at_ms, host: host_name() };
        sign(&mut lock, &owner).map_err(|error| unusable(&lock_path, &error))?;
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Where the shared database is.
    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE_FILE)
    }

    /// Refuses a log whose database is gone: SQLite would replay it into a new one.
    pub(super) fn refuse_orphaned_log(&self) -> Result<(), StoreError> {
        let log = self.path.join(format!("{DATABASE_FILE}-wal"));
        let has_log = fs::metadata(&log).is_ok_and(|log| log.len() > 0);
        if has_log && !self.database().exists() {
            return Err(StoreError::Corrupt {
                path: log.display().to_string(),
                reason: format!("the database {DATABASE_FILE} that it belongs to is missing"),
            });
        }
        Ok(())
    }

    /// Where the files of actors are.
    pub(super) fn actors(&self) -> PathBuf {
        self.path.join(ACTORS_FOLDER)
    }

    /// Makes the names of the files in the folder durable.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        sync_directory(&self.path).map_err(|error| unusable(&self.path, &error))
    }
}

fn sign(lock: &mut File, owner: &Owner) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(owner)?;
    text.push(b'\n');
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(&text)
}

fn locked(path: &Path, lock: &mut File) -> StoreError {
    // The holder may be writing this very moment, or the platform may refuse the
    // read: then it has no name.
    let mut text = String::new();
    let owner: Option<Owner> =
        lock.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
    let (name, pid) = match owner {
        Some(Owner { pid, host, .. }) if pid == std::process::id() => {
            (format!("this process {pid} on {host}"), Some(pid))
        }
        Some(Owner { pid, host, .. }) => (format!("process {pid} on {host}"), Some(pid)),
        None => ("another process".to_owned(), None),
    };
    StoreError::Locked { path: path.display().to_string(), owner: name, pid }
}

pub(super) fn unusable(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), reason: error.to_string() }
}

/// Creates `path` and its missing parents; each new name is durable on return.
pub(super) fn create_durably(path: &Path) -> std::io::Result<()> {
    let mut missing = Vec::new();
    let mut at = Some(path);
    while let Some(folder) = at {
        if folder.as_os_str().is_empty() || folder.exists() {
            break;
        }
        missing.push(folder);
        at = folder.parent();
    }
    fs::create_dir_all(path)?;
    for folder in missing {
        match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent)?,
            _ => sync_directory(Path::new("."))?,
        }
    }
    Ok(())
}

/// The folder that is missing for a file of this name.
pub(super) fn missing_parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
}

/// Whether a path is one that the storage in `folder` has for itself, existing or not.
pub(super) fn is_reserved(folder: &Path, path: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let Ok(path) = std::path::absolute(path) else { return false };
    // What of it exists may be reached by links.
    let real = path.ancestors().find_map(|at| Some((at, at.canonicalize().ok()?)));
    let Some((at, real)) = real else { return false };
    let path = match path.strip_prefix(at) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        _ => real,
    };
    let Ok(within) = path.strip_prefix(&folder) else { return false };
    let first = within.components().next().map(|first| first.as_os_str().to_string_lossy());
    match first {
        None => true,
        Some(first) => {
            first == ACTORS_FOLDER || first == LOCK_FILE || first.starts_with(DATABASE_FILE)
        }
    }
}

#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Elsewhere a directory cannot be opened as a file; the file system orders its
/// names itself.
#[cfg(not(unix))]
pub(super) fn sync_directory(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

fn host_name() -> String {
    let from_kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_environment =
        || ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let name = from_kernel.or_else(from_environment).unwrap_or_default();
    match name.trim() {
        "" => "this machine".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_and_told_who_holds_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Folder::acquire(dir.path(), 0).unwrap();

        let refused = Folder::acquire(dir.path(), 0).unwrap_err();

        let pid = std::process::id();
        let StoreError::Locked { owner, pid: named, .. } = refused else { panic!("{refused}") };
        assert_eq!(named, Some(pid));
        assert!(owner.contains(&pid.to_string()), "{owner}");
    }

    #[test]
    fn a_dropped_folder_is_free_and_its_lock_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        drop(Folder::acquire(dir.path(), 0).unwrap());

        assert!(dir.path().join("lock").exists());
        Folder::acquire(dir.path(), 0).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_dropped_folder_is_free_even_while_child_processes_are_started() {
        let dir = tempfile::tempdir().unwrap();
        let spawner = std::thread::spawn(|| {
            for _ in 0..200 {
                std::process::Command::new("true").status().unwrap();
            }
        });

        while !spawner.is_finished() {
            drop(Folder::acquire(dir.path(), 0).unwrap());
        }

        spawner.join().unwrap();
    }

    #[test]
    fn a_holder_that_left_no_readable_name_is_still_respected() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Folder::acquire(dir.path(), 0).unwrap();
        fs::write(dir.path().join("lock"), "{\"pid\":").unwrap();

        let refused = Folder::acquire(dir.path(), 0).unwrap_err();

        assert!(matches!(refused, StoreError::Locked { pid: None, .. }), "{refused}");
    }

    #[test]
    fn only_what_the_storage_uses_is_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");
        fs::create_dir(&folder).unwrap();

        for own in ["", "lock", "actors.db", "actors.db-wal", "actors.db.tmp", "actors/x.db"] {
            assert!(is_reserved(&folder, &folder.join(own)), "{own}");
            assert!(is_reserved(&folder, &folder.join("../data").join(own)), "{own}");
        }
        for other in ["copy.db", "backup/actors.db", "../actors.db", "../data2/lock"] {
            assert!(!is_reserved(&folder, &folder.join(other)), "{other}");
        }
    }

    #[test]
    fn missing_parents_are_created() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");

        Folder::acquire(&deep, 0).unwrap();

        assert!(deep.join("lock").is_file());
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "x").unwrap();

        let refused = Folder::acquire(&path, 0).unwrap_err();

        assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
        assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
    }
}
