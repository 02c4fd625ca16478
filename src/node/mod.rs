//! The crossing into JavaScript: the only place that names napi.
//!
//! One [`hub`] per environment queues [`job`]s and wakes JavaScript through one
//! weak threadsafe function; JavaScript takes them ([`take`]) and answers with
//! free functions and numbers ([`calls`]). No promise is awaited from Rust, and
//! Rust holds no JavaScript value but that one function. The JavaScript half of
//! all this is `ts/native`.
//!
//! # Invariants
//!
//! 1. Panics do not cross ([`guard`]).
//! 2. Who waits for an environment is answered when it dies ([`env`]).
//! 3. No signal handler is installed, nothing is printed, and nothing here keeps
//!    the process alive: the JavaScript half decides that.

#![cfg_attr(test, allow(dead_code, reason = "what only JavaScript calls is not exported in tests"))]

mod application;
mod behavior;
mod callers;
mod calls;
mod cancel;
mod clock;
mod connections;
mod context;
mod env;
mod error;
mod exchange;
mod factory;
mod foreign;
mod gateway;
mod guard;
mod host;
mod hub;
mod inspector;
mod job;
mod kv;
mod lockstep;
mod log;
mod manage;
mod origin;
mod queue;
mod queue_message;
mod registry;
mod runtime;
mod schedule;
mod sends;
mod sessions;
mod sockets;
mod sql;
mod take;
mod token;
mod transaction;
mod trial;
mod yardstick;

use napi_derive::napi;

/// Makes the next exported item of this thread that is called panic; for tests of
/// the boundary. False in builds in which none can be made to.
#[napi(catch_unwind, js_name = "__panic")]
pub fn panic_next() -> bool {
    guard::arm();
    guard::TRIPS
}
