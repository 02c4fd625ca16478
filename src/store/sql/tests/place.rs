//! A place for a database, on a connection of its own that works when it is told to.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio_test::task::{Spawn, spawn};

use super::*;
use crate::ids::IdSource;
use crate::store::{CommitDone, StoreError};
use crate::time::{Clock, Duration, ManualClock};

/// What has the connection.
#[derive(Default)]
pub(super) struct Place {
    works: Mutex<VecDeque<SqlWork>>,
    pub(super) failures: Mutex<Vec<SqlError>>,
    /// What waits for the disk, while syncs are held.
    pub(super) unsynced: Mutex<Vec<CommitDone>>,
    pub(super) deadlines: AtomicUsize,
}

impl SqlHost for Place {
    fn run(&self, work: SqlWork) {
        self.works.lock().push_back(work);
    }

    fn deadline_changed(&self) {
        self.deadlines.fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&self, error: &SqlError) {
        self.failures.lock().push(error.clone());
    }

    fn label(&self) -> String {
        "a.1.db".to_owned()
    }
}

/// A database with its place and its clock.
pub(super) struct Stage {
    pub(super) fixture: Fixture,
    pub(super) place: Arc<Place>,
    pub(super) clock: ManualClock,
    pub(super) database: SqlDatabase,
    /// Whether nothing reaches the disk.
    pub(super) holds_syncs: bool,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::on(Fixture::new())
    }

    pub(super) fn in_file(path: &Path) -> Self {
        let mut sqlite = rusqlite::Connection::open(path).unwrap();
        sqlite.execute_batch("PRAGMA journal_mode=WAL; PRAGMA foreign_keys=OFF").unwrap();
        let user = UserSql::install(&mut sqlite).unwrap();
        Self::on(Fixture { sqlite, user })
    }

    fn on(fixture: Fixture) -> Self {
        let place = Arc::new(Place::default());
        let clock = Clock::manual(0);
        let host: Arc<dyn SqlHost> = Arc::clone(&place) as _;
        let ids = Arc::new(IdSource::seeded(1));
        let database = SqlDatabase::new(host, clock.clock(), ids, true);
        Self { fixture, place, clock, database, holds_syncs: false }
    }

    pub(super) fn next_work(&self) -> Option<SqlWork> {
        self.place.works.lock().pop_front()
    }

    /// Performs one step, if there is one.
    pub(super) fn step(&self) -> bool {
        let Some(work) = self.next_work() else { return false };
        let ran = work.perform(Ok(self.fixture.session()));
        ran.finish(|done| {
            if self.holds_syncs {
                self.place.unsynced.lock().push(done);
            } else {
                done(Ok(()));
            }
        });
        true
    }

    /// Performs all steps.
    pub(super) fn work(&self) {
        while self.step() {}
    }

    /// What comes of something, with all steps performed.
    pub(super) fn get<T, F>(&self, future: F) -> Result<T, SqlError>
    where
        F: Future<Output = Result<T, SqlError>>,
    {
        let mut future = asked(future);
        self.work();
        ready(&mut future)
    }

    pub(super) fn execute(&self, sql: &str) -> Result<SqlOutcome, SqlError> {
        self.get(self.database.execute(sql, Bindings::None))
    }

    pub(super) fn begin(&self, timeout: Duration) -> SqlTransaction {
        let options = BeginOptions { timeout: Some(timeout), ..BeginOptions::default() };
        self.get(self.database.begin(options)).unwrap()
    }

    /// The values of the first column.
    pub(super) fn column(&self, sql: &str) -> Vec<SqlValue> {
        self.execute(sql).unwrap().rows.iter().map(|row| row[0].clone()).collect()
    }

    pub(super) fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
        if self.database.next_deadline().is_some_and(|at| at <= self.clock.clock().now()) {
            self.database.tick();
        }
    }

    /// The connection is lost, as when the file cannot be opened.
    pub(super) fn lose(&self, error: &StoreError) {
        let work = self.next_work().expect("a step");
        work.perform(Err(error.clone())).finish(|_| panic!("nothing was committed"));
    }
}

pub(super) fn asked<F: Future>(future: F) -> Spawn<F> {
    spawn(future)
}

/// The result of what must be ready.
pub(super) fn ready<F: Future>(future: &mut Spawn<F>) -> F::Output {
    match future.poll() {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("not ready"),
    }
}
