//! Bodies that come and go in pieces, between a socket and the author's side, which knows
//! them by a number.
//!
//! # Invariants
//!
//! 1. An exchange is found by its number for as long as the side of the socket needs it:
//!    while the request waits for its answer, and while the body of that is sent.
//! 2. A body that ends without a word has failed: a part is never taken for the whole.
//! 3. Who writes is ahead of the socket by [`AHEAD`] pieces at most, and waits then.
//! 4. A body that comes in pieces is at most [`MAX_BODY`] bytes long, and no piece is waited
//!    for longer than a whole body of the usual way.
//! 5. An exchange ends with the environment whose author's side reads or writes it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures::Stream;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::GatewayError;
use crate::host::embedded::EnvironmentId;
use crate::time::{Clock, Duration};

/// Pieces that are written and not sent.
const AHEAD: usize = 4;

/// The longest body of a request, in bytes: 20 MiB (§4.5).
pub const MAX_BODY: usize = 20 * 1024 * 1024;

static OPEN: Mutex<Option<HashMap<u64, Weak<Exchange>>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A piece of the body of an answer, or its end.
enum Piece {
    Data(Bytes),
    End,
}

/// The body of a request and that of its answer.
pub struct Exchange {
    number: u64,
    /// What comes in pieces, until it has ended.
    incoming: tokio::sync::Mutex<Option<Incoming>>,
    /// Nobody wants more of it.
    unwanted: CancellationToken,
    /// Where the answer goes, until it has ended.
    outgoing: Mutex<Option<mpsc::Sender<Piece>>>,
    /// Nobody reads the answer any more, or it has ended.
    gone: CancellationToken,
    /// Where the author's side is that reads and writes; set when it first does.
    environment: OnceLock<EnvironmentId>,
}

/// A body that comes in pieces.
struct Incoming {
    body: Body,
    /// How many bytes more it may have.
    left: usize,
    /// How long a piece of it may take.
    patience: Option<(Clock, Duration)>,
}

/// What the socket is sent of an answer.
struct Outgoing<G> {
    pieces: Pieces,
    has_ended: bool,
    /// Keeps the exchange (invariant 1), and what is to last as long as it.
    _kept: (Arc<Exchange>, G),
}

impl Exchange {
    /// Begins one. `incoming` is absent where the body has come whole.
    pub(super) fn begin(
        incoming: Option<Body>,
        clock: Clock,
        patience: Duration,
    ) -> (Arc<Self>, Pieces) {
        let (outgoing, pieces) = mpsc::channel(AHEAD);
        let patience = Some((clock, patience));
        let incoming = incoming.map(|body| Incoming { body, left: MAX_BODY, patience });
        let exchange = Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            incoming: tokio::sync::Mutex::new(incoming),
            unwanted: CancellationToken::new(),
            outgoing: Mutex::new(Some(outgoing)),
            gone: CancellationToken::new(),
            environment: OnceLock::new(),
        });
        let gone = exchange.gone.clone().drop_guard();
        let number = exchange.number;
        OPEN.lock().get_or_insert_default().insert(number, Arc::downgrade(&exchange));
        (exchange, Pieces { pieces, _gone: gone })
    }

    /// The one of a number, while there is one.
    pub fn find(number: u64) -> Option<Arc<Self>> {
        OPEN.lock().as_ref()?.get(&number)?.upgrade()
    }

    /// [`Exchange::find`] for the author's side in `environment`, with which it ends.
    pub fn find_for(number: u64, environment: EnvironmentId) -> Option<Arc<Self>> {
        let found = Self::find(number)?;
        found.environment.get_or_init(|| environment);
        Some(found)
    }

    /// Breaks off what an environment has read and written: nobody goes on with it
    /// (invariant 5).
    pub fn environment_gone(environment: EnvironmentId) {
        let open: Vec<_> = match OPEN.lock().as_ref() {
            Some(open) => open.values().filter_map(Weak::upgrade).collect(),
            None => return,
        };
        // Dropped after the unlock, since the last handle takes itself out.
        for exchange in open {
            if exchange.environment.get() == Some(&environment) {
                exchange.cancel();
                exchange.fail();
            }
        }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Has what comes be read from `body` from now on, however long that is and takes: it
    /// is no client's.
    pub(super) async fn receive(&self, body: Body) {
        let incoming = Incoming { body, left: usize::MAX, patience: None };
        let before = self.incoming.lock().await.replace(incoming);
        drop(before);
    }

    /// The next piece of what the client sends; `None` at its end.
    ///
    /// # Errors
    ///
    /// [`GatewayError::BodyTimeout`], [`GatewayError::BodyBroken`],
    /// [`GatewayError::BodyTooLong`], and [`GatewayError::BodyUnwanted`] behind
    /// [`Exchange::cancel`] (invariant 2).
    pub async fn read(&self) -> Result<Option<Bytes>, GatewayError> {
        let mut incoming = self.incoming.lock().await;
        let Some(coming) = incoming.as_mut() else {
            let is_whole = !self.unwanted.is_cancelled();
            return if is_whole { Ok(None) } else { Err(GatewayError::BodyUnwanted) };
        };
        let piece = tokio::select! {
            biased;
            () = self.unwanted.cancelled() => Err(GatewayError::BodyUnwanted),
            piece = coming.next() => piece,
        };
        if !matches!(piece, Ok(Some(_))) {
            *incoming = None;
        }
        piece
    }

    /// Nobody wants more of what the client sends.
    pub fn cancel(&self) {
        self.unwanted.cancel();
        // Now, since it may keep another exchange, which keeps this one. Whoever reads holds
        // the lock, hears of it, and drops it.
        let unwanted = self.incoming.try_lock().ok().and_then(|mut incoming| incoming.take());
        drop(unwanted);
    }

    /// Sends a piece of the answer, as soon as there is room (invariant 3).
    ///
    /// # Errors
    ///
    /// [`GatewayError::AnswerEnded`] when the answer has ended, or the client has gone.
    pub async fn write(&self, data: Bytes) -> Result<(), GatewayError> {
        let outgoing = self.outgoing.lock().clone();
        let outgoing = outgoing.ok_or(GatewayError::AnswerEnded)?;
        outgoing.send(Piece::Data(data)).await.map_err(|_| GatewayError::AnswerEnded)
    }

    /// Ends the answer behind what was written.
    ///
    /// # Errors
    ///
    /// As [`Exchange::write`].
    pub async fn end(&self) -> Result<(), GatewayError> {
        let outgoing = self.outgoing.lock().take();
        let outgoing = outgoing.ok_or(GatewayError::AnswerEnded)?;
        self.gone.cancel();
        outgoing.send(Piece::End).await.map_err(|_| GatewayError::AnswerEnded)
    }

    /// Breaks the answer off: the client sees that it is not whole.
    pub fn fail(&self) {
        let broken = self.outgoing.lock().take();
        drop(broken);
        self.gone.cancel();
    }

    /// Resolves when nobody reads the answer any more, or it has ended. Does not keep it.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        self.gone.clone().cancelled_owned()
    }
}

impl Incoming {
    async fn next(&mut self) -> Result<Option<Bytes>, GatewayError> {
        loop {
            let frame = match &self.patience {
                None => self.body.frame().await,
                Some((clock, patience)) => tokio::select! {
                    biased;
                    frame = self.body.frame() => frame,
                    () = clock.sleep(*patience) => {
                        let seconds = patience.as_secs();
                        return Err(GatewayError::BodyTimeout { seconds });
                    }
                },
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| GatewayError::BodyBroken { reason: error.to_string() })?;
            // Trailers mean nothing to anybody here.
            let data = frame.into_data().unwrap_or_default();
            let left = self.left.checked_sub(data.len());
            self.left = left.ok_or(GatewayError::BodyTooLong { limit: MAX_BODY })?;
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(open) = OPEN.lock().as_mut() {
            open.remove(&self.number);
        }
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What will be written of an answer. Dropping it tells the writer that nobody reads.
pub(super) struct Pieces {
    pieces: mpsc::Receiver<Piece>,
    _gone: DropGuard,
}

impl Pieces {
    /// The body that they are. It keeps `exchange`, and `guard` for as long as it is sent.
    pub(super) fn into_body<G: Send + Unpin + 'static>(
        self,
        exchange: Arc<Exchange>,
        guard: G,
    ) -> Body {
        let _kept = (exchange, guard);
        Body::from_stream(Outgoing { pieces: self, has_ended: false, _kept })
    }
}

impl<G: Unpin> Stream for Outgoing<G> {
    type Item = Result<Bytes, GatewayError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(self.pieces.pieces.poll_recv(cx));
        self.has_ended = !matches!(piece, Some(Piece::Data(_)));
        Poll::Ready(match piece {
            Some(Piece::Data(data)) => Some(Ok(data)),
            Some(Piece::End) => None,
            // Invariant 2.
            None => Some(Err(GatewayError::AnswerBroken)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt as _, StreamExt as _, stream};
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn begin(incoming: Option<Body>) -> (Arc<Exchange>, Pieces) {
        Exchange::begin(incoming, Clock::manual(0).clock(), SECOND)
    }

    fn coming(pieces: Vec<usize>) -> Option<Body> {
        let pieces = pieces.into_iter().map(|length| Ok::<_, Infallible>(vec![7; length]));
        Some(Body::from_stream(stream::iter(pieces)))
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        future.now_or_never().expect("it is ready")
    }

    #[test]
    fn an_exchange_is_found_while_its_request_or_the_body_of_its_answer_lasts() {
        let (exchange, pieces) = begin(None);
        let number = exchange.number();
        assert!(Exchange::find(number).is_some());
        assert!(Exchange::find(number + 1_000_000).is_none());

        let body = pieces.into_body(exchange, ());
        assert!(Exchange::find(number).is_some());
        drop(body);
        assert!(Exchange::find(number).is_none());
    }

    #[test]
    fn what_is_written_comes_out_in_order_and_its_end_too() {
        let (exchange, pieces) = begin(None);
        now(exchange.write("a".into())).unwrap();
        now(exchange.write("b".into())).unwrap();
        now(exchange.end()).unwrap();
        assert_eq!(now(exchange.write("c".into())), Err(GatewayError::AnswerEnded));
        assert_eq!(now(exchange.end()), Err(GatewayError::AnswerEnded));

        let body = pieces.into_body(exchange, ());
        assert_eq!(now(body.collect()).unwrap().to_bytes(), "ab");
    }

    #[test]
    fn who_is_ahead_of_the_socket_waits() {
        let (exchange, pieces) = begin(None);
        for _ in 0..AHEAD {
            now(exchange.write("x".into())).unwrap();
        }
        let writer = Arc::clone(&exchange);
        let mut waits = task::spawn(async move { writer.write("y".into()).await });
        assert_pending!(waits.poll());

        let mut body = pieces.into_body(exchange, ()).into_data_stream();
        assert_eq!(now(body.next()).unwrap().unwrap(), "x");
        assert_ready!(waits.poll()).unwrap();
    }

    #[test]
    fn an_answer_that_is_broken_off_never_looks_whole() {
        let (exchange, pieces) = begin(None);
        now(exchange.write("a".into())).unwrap();
        exchange.fail();

        let mut body = pieces.into_body(exchange, ()).into_data_stream();
        assert_eq!(now(body.next()).unwrap().unwrap(), "a");
        assert!(now(body.next()).unwrap().is_err());
        assert!(now(body.next()).is_none());
    }

    #[test]
    fn a_writer_hears_that_nobody_reads_and_is_not_kept_waiting() {
        let (exchange, pieces) = begin(None);
        let mut gone = task::spawn(exchange.gone());
        for _ in 0..AHEAD {
            now(exchange.write("x".into())).unwrap();
        }
        assert_pending!(gone.poll());
        drop(pieces);

        assert_ready!(gone.poll());
        assert_eq!(now(exchange.write("y".into())), Err(GatewayError::AnswerEnded));
    }

    #[test]
    fn an_answer_ends_with_the_environment_that_writes_it_and_no_other_does() {
        let (here, there) = (EnvironmentId(9_000_001), EnvironmentId(9_000_002));
        let (exchange, pieces) = begin(coming(vec![1]));
        let (other, rest) = begin(None);
        for (exchange, environment) in [(&exchange, here), (&other, there)] {
            let number = exchange.number();
            assert!(Exchange::find_for(number, environment).is_some());
            now(exchange.write("a".into())).unwrap();
        }

        Exchange::environment_gone(here);
        now(other.end()).unwrap();

        assert_eq!(now(exchange.read()), Err(GatewayError::BodyUnwanted));
        assert_eq!(now(exchange.write("b".into())), Err(GatewayError::AnswerEnded));
        assert!(now(pieces.into_body(exchange, ()).collect()).is_err());
        assert_eq!(now(rest.into_body(other, ()).collect()).unwrap().to_bytes(), "a");
    }

    #[test]
    fn a_body_is_read_to_its_end_and_no_further() {
        let (exchange, _pieces) = begin(coming(vec![2, 0, 3]));

        assert_eq!(now(exchange.read()).unwrap().unwrap().len(), 2);
        assert_eq!(now(exchange.read()).unwrap().unwrap().len(), 3);
        assert_eq!(now(exchange.read()), Ok(None));
        assert_eq!(now(exchange.read()), Ok(None));
    }

    #[test]
    fn a_body_of_the_limit_passes_and_one_byte_more_does_not() {
        let (exchange, _pieces) = begin(coming(vec![MAX_BODY, 1]));

        assert_eq!(now(exchange.read()).unwrap().unwrap().len(), MAX_BODY);
        assert_eq!(now(exchange.read()), Err(GatewayError::BodyTooLong { limit: MAX_BODY }));
        assert_eq!(now(exchange.read()), Ok(None));
    }

    #[test]
    fn a_piece_that_does_not_come_is_given_up_or_is_not_wanted_any_more() {
        let manual = Clock::manual(0);
        let endless = || Some(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()));
        let (exchange, _pieces) = Exchange::begin(endless(), manual.clock(), SECOND);
        let mut reads = task::spawn(exchange.read());
        assert_pending!(reads.poll());
        manual.advance(SECOND);
        assert_eq!(assert_ready!(reads.poll()), Err(GatewayError::BodyTimeout { seconds: 1 }));

        let (exchange, _pieces) = Exchange::begin(endless(), manual.clock(), SECOND);
        let mut reads = task::spawn(exchange.read());
        assert_pending!(reads.poll());
        exchange.cancel();
        assert_eq!(assert_ready!(reads.poll()), Err(GatewayError::BodyUnwanted));
    }
}
