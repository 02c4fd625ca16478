//! Panics and the process: none leaves Rust.
//!
//! # Invariants
//!
//! 1. Every `#[napi]` item says `catch_unwind`; a test reads the sources for it.
//! 2. What runs in an `extern "C"` frame that no `#[napi]` guards (hooks,
//!    threadsafe functions, destructors) runs in [`contained`].
//! 3. Every exported item begins with [`trip`], so that a test can make each of
//!    them panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::spawner::panic_text;

/// Runs `body`; a panic of it is logged and ends it alone (invariant 2).
pub(super) fn contained(label: &'static str, body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        let text = panic_text(panic.as_ref());
        tracing::error!(place = label, panic = text, "panic at the boundary");
    }
}

/// Whether exported items can be made to panic in this build.
pub(super) const TRIPS: bool = cfg!(any(debug_assertions, feature = "faults"));

#[cfg(any(debug_assertions, feature = "faults"))]
mod trap {
    use std::cell::Cell;

    thread_local! {
        static ARMED: Cell<bool> = const { Cell::new(false) };
    }

    pub(in crate::node) fn arm() {
        ARMED.set(true);
    }

    pub(in crate::node) fn trip() {
        if ARMED.take() {
            // Without the panic hook, which would print.
            std::panic::resume_unwind(Box::new("the trap that a test has set"));
        }
    }
}

#[cfg(not(any(debug_assertions, feature = "faults")))]
mod trap {
    pub(in crate::node) fn arm() {}

    #[inline(always)]
    pub(in crate::node) fn trip() {}
}

pub(super) use trap::{arm, trip};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contained_panic_ends_here() {
        contained("test", || panic!("boom"));
    }

    #[test]
    fn a_trap_springs_once() {
        arm();

        assert!(catch_unwind(trip).is_err());
        assert!(catch_unwind(trip).is_ok());
    }
}
