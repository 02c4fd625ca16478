//! Cancellation, as the contract's callers pass it by identity.
//!
//! Whoever listens is kept by the JavaScript half, which calls them when
//! [`CancellationToken::cancel`] says that it was the first: Rust holds no
//! JavaScript function. What waits in Rust listens by itself.

use std::sync::atomic::{AtomicBool, Ordering};

use napi_derive::napi;
use tokio_util::sync::CancellationToken as Signal;

use super::guard::trip;

/// Says once that nobody waits for something any more.
#[napi]
pub struct CancellationToken {
    cancelled: AtomicBool,
    /// For what waits on the Rust side.
    signal: Signal,
}

#[napi]
impl CancellationToken {
    /// A token that is not cancelled.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "it is made from JavaScript only")]
    pub fn new() -> Self {
        trip();
        Self { cancelled: AtomicBool::new(false), signal: Signal::new() }
    }

    /// Whether it is cancelled.
    #[napi(catch_unwind)]
    pub fn aborted(&self) -> bool {
        trip();
        self.cancelled.load(Ordering::Acquire)
    }

    /// Cancels it. True the first time, false when it was cancelled before.
    #[napi(catch_unwind)]
    pub fn cancel(&self) -> bool {
        trip();
        let first = !self.cancelled.swap(true, Ordering::AcqRel);
        if first {
            self.signal.cancel();
        }
        first
    }
}

impl CancellationToken {
    /// What a wait on the Rust side listens to.
    pub(super) fn token(&self) -> Signal {
        self.signal.clone()
    }
}
