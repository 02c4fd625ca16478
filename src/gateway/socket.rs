//! A socket whose other side has to take what it is sent (invariant 3 of the gateway).

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::time::{Clock, Duration, Sleep};

/// A stream that fails once a write has stood still for too long.
pub(super) struct Impatient<S> {
    stream: S,
    clock: Clock,
    patience: Duration,
    /// Since when nothing was taken; `None` while it is.
    stalled: Option<Sleep>,
}

impl<S> Impatient<S> {
    pub(super) fn new(stream: S, clock: Clock, patience: Duration) -> Self {
        Self { stream, clock, patience, stalled: None }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn within<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut S, &mut Context<'_>) -> Poll<Result<T>>,
    ) -> Poll<Result<T>> {
        if let Poll::Ready(result) = write(&mut self.stream, cx) {
            self.stalled = None;
            return Poll::Ready(result);
        }
        let stalled = self.stalled.get_or_insert_with(|| self.clock.sleep(self.patience));
        ready!(Pin::new(stalled).poll(cx));
        Poll::Ready(Err(takes_nothing()))
    }
}

/// The error of a write that has stood still for too long.
pub(super) fn takes_nothing() -> Error {
    Error::new(ErrorKind::TimedOut, "the client takes nothing")
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.within(cx, |stream, cx| Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.within(cx, |stream, cx| Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.within(cx, |stream, cx| Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.within(cx, |stream, cx| Pin::new(stream).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_write_that_stands_still_fails_and_one_that_goes_on_does_not() {
        let manual = Clock::manual(0);
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut ours = Impatient::new(ours, manual.clock(), 2 * SECOND);
        let mut write = task::spawn(ours.write_all(&[0; 12]));
        assert_pending!(write.poll());

        manual.advance(SECOND);
        let mut taken = [0; 4];
        assert_ready!(task::spawn(theirs.read_exact(&mut taken)).poll()).unwrap();
        assert_pending!(write.poll());
        manual.advance(SECOND);
        assert_pending!(write.poll());
        manual.advance(SECOND);

        let error = assert_ready!(write.poll()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
