//! A signal that most generations never look at.
//!
//! # Invariants
//!
//! 1. Whoever asks for the token, before or after the signal fires, gets one that is
//!    cancelled once it has: firing says so before it looks for the token, and
//!    whoever makes one looks afterwards.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Fires once. Its token is made when somebody wants to wait for it.
#[derive(Debug, Default)]
pub(super) struct LazySignal {
    fired: AtomicBool,
    token: OnceLock<CancellationToken>,
}

impl LazySignal {
    /// Fires it.
    pub(super) fn fire(&self) {
        self.fired.store(true, Ordering::SeqCst);
        // With the one in `token`: one of both threads sees what the other did.
        std::sync::atomic::fence(Ordering::SeqCst);
        if let Some(token) = self.token.get() {
            token.cancel();
        }
    }

    /// Whether it has fired.
    pub(super) fn has_fired(&self) -> bool {
        self.fired.load(Ordering::SeqCst)
    }

    /// What is cancelled when it fires.
    pub(super) fn token(&self) -> CancellationToken {
        let token = self.token.get_or_init(CancellationToken::new).clone();
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.has_fired() {
            token.cancel();
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_cancelled_whether_it_was_made_before_or_after() {
        let signal = LazySignal::default();
        let before = signal.token();
        assert!(!before.is_cancelled() && !signal.has_fired());

        signal.fire();

        assert!(before.is_cancelled() && signal.has_fired());
        assert!(signal.token().is_cancelled());
    }

    #[test]
    fn one_that_is_made_while_it_fires_is_cancelled() {
        for _ in 0..200 {
            let signal = LazySignal::default();
            let token = std::thread::scope(|scope| {
                let made = scope.spawn(|| signal.token());
                signal.fire();
                made.join().unwrap()
            });

            assert!(token.is_cancelled());
        }
    }
}
