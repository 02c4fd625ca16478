//! One actor: its settings, its life, its work, its state.

pub mod actor;
pub mod behavior;
pub mod config;
pub mod connections;
pub mod context;
pub mod host;
pub mod identity;
pub mod kv;
pub mod messages;
mod parts;
pub mod queue;
pub mod runtime;
pub mod schedule;
pub mod spawner;
pub mod sql;
pub mod timers;
pub mod transaction;
pub mod warnings;
pub mod workflow;
