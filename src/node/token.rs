//! Cancellation, as the contract's callers pass it by identity.
//!
//! Whoever listens is kept by the JavaScript half, which calls them when
//! [`CancellationToken::cancel`] says that it was the first: Rust holds no
//! JavaScript function.

use std::sync::atomic::{AtomicBool, Ordering};

use napi_derive::napi;

use super::guard::trip;

/// Says once that nobody waits for something any more.
#[napi]
pub struct CancellationToken {
    cancelled: AtomicBool,
}

#[napi]
impl CancellationToken {
    /// A token that is not cancelled.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "it is made from JavaScript only")]
    pub fn new() -> Self {
        trip();
        Self { cancelled: AtomicBool::new(false) }
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
        !self.cancelled.swap(true, Ordering::AcqRel)
    }
}
