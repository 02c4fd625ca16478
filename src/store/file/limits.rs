//! How many files are open, and how many threads serve them.

/// How much of the process the files of actors may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// How many files are open at once; at least 1. The least recently used one closes
    /// for the next. A file that is in the middle of a transaction stays open, so there
    /// are more while more than that are.
    pub open_files: usize,
    /// How many threads commit, read and run statements off the JavaScript thread; at
    /// least 1.
    pub pool_threads: usize,
    /// From how many frames of 4 KiB on the log of a file is copied whatever else there is
    /// to do; from a quarter of that on once its actor pauses.
    pub log_frames: u32,
    /// The largest batch that goes to the shared store, in bytes: an actor with a larger one
    /// moves to a file of its own, since everybody would wait for that commit.
    pub shared_batch_bytes: usize,
    /// How many threads sync; at least 1. The file system merges what they do, so they
    /// are the group commit over many files.
    pub sync_threads: usize,
}

/// Descriptors that are left to everybody else.
const OTHERS: u64 = 256;
/// Database, log, sync descriptor, and one in reserve.
const PER_FILE: u64 = 4;
const MOST: u64 = 256;
const LEAST: u64 = 8;

impl Default for FileLimits {
    /// 4 threads, 8 that sync, logs of 16 MiB, batches of 1 MiB, and 256 files, or fewer where the process may
    /// have less than 1,280 descriptors.
    fn default() -> Self {
        let open = descriptors()
            .map_or(MOST, |limit| (limit.saturating_sub(OTHERS) / PER_FILE).clamp(LEAST, MOST));
        Self {
            open_files: usize::try_from(open).expect("at most 256"),
            pool_threads: 4,
            sync_threads: 8,
            log_frames: 4_000,
            shared_batch_bytes: 1 << 20,
        }
    }
}

/// How many descriptors this process may have once [`raise_descriptors`] was called;
/// `None` when there is no limit.
#[cfg(unix)]
fn descriptors() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.maximum.or(limit.current)
}

#[cfg(not(unix))]
fn descriptors() -> Option<u64> {
    None
}

/// Lets the process have as many descriptors as it is allowed to ask for.
#[cfg(unix)]
pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "could not raise the limit of open files");
    }
}

#[cfg(not(unix))]
pub(super) fn raise_descriptors() {}
