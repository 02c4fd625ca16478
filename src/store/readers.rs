//! A few threads that read the database while the writer writes.
//!
//! # Invariants
//!
//! 1. A read sees one moment, and everything that was answered before it began.
//! 2. Each read is short: what may be long is cut into several, so that nobody
//!    pins the log.
//! 3. While the pool is paused or closed it has no connection open.
//! 4. Every read is served or told why not.
//!
//! The number of reads that wait is bounded by the callers: each is one future
//! that somebody holds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use super::StoreError;
use super::connection::Database;
use super::job::{Read, guarded};
use super::shared::store_thread;

/// The pool. The threads hold it too.
pub(super) struct Readers {
    database: Database,
    /// Changed by callers (read), the threads (serving) and the writer (the rest).
    state: Mutex<State>,
    /// Told when there may be something to do.
    came: Condvar,
    /// Told when a connection was closed.
    closed_one: Condvar,
}

struct State {
    reads: VecDeque<Read>,
    mode: Mode,
    /// Connections that are open or being opened.
    connections: usize,
}

#[derive(Clone, PartialEq, Eq)]
enum Mode {
    Running,
    /// Reads wait.
    Paused,
    /// Reads are refused.
    Failed(StoreError),
    /// Reads are refused, those that wait are served.
    Closed,
}

/// What a thread does next.
enum Turn {
    Serve(Read),
    CloseConnection,
    End,
}

impl Readers {
    /// Starts the pool.
    pub(super) fn start(
        database: Database,
        threads: usize,
    ) -> std::io::Result<(Arc<Self>, Vec<JoinHandle<()>>)> {
        let state = State { reads: VecDeque::new(), mode: Mode::Running, connections: 0 };
        let readers = Arc::new(Self {
            database,
            state: Mutex::new(state),
            came: Condvar::new(),
            closed_one: Condvar::new(),
        });
        let mut handles = Vec::new();
        for index in 0..threads.max(1) {
            let own = Arc::clone(&readers);
            match store_thread(format!("greenroom-store-reader-{index}"), move || own.run()) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    readers.close(handles);
                    return Err(error);
                }
            }
        }
        Ok((readers, handles))
    }

    /// Takes a read. One that is refused hears so here, on the caller's thread.
    pub(super) fn read(&self, read: Read) {
        let mut state = self.state.lock();
        let refusal = match &state.mode {
            Mode::Running | Mode::Paused => None,
            Mode::Failed(error) => Some(error.clone()),
            Mode::Closed => Some(StoreError::Closed),
        };
        if let Some(refusal) = refusal {
            drop(state);
            return read(Err(refusal));
        }
        state.reads.push_back(read);
        drop(state);
        self.came.notify_one();
    }

    /// Lets reads wait and returns once every connection is closed.
    pub(super) fn pause(&self) {
        self.enter(Mode::Paused);
        let mut state = self.state.lock();
        while state.connections > 0 {
            self.closed_one.wait(&mut state);
        }
    }

    /// Serves again.
    pub(super) fn resume(&self) {
        self.enter(Mode::Running);
    }

    /// Refuses every read with `error`.
    pub(super) fn fail(&self, error: &StoreError) {
        self.enter(Mode::Failed(error.clone()));
        let reads = std::mem::take(&mut self.state.lock().reads);
        for read in reads {
            guarded("the callback of a read", || read(Err(error.clone())));
        }
    }

    /// Serves what waits, closes every connection and ends the threads.
    pub(super) fn close(&self, threads: Vec<JoinHandle<()>>) {
        self.enter(Mode::Closed);
        for thread in threads {
            // What a reader calls is guarded, so it does not end by a panic.
            if thread.join().is_err() {
                tracing::error!("a reader of the store panicked");
            }
        }
    }

    fn enter(&self, mode: Mode) {
        self.state.lock().mode = mode;
        self.came.notify_all();
    }

    fn run(&self) {
        let mut connection: Option<Connection> = None;
        loop {
            match self.turn(connection.is_some()) {
                Turn::Serve(read) => self.serve(&mut connection, read),
                Turn::CloseConnection => {
                    connection = None;
                    self.note_closed();
                }
                Turn::End => break,
            }
        }
    }

    fn turn(&self, has_connection: bool) -> Turn {
        let mut state = self.state.lock();
        loop {
            match &state.mode {
                Mode::Running | Mode::Closed => {
                    if let Some(read) = state.reads.pop_front() {
                        if !has_connection {
                            // Counted here, so that a pause that comes now waits for it.
                            state.connections += 1;
                        }
                        return Turn::Serve(read);
                    }
                    if state.mode == Mode::Closed {
                        return if has_connection { Turn::CloseConnection } else { Turn::End };
                    }
                }
                Mode::Paused | Mode::Failed(_) if has_connection => return Turn::CloseConnection,
                Mode::Paused | Mode::Failed(_) => {}
            }
            self.came.wait(&mut state);
        }
    }

    fn serve(&self, connection: &mut Option<Connection>, read: Read) {
        if connection.is_none() {
            match self.database.open_reader() {
                Ok(opened) => *connection = Some(opened),
                Err(error) => {
                    self.note_closed();
                    return guarded("the callback of a read", || read(Err(error)));
                }
            }
        }
        if let Some(connection) = connection {
            guarded("a read", || read(Ok(connection)));
        }
    }

    fn note_closed(&self) {
        self.state.lock().connections -= 1;
        self.closed_one.notify_all();
    }
}
