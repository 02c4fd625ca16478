//! One actor, driven from outside on the manual clock, over a real store in
//! memory. The author's side is a script in Rust.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]
#![expect(clippy::disallowed_methods, reason = "a test awaits the tasks that it begins")]

mod after_end;
mod calls;
mod connection_calls;
mod connection_kinds;
mod connection_limits;
mod connection_saves;
mod connection_transactions;
mod connections;
mod connections_stop;
mod ends;
#[cfg(feature = "faults")]
mod faults;
mod fixture;
mod hibernation;
mod kv;
mod message_numbers;
mod messages;
mod queue;
mod run;
mod saves;
mod schedule;
mod sleep;
mod sql;
mod sql_outputs;
mod start;
mod stop;
mod transactions;
mod waits;
mod work;
mod workflow;
