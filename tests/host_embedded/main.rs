//! The embedded host: real store, real actors, authors' code in Rust, and a clock
//! that stands still unless a test moves it.

mod alarms;
mod calls;
mod crashes;
mod crowd;
mod destroy;
#[cfg(feature = "faults")]
mod faults;
mod open;
mod place;
mod places;
mod report;
#[path = "../support/script.rs"]
mod script;
mod session_ends;
mod session_reopens;
#[cfg(feature = "faults")]
mod session_storm;
#[cfg(feature = "faults")]
mod session_subscriptions;
mod sessions;
mod shutdown;
mod starts;
