//! Stateful actors for Node.js: a tiny server with a name, durable state, and a
//! life that host, store and author share.
//!
//! # Layout
//!
//! Arrows are "may import"; `tests/layering.rs` checks them.
//!
//! * [`ids`], [`time`], [`error`], [`metrics`]: names of things, time as an input,
//!   the error that travels, what is counted. They import nothing above them.
//! * [`protocol`]: what clients and the gateway say to each other, as bytes and back.
//! * [`store`]: what is kept, in SQLite. The only place with SQL.
//! * [`core`]: one actor: its context, its life, its state, its calls.
//! * [`host`]: where actors live: the directory, one live generation each.
//! * [`inspector`]: what dashboards and actors say to each other, as bytes and back.
//! * [`gateway`]: HTTP in front of a host, for clients that are elsewhere.
//! * `node`: the crossing into JavaScript. The only place that names napi,
//!   behind the feature `node`.

pub mod core;
pub mod error;
pub mod gateway;
pub mod host;
pub mod ids;
pub mod inspector;
pub mod metrics;
#[cfg(feature = "node")]
mod node;
pub mod protocol;
pub mod store;
pub mod time;
