//! The body of a request, up to a length and within a time, and the end of one of an answer
//! that no connection of ours carries.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::error::GatewayError;
use crate::time::{Clock, Duration};

/// How much more than it may have is read of a body that is too long, in bytes: a client
/// that is still sending when the connection closes does not get to read why.
const DRAINED: usize = 1024 * 1024;

/// A body, or how long it is at least.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// All of it.
    Whole(Bytes),
    /// It is longer than it may be. Its length as far as it is known, in bytes.
    TooLong(usize),
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
///
/// [`GatewayError::BodyTimeout`] and [`GatewayError::BodyBroken`].
pub(super) async fn read(
    body: Body,
    limit: usize,
    clock: &Clock,
    patience: Duration,
) -> Result<Read, GatewayError> {
    tokio::select! {
        biased;
        read = read_all(body, limit) => read,
        () = clock.sleep(patience) => {
            Err(GatewayError::BodyTimeout { seconds: patience.as_secs() })
        }
    }
}

async fn read_all(mut body: Body, limit: usize) -> Result<Read, GatewayError> {
    let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // What is claimed is not believed before it is there.
    let mut whole = BytesMut::new();
    let mut seen = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| GatewayError::BodyBroken { reason: error.to_string() })?;
        // Trailers mean nothing to anybody here.
        let Ok(data) = frame.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= limit && claimed <= limit {
            whole.extend_from_slice(&data);
        } else {
            whole = BytesMut::new();
            if seen.max(claimed) > limit.saturating_add(DRAINED) {
                break;
            }
        }
    }
    let length = seen.max(claimed);
    Ok(if length > limit { Read::TooLong(length) } else { Read::Whole(whole.freeze()) })
}

/// The body of an answer that somebody else sends: counted among what is open until it has
/// been read or is dropped, and cut off with that.
pub(super) struct Tracked {
    body: Body,
    /// Boxed, since it may not move once it is waited for.
    cut_off: Pin<Box<WaitForCancellationFutureOwned>>,
    _open: TaskTrackerToken,
}

impl Tracked {
    pub(super) fn new(body: Body, cut_off: CancellationToken, open: TaskTrackerToken) -> Self {
        Self { body, cut_off: Box::pin(cut_off.cancelled_owned()), _open: open }
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_pending() && self.cut_off.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(axum::Error::new(GatewayError::AnswerBroken))));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt as _, StreamExt as _, stream};
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pieces(pieces: Vec<usize>) -> Body {
        let stream =
            stream::iter(pieces).map(|length| Ok::<_, Infallible>(Bytes::from(vec![7; length])));
        Body::from_stream(stream)
    }

    fn read_now(body: Body, limit: usize) -> Read {
        let clock = Clock::manual(0).clock();
        read(body, limit, &clock, SECOND).now_or_never().unwrap().unwrap()
    }

    #[test]
    fn a_body_of_the_limit_passes_and_one_byte_more_does_not() {
        assert_eq!(read_now(Body::from("abc"), 3), Read::Whole("abc".into()));
        assert_eq!(read_now(Body::from("abcd"), 3), Read::TooLong(4));
        assert_eq!(read_now(Body::empty(), 0), Read::Whole(Bytes::new()));
        assert_eq!(read_now(pieces(vec![1, 2]), 3), Read::Whole(vec![7; 3].into()));
        assert_eq!(read_now(pieces(vec![2, 2]), 3), Read::TooLong(4));
    }

    #[test]
    fn no_more_is_drained_than_a_mebibyte() {
        let endless = vec![DRAINED / 2; 100];

        assert_eq!(read_now(pieces(endless), 3), Read::TooLong(DRAINED / 2 * 3));
    }

    #[test]
    fn an_answer_counts_as_open_until_it_is_read_and_is_cut_off_where_nothing_comes() {
        let (open, cut_off) = (tokio_util::task::TaskTracker::new(), CancellationToken::new());
        let tracked = |body| Tracked::new(body, cut_off.clone(), open.token());
        let whole = tracked(Body::from("abc"));
        assert_eq!(whole.size_hint().exact(), Some(3));
        let endless = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let mut endless = tracked(endless);
        let mut reading = task::spawn(endless.frame());
        assert_pending!(reading.poll());

        assert_eq!(whole.collect().now_or_never().unwrap().unwrap().to_bytes(), "abc");
        assert_eq!(open.len(), 1);
        cut_off.cancel();

        assert!(reading.is_woken());
        assert!(assert_ready!(reading.poll()).unwrap().is_err());
        drop(reading);
        drop(endless);
        assert!(open.is_empty());
    }

    #[test]
    fn a_body_that_does_not_come_is_given_up() {
        let manual = Clock::manual(0);
        let clock = manual.clock();
        let body = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let mut reading = task::spawn(read(body, 3, &clock, SECOND));
        assert_pending!(reading.poll());

        manual.advance(SECOND);

        let error = assert_ready!(reading.poll()).unwrap_err();
        assert_eq!(error, GatewayError::BodyTimeout { seconds: 1 });
    }
}
