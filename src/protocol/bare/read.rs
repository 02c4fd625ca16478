//! Reads BARE.

use bytes::Bytes;

use super::Version;
use crate::protocol::{Payload, ProtocolError};

/// The most bytes of a `uint`: seven bits in each.
const MAX_UINT_BYTES: usize = 10;

/// The rest of a message.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    at: usize,
    version: Version,
}

impl Reader {
    /// Reads the version.
    pub fn new(bytes: Bytes) -> Result<Self, ProtocolError> {
        let mut reader = Self { bytes, at: 0, version: Version::CURRENT };
        reader.version = Version::of(u16::from_le_bytes(reader.array()?))?;
        Ok(reader)
    }

    /// Reads what has no version in front of it.
    pub fn bare(bytes: Bytes) -> Self {
        Self { bytes, at: 0, version: Version::CURRENT }
    }

    /// The version of the message.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Refuses what follows the message.
    pub fn end(self) -> Result<(), ProtocolError> {
        self.check_end()
    }

    /// [`Reader::end`] for who keeps it.
    pub fn check_end(&self) -> Result<(), ProtocolError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault("bytes follow it")) }
    }

    /// A `uint`, in as few bytes as it needs.
    pub fn uint(&mut self) -> Result<u64, ProtocolError> {
        let start = self.at;
        let mut value = 0;
        for index in 0..MAX_UINT_BYTES {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                let padded = byte == 0 && index > 0;
                let overflows = index == MAX_UINT_BYTES - 1 && byte > 1;
                if padded || overflows {
                    break;
                }
                return Ok(value);
            }
        }
        Err(ProtocolError::NotBare { offset: start, reason: "a number is not in its short form" })
    }

    /// A `u64`.
    pub fn u64(&mut self) -> Result<u64, ProtocolError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A `bool`.
    pub fn flag(&mut self) -> Result<bool, ProtocolError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.fault("a boolean is neither 0 nor 1")),
        }
    }

    /// A `str`.
    pub fn text(&mut self) -> Result<String, ProtocolError> {
        let data = self.data()?;
        match std::str::from_utf8(&data) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.fault("a text is not UTF-8")),
        }
    }

    /// A `data` that holds CBOR.
    pub fn payload(&mut self) -> Result<Payload, ProtocolError> {
        Payload::new(self.data()?)
    }

    /// An `optional`.
    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ProtocolError>,
    ) -> Result<Option<T>, ProtocolError> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// An `optional` of a `data` that holds CBOR; `undefined` is absent, as it is in a map.
    pub fn optional_payload(&mut self) -> Result<Option<Payload>, ProtocolError> {
        let payload = self.optional(Self::payload)?;
        Ok(payload.filter(|payload| *payload != Payload::undefined()))
    }

    /// A `list`. Each item takes a byte at least, so it is no longer than what came.
    pub fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, ProtocolError>,
    ) -> Result<Vec<T>, ProtocolError> {
        let length = self.uint()?;
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// A `data`, a window on the message.
    pub fn data(&mut self) -> Result<Bytes, ProtocolError> {
        let length = self.uint()?;
        let range = self.range(usize::try_from(length).ok())?;
        Ok(self.bytes.slice(range))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let range = self.range(Some(N))?;
        Ok(self.bytes[range].try_into().expect("the range has as many bytes as were asked for"))
    }

    fn range(&mut self, length: Option<usize>) -> Result<std::ops::Range<usize>, ProtocolError> {
        let end = length
            .and_then(|length| self.at.checked_add(length))
            .filter(|end| *end <= self.bytes.len())
            .ok_or_else(|| self.fault("it ends early"))?;
        let start = std::mem::replace(&mut self.at, end);
        Ok(start..end)
    }

    fn fault(&self, reason: &'static str) -> ProtocolError {
        ProtocolError::NotBare { offset: self.at, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(body: &[u8]) -> Reader {
        Reader::new(Bytes::from([&[4, 0], body].concat())).unwrap()
    }

    #[test]
    fn a_number_has_one_form_and_64_bits() {
        let read = |body: &[u8]| reader(body).uint().ok();

        assert_eq!(read(&[0xac, 0x02]), Some(300));
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            Some(u64::MAX)
        );
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
        assert_eq!(read(&[0x80; 20]), None);
        assert_eq!(read(&[0x80, 0x00]), None);
        assert_eq!(read(&[0x80]), None);
    }

    #[test]
    fn a_length_without_its_bytes_is_refused() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x61];

        assert_eq!(
            reader(&huge).text(),
            Err(ProtocolError::NotBare { offset: 12, reason: "it ends early" })
        );
    }

    #[test]
    fn a_version_that_nobody_speaks_is_refused() {
        for version in [0, 5, 0x0104] {
            let refused = Reader::new(Bytes::from(u16::to_le_bytes(version).to_vec()));
            assert_eq!(refused.err(), Some(ProtocolError::UnsupportedVersion { version }));
        }
        assert!(Reader::new(Bytes::from_static(&[4])).is_err());
    }
}
