//! A WebSocket: messages in, messages out that are ready together in one write, an end
//! with a reason, and a client that is asked whether it is still there.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError as FrameError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::Shared;
use super::socket::Impatient;
use super::wire::{Wire, WireStream};
use crate::protocol::Close;
use crate::time::{Clock, Duration, Sleep};

/// How much is taken at once of what was read, in bytes. Each socket has a buffer of it, and
/// most are quiet.
const READ_BUFFER: usize = 256;

/// From how many bytes on messages are written without waiting for others.
const WRITE_BUFFER: usize = 64 * 1024;

/// How much may wait to leave while more of the client is read, in bytes. What it sends may
/// have to be answered at once, as pings are, and it need not read that.
const MAX_UNSENT: usize = 64 * 1024;

/// How long a client may take to hang up once the end has left, and how much more of it is
/// read, in bytes: one that is still sending when the connection goes does not get to read
/// why.
const LINGER: Duration = Duration::from_secs(2);
const DRAINED: usize = 1024 * 1024;

/// What came.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message.
    Message { bytes: Bytes, is_text: bool },
    /// A sign of life: a ping or its answer.
    Sign,
    /// The client closes.
    Close { code: u16, reason: String },
    /// It went without a word.
    Gone,
    /// It sent more than it may.
    TooLong(usize),
    /// A text is none.
    NotText,
    /// It breaks the protocol.
    Broken,
}

/// What a socket is made of.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A socket of a client.
pub(super) struct WebSocket {
    stream: WebSocketStream<Box<dyn Duplex>>,
    /// The way past the task, if there is one.
    wire: Option<Arc<Wire>>,
    clock: Clock,
    /// Something was written and is not on its way.
    unflushed: bool,
    /// How often a silent client is asked for a sign of life, and how long it has for it.
    patience: Duration,
    alarm: Sleep,
    /// Something came since it was asked.
    heard: bool,
    /// It was asked.
    asked: bool,
}

impl WebSocket {
    /// A socket behind HTTP, whose messages have at most `limit` bytes.
    pub(super) async fn new(upgraded: Upgraded, shared: &Shared, limit: usize) -> Self {
        let clock = shared.clock().clone();
        // A connection that somebody else accepted is what it is.
        let (stream, wire, read): (Box<dyn Duplex>, _, _) =
            match upgraded.downcast::<TokioIo<Impatient<TcpStream>>>() {
                Ok(parts) => {
                    let wire = Wire::new(parts.io.into_inner().into_inner());
                    let patience = shared.options.bounds.write_timeout;
                    let stream = WireStream::new(Arc::clone(&wire), clock.clone(), patience);
                    // What the client sent before it knew that it may.
                    (Box::new(stream), Some(wire), parts.read_buf.to_vec())
                }
                Err(upgraded) => (Box::new(TokioIo::new(upgraded)), None, Vec::new()),
            };
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let stream = WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config));
        let patience = shared.options.bounds.ping_timeout;
        Self {
            stream: stream.await,
            wire,
            alarm: clock.sleep(patience),
            clock,
            unflushed: false,
            patience,
            heard: false,
            asked: false,
        }
    }

    /// The way past its task.
    pub(super) fn wire(&self) -> Option<&Arc<Wire>> {
        self.wire.as_ref()
    }

    /// Whether messages may be written: those before are on their way. Otherwise whoever
    /// asks is woken when they are.
    pub(super) fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        if self.is_unflushed() {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn is_unflushed(&self) -> bool {
        self.unflushed || self.wire.as_ref().is_some_and(|wire| wire.has_rest())
    }

    /// Whether so much waits to leave that nothing more of the client is to be read.
    /// [`WebSocket::poll_flushed`] wakes whoever waits for that to change.
    pub(super) fn is_behind(&self) -> bool {
        match &self.wire {
            Some(wire) => wire.rest_len() > MAX_UNSENT,
            None => self.unflushed,
        }
    }

    /// Writes a message, which leaves with the next flush.
    pub(super) fn write(&mut self, bytes: Bytes, is_text: bool) -> Result<(), SocketError> {
        let message = match is_text {
            true => match bytes.try_into() {
                Ok(text) => Message::Text(text),
                Err(_) => return Err(SocketError::Utf8("not a text".to_owned())),
            },
            false => Message::Binary(bytes),
        };
        self.unflushed = true;
        Pin::new(&mut self.stream).start_send(message)
    }

    /// What came next.
    pub(super) fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Incoming> {
        let incoming = match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
            Some(Ok(Message::Text(text))) => {
                Incoming::Message { bytes: text.into(), is_text: true }
            }
            Some(Ok(Message::Binary(bytes))) => Incoming::Message { bytes, is_text: false },
            Some(Ok(Message::Close(frame))) => {
                // Without a code: as RFC 6455 has it.
                let (code, reason) = frame.map_or((1005, String::new()), |frame| {
                    (frame.code.into(), frame.reason.as_str().to_owned())
                });
                Incoming::Close { code, reason }
            }
            Some(Ok(_)) => {
                // A ping is answered by what reads it, into a buffer that has no bound.
                self.unflushed |= self.wire.is_none();
                Incoming::Sign
            }
            Some(Err(SocketError::Capacity(CapacityError::MessageTooLong { size, .. }))) => {
                Incoming::TooLong(size)
            }
            Some(Err(SocketError::Utf8(_))) => Incoming::NotText,
            Some(Err(SocketError::Protocol(FrameError::ResetWithoutClosingHandshake)))
            | Some(Err(SocketError::Io(_)))
            | None => Incoming::Gone,
            Some(Err(error)) => {
                tracing::debug!(%error, "a client breaks the protocol of its socket");
                Incoming::Broken
            }
        };
        self.heard = true;
        Poll::Ready(incoming)
    }

    /// Asks a client that says nothing whether it is there. Ready when it has not answered.
    /// To be polled until it is pending. `listens` says whether what it says is read. One
    /// that has something to take before the question is not asked: that it takes it is
    /// the sign.
    pub(super) fn poll_silence(&mut self, cx: &mut Context<'_>, listens: bool) -> Poll<()> {
        loop {
            ready!(Pin::new(&mut self.alarm).poll(cx));
            let is_unflushed = self.is_unflushed();
            if self.asked && !self.heard && listens && !is_unflushed {
                return Poll::Ready(());
            }
            self.alarm = self.clock.sleep(self.patience);
            self.asked = !self.heard && !is_unflushed;
            self.heard = false;
            if self.asked {
                self.unflushed = true;
                let asked = Pin::new(&mut self.stream).start_send(Message::Ping(Bytes::new()));
                if asked.is_err() {
                    return Poll::Ready(());
                }
                // Whoever polls has to flush it.
                cx.waker().wake_by_ref();
            }
        }
    }

    /// Ends it with a reason, behind everything that was written: a client may take as long
    /// for that as before the end, and has [`LINGER`] to hang up.
    pub(super) async fn finish(mut self, close: Close) {
        let Close { code, reason } = close;
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        if self.stream.close(Some(frame)).await.is_err() {
            // The client has closed, and the answer to that waits to leave.
            drop(self.stream.flush().await);
            return;
        }
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            () = self.hang_up() => {}
            () = clock.sleep(LINGER) => {}
        }
    }

    async fn hang_up(&mut self) {
        // One that speaks the protocol answers the end with its own.
        while let Some(Ok(message)) = self.stream.next().await {
            if message.is_close() {
                return;
            }
        }
        let stream = self.stream.get_mut();
        if stream.shutdown().await.is_err() {
            return;
        }
        let (mut buffer, mut drained) = (vec![0; READ_BUFFER], 0);
        while drained < DRAINED {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => drained += count,
            }
        }
    }
}
