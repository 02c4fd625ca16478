//! A copy of everything that a store has, as a folder on which a store opens.
//!
//! # Invariants
//!
//! 1. The shared database comes first, as of one moment, and decides who is in the copy and
//!    where; the files follow, each as of one moment behind it. An actor that gets a file
//!    meanwhile is in the copy with its rows, one that ends meanwhile is taken out of it. An
//!    actor that has a file never loses it but by its end, so no file is missed.
//! 2. The database appears under its name last, when everything it names is durable: a
//!    folder in which a copy was begun and not finished has no store.
//! 3. A copy that failed leaves nothing in its folder.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::Database;
use super::copy::{self, Copied, PageCopy};
use super::folder::{ACTORS_FOLDER, DATABASE_FILE, create_durably, sync_directory};
use super::job::Reply;
use super::place::FileName;
use super::shared::Shared;
use super::target::{Existing, Target, fault};
use super::{ActorNumber, ActorRow, ListFilter, StoreError, directory, place};
use crate::ids::ActorKey;
use crate::time::Instant;

/// How many files are copied at a time: some threads of the pool stay free for actors.
const AT_ONCE: usize = 2;
/// How many rows of the copied directory are read at a time.
const SLICE: u32 = 1_000;
/// How often the log hears how far it is.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// How often the copy of the shared database begins anew when the store is reopened.
const ATTEMPTS: u32 = 3;

/// What a copy of a store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// How many actors.
    pub actors: u64,
    /// How many of them have a file of their own.
    pub files: u64,
    /// How large it is, in bytes.
    pub bytes: u64,
}

/// Makes a copy in `folder`, on this thread.
pub(super) fn make(shared: &Arc<Shared>, folder: &Path) -> Result<Backup, StoreError> {
    let folder = EmptyFolder::take(folder)?;
    let target = Target::new(folder.path.join(DATABASE_FILE), Existing::Refuse)?;
    let filled = fill(shared, &folder, &target);
    let made = target.end(filled);
    if made.is_err() {
        folder.clear();
    }
    made
}

fn fill(shared: &Arc<Shared>, folder: &EmptyFolder, target: &Target) -> Result<Backup, StoreError> {
    let progress = Progress { shared, reported_at: shared.files.clock().now() };
    let copied = copy_database(shared, target)?;
    let files =
        Copies { shared, folder, copied: &copied, target, running: VecDeque::new(), progress };
    let mut backup = files.make()?;
    let actors: u32 = copied
        .query_row("SELECT count(*) FROM directory", [], |row| row.get(0))
        .map_err(|error| target.fault(&error))?;
    backup.actors = actors.into();
    folder.sync()?;
    target.finish(copied)?;
    let path = folder.path.join(DATABASE_FILE);
    backup.bytes += fs::metadata(&path).map_err(|error| fault(&path, &error))?.len();
    tracing::info!(
        folder = %folder.path.display(),
        actors = backup.actors,
        files = backup.files,
        bytes = backup.bytes,
        "a backup was made"
    );
    Ok(backup)
}

/// Copies the shared database, by the writer, a few pages between two commits.
fn copy_database(shared: &Arc<Shared>, target: &Target) -> Result<Connection, StoreError> {
    for _ in 0..ATTEMPTS {
        target.clear()?;
        if let Some(copied) = try_copy_database(shared, target)? {
            return Ok(copied);
        }
    }
    Err(StoreError::Busy { path: shared.database.label() })
}

/// `None` when the store was reopened meanwhile.
fn try_copy_database(
    shared: &Arc<Shared>,
    target: &Target,
) -> Result<Option<Connection>, StoreError> {
    let (to, target) = (target.open()?, target.database());
    let copies = Arc::clone(shared);
    let copy = by_writer(shared, move |sqlite, database| {
        let copy = PageCopy::begin(sqlite, to).map_err(|error| database.fault(&error))?;
        copies.copies.lock().add(&copy);
        Ok(copy)
    })?;
    loop {
        let (own, target) = (Arc::clone(&copy), target.clone());
        let copied = by_writer(shared, move |_, database| match own.step() {
            Ok(Copied::Part) => Ok(None),
            Ok(Copied::Whole | Copied::Ended) => Ok(Some(own.take())),
            Err(error) => {
                drop(own.take());
                Err(copy::fault(&error, database, &target))
            }
        })?;
        if let Some(copied) = copied {
            return Ok(copied);
        }
    }
}

/// Has the writer do something with its connection, and waits for it.
fn by_writer<T: Send + 'static>(
    shared: &Arc<Shared>,
    run: impl FnOnce(&Connection, &Database) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (answer, answered) = mpsc::channel();
    let database = Arc::clone(&shared.database);
    shared.queue.push_read(Box::new(move |sqlite| {
        drop(answer.send(sqlite.and_then(|sqlite| run(sqlite, &database))));
    }));
    answered.recv().unwrap_or(Err(StoreError::Closed))
}

/// The files of the actors that the copied directory has.
struct Copies<'a> {
    shared: &'a Arc<Shared>,
    folder: &'a EmptyFolder,
    copied: &'a Connection,
    target: &'a Target,
    running: VecDeque<Running>,
    progress: Progress<'a>,
}

/// The copy of one file.
struct Running {
    number: ActorNumber,
    path: PathBuf,
    answer: mpsc::Receiver<Result<Option<i64>, StoreError>>,
}

impl Copies<'_> {
    fn make(mut self) -> Result<Backup, StoreError> {
        let mut backup = Backup::default();
        let mut result = self.begin_all(&mut backup);
        // Also after a failure: they write into the folder that is to be cleared.
        while let Some(running) = self.running.pop_front() {
            result = result.and(self.wait(running, &mut backup));
        }
        result.map(|()| backup)
    }

    fn begin_all(&mut self, backup: &mut Backup) -> Result<(), StoreError> {
        let database = self.target.database();
        let mut filter =
            ListFilter { name: None, key_prefix: ActorKey::default(), after: None, limit: SLICE };
        loop {
            let rows = directory::list(self.copied, &database, &filter)?;
            let Some(last) = rows.last() else { return Ok(()) };
            filter.after = Some(last.number);
            rows.iter().try_for_each(|row| self.begin(row, backup))?;
        }
    }

    /// Begins with the file of an actor, if it has one.
    fn begin(&mut self, row: &ActorRow, backup: &mut Backup) -> Result<(), StoreError> {
        let Some(name) = FileName::of(row) else { return Ok(()) };
        if self.running.len() >= AT_ONCE
            && let Some(first) = self.running.pop_front()
        {
            self.wait(first, backup)?;
        }
        let path = self.folder.actors()?.join(name.to_string());
        let target = Target::in_place(path.clone())?;
        let (tell, answer) = mpsc::channel();
        let done = Reply::new(Box::new(move |result| drop(tell.send(result))));
        let (files, number) = (Arc::clone(&self.shared.files), row.number);
        self.shared.files.note(row);
        self.shared.files.on_pool(move || files.export(number, target, done))?;
        self.running.push_back(Running { number, path, answer });
        Ok(())
    }

    fn wait(&mut self, running: Running, backup: &mut Backup) -> Result<(), StoreError> {
        let Running { number, path, answer } = running;
        let failed = |error: rusqlite::Error| self.target.fault(&error);
        match answer.recv().unwrap_or(Err(StoreError::Closed)) {
            Ok(alarm) => {
                backup.bytes += fs::metadata(&path).map_err(|error| fault(&path, &error))?.len();
                backup.files += 1;
                // What the directory said is of another moment than the file.
                place::settle_alarm(self.copied, number, alarm).map_err(failed)?;
            }
            // It ended: so it does in the copy.
            Err(_) if self.has_ended(number)? => {
                directory::destroy(self.copied, &self.target.database(), number)
                    .map_err(|error| error.into_store_error(&self.target.database()))?;
            }
            Err(error) => return Err(error),
        }
        self.progress.report(backup);
        Ok(())
    }

    fn has_ended(&self, number: ActorNumber) -> Result<bool, StoreError> {
        by_writer(self.shared, move |sqlite, database| {
            directory::exists(sqlite, number).map_err(|error| database.fault(&error))
        })
        .map(|is_there| !is_there)
    }
}

/// Tells the log how far it is.
struct Progress<'a> {
    shared: &'a Shared,
    reported_at: Instant,
}

impl Progress<'_> {
    fn report(&mut self, backup: &Backup) {
        let now = self.shared.files.clock().now();
        if now.since(self.reported_at) >= REPORT_EVERY {
            self.reported_at = now;
            tracing::info!(files = backup.files, bytes = backup.bytes, "a backup goes on");
        }
    }
}

/// A folder that a copy fills.
struct EmptyFolder {
    path: PathBuf,
    /// Whether it was made here.
    is_new: bool,
}

impl EmptyFolder {
    fn take(path: &Path) -> Result<Self, StoreError> {
        let failed = |error: io::Error| fault(path, &error);
        let is_new = !path.exists();
        create_durably(path).map_err(failed)?;
        if fs::read_dir(path).map_err(failed)?.next().is_some() {
            return Err(StoreError::NotEmpty { path: path.display().to_string() });
        }
        Ok(Self { path: path.to_owned(), is_new })
    }

    /// Where the files of actors go; made with the first one.
    fn actors(&self) -> Result<PathBuf, StoreError> {
        let path = self.path.join(ACTORS_FOLDER);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(fault(&path, &error)),
            _ => Ok(path),
        }
    }

    /// Makes the names of the files of actors durable.
    fn sync(&self) -> Result<(), StoreError> {
        let actors = self.path.join(ACTORS_FOLDER);
        if actors.exists() {
            sync_directory(&actors).map_err(|error| fault(&actors, &error))?;
        }
        sync_directory(&self.path).map_err(|error| fault(&self.path, &error))
    }

    /// Deletes what a copy that failed has written.
    fn clear(&self) {
        let actors = self.path.join(ACTORS_FOLDER);
        let mut cleared = if actors.exists() { fs::remove_dir_all(&actors) } else { Ok(()) };
        if self.is_new {
            cleared = cleared.and_then(|()| fs::remove_dir(&self.path));
        }
        if let Err(error) = cleared {
            let path = self.path.display();
            tracing::warn!(%error, %path, "what a backup that failed has written stays");
        }
    }
}
