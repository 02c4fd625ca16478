//! Calls that their caller may give up, from their submission to their answer.
//!
//! A caller knows its call by its origin, an actor by its number; the two meet here
//! when the call is handed to the author's side.
//!
//! # Invariants
//!
//! 1. Only calls that may be given up are here, and only while they are not answered.
//! 2. A call that is given up before it reaches the author's side is not begun there;
//!    one that is given up while it is handed over is cancelled right after.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::core::behavior::CallId;
use crate::core::context::ActorContext;

static WATCHED: Mutex<Option<HashMap<u64, Standing>>> = Mutex::new(None);
/// The number of entries: most processes have none, and pay one look at it per call.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Where a call is.
enum Standing {
    /// On its way.
    Submitted,
    /// On its way, and its caller gave up.
    GivenUp,
    /// With its actor.
    Delivered(ActorContext, CallId),
}

/// Ends the watch when the call is answered.
#[must_use = "the watch ends as soon as it is dropped"]
pub(super) struct Watch(u64);

impl Drop for Watch {
    fn drop(&mut self) {
        let removed = WATCHED.lock().as_mut().and_then(|watched| watched.remove(&self.0));
        if removed.is_some() {
            COUNT.fetch_sub(1, Ordering::AcqRel);
        }
        drop(removed);
    }
}

/// Begins to watch a call.
pub(super) fn watch(origin: u64) -> Watch {
    let replaced = WATCHED.lock().get_or_insert_default().insert(origin, Standing::Submitted);
    if replaced.is_none() {
        COUNT.fetch_add(1, Ordering::AcqRel);
    }
    drop(replaced);
    Watch(origin)
}

/// Whether there is any call that may be given up.
pub(super) fn is_watching() -> bool {
    COUNT.load(Ordering::Acquire) != 0
}

/// Whether the caller has given the call up before it was handed over.
pub(super) fn is_given_up(origin: u64) -> bool {
    let watched = WATCHED.lock();
    matches!(watched.as_ref().and_then(|watched| watched.get(&origin)), Some(Standing::GivenUp))
}

/// A call was handed to the author's side of `context`.
pub(super) fn delivered(origin: u64, context: &ActorContext, call: CallId) {
    let given_up = {
        let mut watched = WATCHED.lock();
        match watched.as_mut().and_then(|watched| watched.get_mut(&origin)) {
            Some(standing @ Standing::Submitted) => {
                *standing = Standing::Delivered(context.clone(), call);
                false
            }
            Some(Standing::GivenUp) => true,
            Some(Standing::Delivered(..)) | None => false,
        }
    };
    if given_up {
        context.cancel_call(call);
    }
}

/// The caller gave up.
pub(super) fn cancel(origin: u64) {
    let delivered = {
        let mut watched = WATCHED.lock();
        match watched.as_mut().and_then(|watched| watched.get_mut(&origin)) {
            Some(Standing::Delivered(context, call)) => Some((context.clone(), *call)),
            Some(standing) => {
                *standing = Standing::GivenUp;
                None
            }
            None => None,
        }
    };
    if let Some((context, call)) = delivered {
        context.cancel_call(call);
    }
}
