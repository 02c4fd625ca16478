//! The signals of a generation, made so that one that nobody waits for weighs little.
//!
//! # Invariants
//!
//! 1. Whoever asks for the token, before or after the signal fires, gets one that is
//!    cancelled once it has: firing says so before it looks for the token, and
//!    whoever makes one looks afterwards.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
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

/// That the generation is over.
#[derive(Debug, Default)]
pub(super) struct Over {
    is_over: AtomicBool,
    told: Notify,
}

impl Over {
    /// It is over.
    pub(super) fn tell(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    /// Resolves when it is. Cancel safe.
    pub(super) async fn reached(&self) {
        // Registered before the look, so that an end between the two wakes us.
        let mut told = std::pin::pin!(self.told.notified());
        told.as_mut().enable();
        if !self.is_over.load(Ordering::SeqCst) {
            told.await;
        }
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

    #[tokio::test]
    async fn whoever_waits_for_the_end_hears_of_it_before_and_after() {
        let over = Over::default();
        let mut waiting = std::pin::pin!(over.reached());
        assert!(futures::poll!(waiting.as_mut()).is_pending());

        over.tell();

        waiting.await;
        over.reached().await;
    }
}
