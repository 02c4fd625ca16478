//! The gateway: real sockets on loopback, a real host, authors' code in Rust, and a clock
//! that stands still unless a test moves it.

mod actions;
mod bounds;
mod client;
mod doors;
mod fixture;
mod hooks;
mod inspector;
mod manager;
mod metrics;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../host_embedded/place.rs"]
mod place;
mod queues;
mod raw_sockets;
#[path = "../support/script.rs"]
mod script;
mod setup;
mod slow_clients;
mod socket;
mod socket_faults;
mod sockets;
mod stop;
