//! The way out of a socket, for its task and for whoever has an answer while that rests.
//!
//! Waking a thread costs several times what writing a short answer does. So an answer may be
//! written where it is made, if nothing is on its way before it.
//!
//! # Invariants
//!
//! 1. Whatever is handed to [`Wire`] is whole frames, and leaves whole and in that order:
//!    what the socket does not take stays here, in front of what comes later.
//! 2. The lock covers one write that does not wait.
//! 3. A client has its time for as long as it takes something, however little: it is given
//!    up once the socket has taken nothing for all of its patience.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::socket::takes_nothing;
use crate::time::{Clock, Duration, Sleep};

/// The head of a frame: at most so many bytes.
const MAX_HEAD: usize = 10;

/// How much is read of a socket at once, in bytes; what is not asked for yet is kept, so a
/// client that is not listened to holds as much at most.
const READ: usize = 16 * 1024;

thread_local! {
    /// What is read, for a moment: most sockets are quiet, and need no memory of their own.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// A socket of the system.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    way: Mutex<Way>,
}

#[derive(Debug, Default)]
struct Way {
    /// What the socket has not taken.
    rest: BytesMut,
    /// How many bytes it has taken; only whether that changes counts.
    taken: u64,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Arc<Self> {
        Arc::new(Self { stream, way: Mutex::default() })
    }

    /// Sends a message in one frame, as far as the socket takes it now. Says whether
    /// something is left, which the task of the socket has to flush.
    pub(super) fn send(&self, message: &[u8], is_text: bool) -> bool {
        let mut frame = BytesMut::with_capacity(MAX_HEAD + message.len());
        frame.put_u8(if is_text { 0x81 } else { 0x82 });
        match message.len() {
            short @ 0..=125 => frame.put_u8(short as u8),
            middle @ 126..=0xffff => {
                frame.put_u8(126);
                frame.put_u16(middle as u16);
            }
            long => {
                frame.put_u8(127);
                frame.put_u64(long as u64);
            }
        }
        frame.extend_from_slice(message);
        let mut way = self.way.lock();
        way.rest.extend_from_slice(&frame);
        // A socket that is broken is the task's matter, which finds that out.
        drop(self.push(&mut way));
        !way.rest.is_empty()
    }

    /// Whether something is left to be flushed.
    pub(super) fn has_rest(&self) -> bool {
        self.rest_len() > 0
    }

    /// How much that is, in bytes.
    pub(super) fn rest_len(&self) -> usize {
        self.way.lock().rest.len()
    }

    fn push(&self, way: &mut Way) -> io::Result<()> {
        let Way { rest, taken } = way;
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    *taken = taken.wrapping_add(count as u64);
                    rest.advance(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if rest.capacity() > 0 {
            *rest = BytesMut::new();
        }
        Ok(())
    }
}

/// The task's end of it.
pub(super) struct WireStream {
    wire: Arc<Wire>,
    clock: Clock,
    patience: Duration,
    /// [`Way::taken`] when it was looked at last.
    taken: u64,
    /// Since when that stands still while something is left (invariant 3).
    stalled: Option<Sleep>,
    /// What was read and not asked for yet: less than [`READ`].
    ahead: Bytes,
}

impl WireStream {
    pub(super) fn new(wire: Arc<Wire>, clock: Clock, patience: Duration) -> Self {
        Self { wire, clock, patience, taken: 0, stalled: None, ahead: Bytes::new() }
    }
}

impl AsyncRead for WireStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { wire, ahead, .. } = self.get_mut();
        if !ahead.is_empty() {
            buffer.put_slice(&ahead.split_to(ahead.len().min(buffer.remaining())));
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(wire.stream.poll_read_ready(cx))?;
            let read: io::Result<()> = SCRATCH.with_borrow_mut(|scratch| {
                let count = wire.stream.try_read(scratch)?;
                let (asked, rest) = scratch[..count].split_at(count.min(buffer.remaining()));
                buffer.put_slice(asked);
                if !rest.is_empty() {
                    *ahead = Bytes::copy_from_slice(rest);
                }
                Ok(())
            });
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }
}

impl AsyncWrite for WireStream {
    /// Takes all of it (invariant 1): how much may be on its way is counted elsewhere.
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut way = self.wire.way.lock();
        way.rest.extend_from_slice(bytes);
        Poll::Ready(self.wire.push(&mut way).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { wire, clock, patience, taken, stalled, .. } = self.get_mut();
        loop {
            let (is_empty, now_taken) = {
                let mut way = wire.way.lock();
                wire.push(&mut way)?;
                (way.rest.is_empty(), way.taken)
            };
            if is_empty || *taken != now_taken {
                *stalled = None;
            }
            *taken = now_taken;
            if is_empty {
                return Poll::Ready(Ok(()));
            }
            if wire.stream.poll_write_ready(cx)?.is_pending() {
                let stalled = stalled.get_or_insert_with(|| clock.sleep(*patience));
                ready!(Pin::new(stalled).poll(cx));
                return Poll::Ready(Err(takes_nothing()));
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Through what is shared of it: the stream's own way wants it alone.
        Poll::Ready(SockRef::from(&self.wire.stream).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (listener.accept().await.unwrap().0, theirs)
    }

    fn stream(wire: &Arc<Wire>, clock: &Clock) -> WireStream {
        WireStream::new(Arc::clone(wire), clock.clone(), PATIENCE)
    }

    #[tokio::test]
    async fn a_message_of_any_length_is_one_frame() {
        for (length, head) in [
            (0, &b"\x81\0"[..]),
            (125, b"\x81\x7d"),
            (126, b"\x81\x7e\0\x7e"),
            (65_536, b"\x81\x7f\0\0\0\0\0\x01\0\0"),
        ] {
            let (ours, mut theirs) = pair().await;
            let wire = Wire::new(ours);
            let mut task = stream(&wire, &Clock::manual(0).clock());
            wire.send(&vec![7; length], true);
            let mut read = vec![0; head.len() + length];

            let (flushed, came) = tokio::join!(task.flush(), theirs.read_exact(&mut read));

            flushed.unwrap();
            came.unwrap();
            assert_eq!((&read[..head.len()], read.len() - head.len()), (head, length));
            assert!(!wire.has_rest());
        }
    }

    #[tokio::test]
    async fn what_is_read_at_once_is_handed_out_in_order_however_little_is_asked_for() {
        let (ours, mut theirs) = pair().await;
        let mut task = stream(&Wire::new(ours), &Clock::manual(0).clock());
        let sent: Vec<u8> = (0..3 * READ).map(|n| (n % 251) as u8).collect();
        let read = async {
            let (mut read, mut part) = (Vec::new(), [0; 100]);
            while read.len() < sent.len() {
                let count = task.read(&mut part).await.unwrap();
                read.extend_from_slice(&part[..count]);
            }
            read
        };

        let (written, read) = tokio::join!(theirs.write_all(&sent), read);

        written.unwrap();
        assert_eq!(read, sent);
        assert!(task.ahead.is_empty());
    }

    #[tokio::test]
    async fn what_the_socket_does_not_take_stays_in_front_of_what_comes_later() {
        let (ours, mut theirs) = pair().await;
        let wire = Wire::new(ours);
        let mut task = stream(&wire, &Clock::manual(0).clock());
        let long = vec![7; 16 * 1024 * 1024];
        // The socket becomes writable for whoever asks it.
        wire.stream.writable().await.unwrap();
        assert!(wire.send(&long, false));
        task.write_all(b"later").await.unwrap();
        let mut read = vec![0; 10 + long.len() + 5];

        let (flushed, came) = tokio::join!(task.flush(), theirs.read_exact(&mut read));

        flushed.unwrap();
        came.unwrap();
        assert!(read[10..10 + long.len()].iter().all(|byte| *byte == 7));
        assert_eq!(&read[10 + long.len()..], b"later");
    }

    #[tokio::test]
    async fn a_client_that_takes_a_little_at_a_time_has_its_time_and_one_that_takes_nothing_not() {
        const MIB: usize = 1024 * 1024;
        let manual = Clock::manual(0);
        let (ours, theirs) = pair().await;
        let wire = Wire::new(ours);
        let mut task = stream(&wire, &manual.clock());
        wire.stream.writable().await.unwrap();
        assert!(wire.send(&vec![7; 128 * MIB], false));
        // Whatever else is written meanwhile is no progress of the client.
        task.write_all(b"later").await.unwrap();
        let mut flush = task::spawn(task.flush());
        assert_pending!(flush.poll());

        let mut part = vec![0; MIB];
        for _ in 0..3 {
            manual.advance(PATIENCE / 4 * 3);
            // Nothing is written meanwhile, so it is what the system holds.
            theirs.readable().await.unwrap();
            while theirs.try_read(&mut part).is_ok_and(|count| count > 0) {}
            wire.stream.writable().await.unwrap();
            assert_pending!(flush.poll());
        }
        manual.advance(PATIENCE / 2);
        wire.send(b"more", true);
        assert_pending!(flush.poll());
        manual.advance(PATIENCE / 2);

        let error = assert_ready!(flush.poll()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
