//! What is asked of JavaScript beside calls: an author's application, which answers requests
//! that are for no actor, and choices that a type of actors makes.
//!
//! # Invariants
//!
//! 1. A request is answered once: by JavaScript, or because its environment has ended.
//! 2. JavaScript hears when nobody waits for its answer any more.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use parking_lot::Mutex;

use super::env::{next_number, number};
use super::error::{environment_gone as gone, from_record};
use super::guard::trip;
use super::hub::Hub;
use super::job::{Job, Whom};
use crate::core::behavior::Reply;
use crate::gateway::Application;

static ASKED: Mutex<Option<HashMap<u64, Asked>>> = Mutex::new(None);

/// A request that JavaScript has not answered.
struct Asked {
    environment: u64,
    reply: Reply<Bytes>,
}

/// The application of an environment.
pub(super) struct NodeApplication {
    hub: Arc<Hub>,
    /// By which JavaScript knows it.
    number: u64,
}

impl NodeApplication {
    pub(super) fn new(hub: Arc<Hub>, number: u64) -> Self {
        Self { hub, number }
    }
}

impl std::fmt::Debug for NodeApplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeApplication").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Application for NodeApplication {
    fn answer(&self, request: Bytes, reply: Reply<Bytes>) -> Box<dyn Send + Sync> {
        Box::new(ask(&self.hub, Whom::Application(self.number), request, reply))
    }
}

/// Has JavaScript answer something. Nobody waits for that any more once what this returns is
/// dropped.
pub(super) fn ask(hub: &Arc<Hub>, whom: Whom, request: Bytes, reply: Reply<Bytes>) -> Waits {
    let asked = next_number();
    let environment = hub.environment();
    ASKED.lock().get_or_insert_default().insert(asked, Asked { environment, reply });
    if hub.push(Job::Asked { whom, asked, request }).is_err() {
        answer(asked, Err(gone()));
    }
    Waits { hub: Arc::clone(hub), asked }
}

/// Somebody waits for an answer.
pub(super) struct Waits {
    hub: Arc<Hub>,
    asked: u64,
}

impl Drop for Waits {
    fn drop(&mut self) {
        let given_up = take(self.asked);
        drop(given_up);
        // Refused by a hub that is dead: nobody is left to hear it.
        drop(self.hub.push(Job::Unasked { asked: self.asked }));
    }
}

/// Answers a request: with status 0 by the head and a small body, else by the record of an
/// error.
#[napi(catch_unwind)]
pub fn answer_asked(asked: f64, status: u32, bytes: Uint8Array) {
    trip();
    let result = match status {
        0 => Ok(Bytes::copy_from_slice(&bytes)),
        _ => Err(from_record(&bytes)),
    };
    answer(number(asked), result);
}

/// Answers what an environment was asked.
pub(super) fn environment_gone(environment: u64) {
    let open: Vec<_> = match ASKED.lock().as_mut() {
        Some(all) => all.extract_if(|_, asked| asked.environment == environment).collect(),
        None => Vec::new(),
    };
    for (_, asked) in open {
        asked.reply.send(Err(gone()));
    }
}

fn answer(asked: u64, result: crate::error::Result<Bytes>) {
    if let Some(asked) = take(asked) {
        asked.reply.send(result);
    }
}

fn take(asked: u64) -> Option<Asked> {
    ASKED.lock().as_mut()?.remove(&asked)
}
