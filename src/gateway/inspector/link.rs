//! What is said over the socket of a dashboard.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use crate::error::Error;
use crate::gateway::dialog::{Dialog, Over};
use crate::gateway::outbox::{Outbox, Weighty};
use crate::gateway::web_socket::{Incoming, WebSocket};
use crate::inspector::{InspectorError, ToClient, ToServer, Version};
use crate::protocol::{Close, MAX_SOCKET_MESSAGE, ProtocolError};

/// How many requests of a dashboard may be unanswered. More of it is not read meanwhile.
const MAX_OPEN: usize = 16;

/// How frames are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    pub(super) version: Version,
    /// Whether each one has the version in front.
    pub(super) says_version: bool,
}

impl Framing {
    /// That of a dashboard that has said its version, or has not.
    pub(super) fn of(said: Option<Version>) -> Self {
        Self { version: said.unwrap_or(Version::UNSAID), says_version: said.is_none() }
    }

    pub(super) fn write(self, message: &ToClient) -> Bytes {
        let body = message.encode(self.version);
        match self.says_version {
            true => [&self.version.number().to_le_bytes()[..], &body].concat().into(),
            false => body.into(),
        }
    }

    fn read(self, mut frame: Bytes) -> Result<ToServer, InspectorError> {
        let mut version = self.version;
        if self.says_version {
            let number = frame.first_chunk().map(|number| u16::from_le_bytes(*number));
            let early = ProtocolError::NotBare { offset: frame.len(), reason: "it ends early" };
            version = Version::of(number.ok_or(early)?.into())?;
            frame = frame.slice(2..);
        }
        ToServer::decode(version, frame)
    }
}

/// Something that a dashboard is to be told.
pub(super) enum Out {
    /// A frame.
    Frame(Bytes),
    /// A frame that nobody asked for. The next one is made once this one is on its way.
    Update { frame: Bytes, _held: Arc<OwnedSemaphorePermit> },
    /// It is over.
    End(Error),
    /// The generation is over.
    Gone,
}

impl Weighty for Out {
    fn weight(&self) -> usize {
        match self {
            Self::Frame(frame) | Self::Update { frame, .. } => frame.len(),
            Self::End(_) | Self::Gone => 0,
        }
    }
}

/// The requests of a dashboard that are not answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Unanswered(Arc<AtomicUsize>);

impl Unanswered {
    /// One is answered.
    pub(super) fn answered(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One dashboard.
pub(super) struct Link {
    pub(super) outbox: Arc<Outbox<Out>>,
    pub(super) framing: Framing,
    pub(super) requests: UnboundedSender<ToServer>,
    pub(super) unanswered: Unanswered,
    pub(super) ray_id: String,
    /// It has been told something.
    pub(super) is_open: bool,
}

impl Dialog for Link {
    type Out = Out;

    fn outbox(&self) -> &Arc<Outbox<Out>> {
        &self.outbox
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn listens(&self) -> bool {
        self.unanswered.0.load(Ordering::Relaxed) < MAX_OPEN
    }

    fn ray_id(&self) -> &str {
        &self.ray_id
    }

    fn write(&mut self, socket: &mut WebSocket, out: Out) -> Result<(), Over> {
        let frame = match out {
            Out::Frame(frame) | Out::Update { frame, .. } => frame,
            Out::End(error) => return Err(self.over(error)),
            Out::Gone => return Err(Over::With(Close::normal("actor.stopped"))),
        };
        self.is_open = true;
        socket.write(frame, false).map_err(|_| Over::Gone)
    }

    fn take(&mut self, incoming: Incoming) -> Result<(), Over> {
        match incoming {
            Incoming::Message { bytes, .. } => {
                match self.framing.read(bytes) {
                    Ok(request) => {
                        self.unanswered.0.fetch_add(1, Ordering::Relaxed);
                        // Whoever takes them is there as long as this is.
                        drop(self.requests.send(request));
                    }
                    Err(error) => {
                        let told = ToClient::Error { message: error.to_string() };
                        self.outbox.push(Out::Frame(self.framing.write(&told)));
                    }
                }
                Ok(())
            }
            Incoming::Close { .. } => Err(Over::With(Close::normal(""))),
            Incoming::Gone => Err(Over::Gone),
            Incoming::TooLong(size) => {
                let limit = MAX_SOCKET_MESSAGE;
                Err(self.over(ProtocolError::IncomingTooLong { size, limit }.into()))
            }
            Incoming::Sign | Incoming::NotText | Incoming::Broken => Ok(()),
        }
    }

    fn end(&mut self, _: &mut WebSocket) {
        self.outbox.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_version_in_front_where_it_was_not_said() {
        let (said, unsaid) = (Framing::of(Some(Version::V6)), Framing::of(None));
        let told = ToClient::StateUpdated { state: Bytes::from_static(&[5]) };

        assert_eq!(said.write(&told)[..], [5, 1, 5]);
        assert_eq!(unsaid.write(&told)[..], [5, 0, 5, 1, 5]);
        let asked = Ok(ToServer::State { id: 9 });
        assert_eq!(said.read(Bytes::from_static(&[1, 9])), asked);
        assert_eq!(unsaid.read(Bytes::from_static(&[5, 0, 1, 9])), asked);
        assert_eq!(unsaid.read(Bytes::from_static(&[1, 0, 1, 9])), asked);
        for broken in [&[][..], &[5], &[5, 0], &[7, 0, 1, 9]] {
            assert!(unsaid.read(Bytes::copy_from_slice(broken)).is_err(), "{broken:?}");
        }
    }
}
