//! One actor: its settings, its life, its work, its state.

pub mod actor;
pub mod config;
pub mod warnings;
