//! One message in three encodings.

use bytes::Bytes;

use super::bare::{self, Version};
use super::cbor::{self, Item};
use super::{ENVELOPE, Encoding, MAX_DEPTH, ProtocolError, json};

/// A message that crosses the wire.
pub trait Wire: Shape {
    /// The message in bytes.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::Unrepresentable`], of JSON alone.
    fn encode(&self, encoding: Encoding) -> Result<Bytes, ProtocolError> {
        match encoding {
            Encoding::Bare => self.encode_bare(Version::CURRENT),
            Encoding::Cbor => Ok(self.map().into()),
            Encoding::Json => Ok(json::from_cbor(&self.map(), MAX_DEPTH + ENVELOPE)?.into()),
        }
    }

    /// The message in BARE of a version; what the version has not is left out.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::UnsupportedVersion`] if the version has no such message.
    fn encode_bare(&self, version: Version) -> Result<Bytes, ProtocolError> {
        version.at_least(Self::SINCE)?;
        let mut out = bare::Writer::new(version);
        self.write_bare(&mut out);
        Ok(out.into_bytes().into())
    }

    /// Reads a message. What it holds of `bytes` are windows, not copies.
    ///
    /// # Errors
    ///
    /// Those of the code `actor/invalid_request`.
    fn decode(encoding: Encoding, bytes: Bytes) -> Result<Self, ProtocolError> {
        match encoding {
            Encoding::Bare => {
                let mut reader = bare::Reader::new(bytes)?;
                reader.version().at_least(Self::SINCE)?;
                let message = Self::read_bare(&mut reader)?;
                reader.end()?;
                Ok(message)
            }
            Encoding::Cbor => Self::read_map(&Item::message(bytes)?),
            Encoding::Json => {
                // Well-formed, since it was written here.
                Self::read_map(&Item::message(json::to_cbor(&bytes)?.into())?)
            }
        }
    }
}

impl<T: Shape> Wire for T {}

/// The two shapes of a message.
pub trait Shape: Sized {
    /// The first version of BARE that has the message.
    const SINCE: Version = Version::V1;

    /// Writes the fields in their order.
    fn write_bare(&self, out: &mut bare::Writer);

    /// Reads the fields in their order.
    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError>;

    /// Writes the map of the fields.
    fn write_map(&self, out: &mut cbor::Writer);

    /// Reads the map of the fields.
    fn read_map(from: &Item) -> Result<Self, ProtocolError>;
}

/// [`Shape::write_map`] into bytes of its own.
trait Map {
    fn map(&self) -> Vec<u8>;
}

impl<T: Shape> Map for T {
    fn map(&self) -> Vec<u8> {
        let mut out = cbor::Writer::default();
        self.write_map(&mut out);
        out.into_bytes()
    }
}
