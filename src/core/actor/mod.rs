//! The parts of a live actor that are only bookkeeping.
//!
//! None of them waits, locks, or reads a clock: the actor's machine holds them
//! behind its one lock, feeds them what happens, and carries out what they say
//! after the unlock.

pub mod activity;
pub mod gate;
pub mod lifecycle;
pub mod run_handler;
pub mod save_queue;
