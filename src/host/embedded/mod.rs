//! Actors in this process, kept in one folder.

mod entry;
mod waiter;

/// A place in this process where actors can run: one JavaScript thread with the
/// author's functions. Numbers never repeat within a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EnvironmentId(pub u64);
