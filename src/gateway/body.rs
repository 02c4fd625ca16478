//! The body of a request, up to a length and within a time, and the end of one of an answer
//! that no connection of ours carries.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
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
/// been read or is dropped, and cut off with that. Nobody has to read it for that: what it
/// holds goes then.
pub(super) struct Tracked {
    slot: Arc<Slot>,
    cut_off: CancellationToken,
    /// Ends the watch of it.
    _watched: DropGuard,
    /// What the body says of the rest of itself. Known here, since the body may be gone.
    rest: SizeHint,
    is_over: bool,
}

/// Where a body is that may be taken away from whoever reads it.
#[derive(Default)]
struct Slot(Mutex<Place>);

#[derive(Default)]
struct Place {
    /// `None` while a frame is asked of it, and for ever once it is cut off.
    held: Option<(Body, TaskTrackerToken)>,
    is_cut: bool,
    reader: Option<Waker>,
}

impl Tracked {
    /// A body, and what watches over it: to be begun as a task.
    pub(super) fn new(
        body: Body,
        cut_off: CancellationToken,
        open: TaskTrackerToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (rest, is_over) = (body.size_hint(), body.is_end_stream());
        let place = Place { held: Some((body, open)), ..Place::default() };
        let slot = Arc::new(Slot(Mutex::new(place)));
        let ended = cut_off.child_token();
        let watch = {
            let (ended, slot) = (ended.clone(), Arc::clone(&slot));
            async move {
                ended.cancelled().await;
                slot.cut();
            }
        };
        (Self { slot, cut_off, _watched: ended.drop_guard(), rest, is_over }, watch)
    }
}

impl Slot {
    /// Drops what is there, or will be given back, and wakes its reader.
    fn cut(&self) {
        let left = {
            let mut place = self.0.lock();
            place.is_cut = true;
            (place.held.take(), place.reader.take())
        };
        let (held, reader) = left;
        drop(held);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Gives back what a frame was asked of. `false`, and it is dropped, when it was cut off
    /// meanwhile.
    fn give_back(&self, held: (Body, TaskTrackerToken), reader: Option<Waker>) -> bool {
        let left = {
            let mut place = self.0.lock();
            if place.is_cut {
                (Some(held), reader)
            } else {
                place.held = Some(held);
                (None, std::mem::replace(&mut place.reader, reader))
            }
        };
        left.0.is_none()
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.cut_off.is_cancelled() {
            // One that always has more is never waited for.
            self.slot.cut();
        }
        let held = self.slot.0.lock().held.take();
        // Asked outside the lock: it is the author's side's code that answers.
        let asked = held.map(|mut held| (Pin::new(&mut held.0).poll_frame(cx), held));
        let Some((frame, held)) = asked else { return broken() };
        (self.rest, self.is_over) = (held.0.size_hint(), held.0.is_end_stream());
        let reader = frame.is_pending().then(|| cx.waker().clone());
        if self.slot.give_back(held, reader) { frame } else { broken() }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        self.rest
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.slot.cut();
    }
}

fn broken() -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
    Poll::Ready(Some(Err(axum::Error::new(GatewayError::AnswerBroken))))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt as _, StreamExt as _, stream};
    use tokio_test::{assert_pending, assert_ready, task};
    use tokio_util::task::TaskTracker;

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
        let (open, cut_off) = (TaskTracker::new(), CancellationToken::new());
        let tracked = |body| Tracked::new(body, cut_off.clone(), open.token());
        let (whole, watch) = tracked(Body::from("abc"));
        let mut watch_of_whole = task::spawn(watch);
        assert_pending!(watch_of_whole.poll());
        assert_eq!(whole.size_hint().exact(), Some(3));
        let endless = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let (mut endless, watch) = tracked(endless);
        let mut watch = task::spawn(watch);
        assert_pending!(watch.poll());
        let mut reading = task::spawn(endless.frame());
        assert_pending!(reading.poll());

        assert_eq!(whole.collect().now_or_never().unwrap().unwrap().to_bytes(), "abc");
        assert_eq!(open.len(), 1);
        assert_ready!(watch_of_whole.poll());
        cut_off.cancel();
        assert_ready!(watch.poll());

        assert!(reading.is_woken());
        assert!(open.is_empty());
        assert!(assert_ready!(reading.poll()).unwrap().is_err());
    }

    #[test]
    fn an_answer_that_nobody_reads_is_cut_off_all_the_same_and_says_so_when_it_is_read() {
        let (open, cut_off) = (TaskTracker::new(), CancellationToken::new());
        let (mut unread, watch) = Tracked::new(pieces(vec![1; 100]), cut_off.clone(), open.token());
        let mut watch = task::spawn(watch);
        assert_pending!(watch.poll());
        assert!(unread.frame().now_or_never().unwrap().unwrap().is_ok());

        cut_off.cancel();
        assert_ready!(watch.poll());

        assert!(open.is_empty());
        assert!(unread.frame().now_or_never().unwrap().unwrap().is_err());
    }

    #[test]
    fn an_answer_that_always_has_more_ends_with_the_next_frame_after_it_is_cut_off() {
        let (open, cut_off) = (TaskTracker::new(), CancellationToken::new());
        let (mut endless, _watch) =
            Tracked::new(pieces(vec![1; 100]), cut_off.clone(), open.token());
        assert!(endless.frame().now_or_never().unwrap().unwrap().is_ok());

        cut_off.cancel();

        assert!(endless.frame().now_or_never().unwrap().unwrap().is_err());
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
