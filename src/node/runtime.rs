//! The process's own tokio runtime, shared by all environments.
//!
//! # Invariants
//!
//! 1. It begins with its first use and is never dropped: the one of napi dies
//!    with the last environment and would take commits with it.
//! 2. Tasks on it are guarded: a panic is logged and ends its task alone.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::core::spawner::Spawner;
use crate::error::{Error, Result};

static RUNTIME: OnceLock<std::result::Result<(Runtime, Spawner), String>> = OnceLock::new();

/// The runtime and its spawner. An error when the system gives no threads; it
/// stays an error for the life of the process.
fn shared() -> Result<&'static (Runtime, Spawner)> {
    let made = RUNTIME.get_or_init(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers())
            .thread_name("greenroom")
            .enable_time()
            .build()
            .map_err(|error| error.to_string())?;
        let spawner = Spawner::new(runtime.handle().clone());
        Ok((runtime, spawner))
    });
    made.as_ref().map_err(|error| Error::internal(format!("could not start threads: {error}")))
}

/// Begins guarded tasks (invariant 2).
pub(super) fn spawner() -> Result<&'static Spawner> {
    shared().map(|(_, spawner)| spawner)
}

/// Waits on a JavaScript thread, which is never a thread of the runtime.
pub(super) fn block_on<F: Future>(future: F) -> Result<F::Output> {
    shared().map(|(runtime, _)| runtime.block_on(future))
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
}
