//! The process's own tokio runtimes, shared by all environments: one for the work of
//! actors, and one for sockets.
//!
//! # Invariants
//!
//! 1. Each begins with its first use and is never dropped: the one of napi dies
//!    with the last environment and would take commits with it.
//! 2. Tasks on them are guarded: a panic is logged and ends its task alone.
//! 3. The work of actors does not wait where sockets are polled, and a process that
//!    listens nowhere polls none.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::core::spawner::Spawner;
use crate::error::{Error, Result};

/// A runtime and its spawner. An error when the system gives no threads; it stays an
/// error for the life of the process.
type Made = OnceLock<std::result::Result<(Runtime, Spawner), String>>;

static ACTORS: Made = OnceLock::new();
static SOCKETS: Made = OnceLock::new();

fn make(builder: &mut Builder) -> std::result::Result<(Runtime, Spawner), String> {
    let runtime = builder.enable_time().build().map_err(|error| error.to_string())?;
    let spawner = Spawner::new(runtime.handle().clone());
    Ok((runtime, spawner))
}

fn made(made: &std::result::Result<(Runtime, Spawner), String>) -> Result<&(Runtime, Spawner)> {
    made.as_ref().map_err(|error| Error::internal(format!("could not start threads: {error}")))
}

fn actors() -> Result<&'static (Runtime, Spawner)> {
    made(ACTORS.get_or_init(|| {
        make(Builder::new_multi_thread().worker_threads(workers()).thread_name("greenroom"))
    }))
}

/// Begins guarded tasks (invariant 2).
pub(super) fn spawner() -> Result<&'static Spawner> {
    actors().map(|(_, spawner)| spawner)
}

/// Begins guarded tasks that use sockets. One thread serves them all: what they do between
/// two waits is short, and a second one would mostly be woken in vain.
pub(super) fn socket_spawner() -> Result<&'static Spawner> {
    let sockets = SOCKETS.get_or_init(|| {
        let name = "greenroom-sockets";
        make(Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_io())
    });
    made(sockets).map(|(_, spawner)| spawner)
}

/// Waits on a JavaScript thread, which is never a thread of a runtime.
pub(super) fn block_on<F: Future>(future: F) -> Result<F::Output> {
    actors().map(|(runtime, _)| runtime.block_on(future))
}

/// Two at least, so that one busy task never stands in the way of all others;
/// four at most, since the work here is short and the disk is the limit.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_meets_the_same_runtime() {
        let first: *const Spawner = spawner().unwrap();

        assert_eq!(first, spawner().unwrap() as *const Spawner);
        assert_eq!(block_on(async { 7 }).unwrap(), 7);
    }

    #[test]
    fn sockets_have_a_runtime_of_their_own() {
        let sockets = socket_spawner().unwrap();
        assert_ne!(sockets.handle().id(), spawner().unwrap().handle().id());

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let _runtime = sockets.handle().enter();
        assert!(tokio::net::TcpListener::from_std(listener).is_ok());
    }
}
