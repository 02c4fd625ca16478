//! Schedules and their rows: what a generation returns is written to a real store, and
//! the next one is loaded from there.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;
mod model;
mod rows;
