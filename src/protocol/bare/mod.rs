//! BARE behind a version: two bytes, little endian, then the message (§3.6).
//!
//! Written by hand, since the payloads of a message are windows on the bytes that came
//! in, and since no length may be believed before there are bytes for it.

mod read;
mod write;

pub use self::read::Reader;
pub use self::write::Writer;

use super::ProtocolError;

/// A version of the client protocol. Every one of them is read; what is sent is
/// [`Version::CURRENT`] unless a caller asks for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The greeting has a third field, which nobody uses.
    V1 = 1,
    /// No queues.
    V2 = 2,
    /// Errors do not name their actor.
    V3 = 3,
    /// All of it.
    V4 = 4,
}

impl Version {
    /// All of them, the oldest first.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::V3, Self::V4];

    /// What the published clients speak.
    pub const CURRENT: Self = Self::V4;

    /// The number in front of a message.
    pub const fn number(self) -> u16 {
        self as u16
    }

    fn of(number: u16) -> Result<Self, ProtocolError> {
        Self::ALL
            .into_iter()
            .find(|version| version.number() == number)
            .ok_or(ProtocolError::UnsupportedVersion { version: number })
    }

    /// Refuses a version before `first`, which does not know the message.
    pub(super) fn at_least(self, first: Self) -> Result<(), ProtocolError> {
        if self < first {
            return Err(ProtocolError::UnsupportedVersion { version: self.number() });
        }
        Ok(())
    }
}
