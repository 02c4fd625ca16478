//! Writes BARE.

use super::Version;
use crate::protocol::Payload;

/// A message in the making.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    version: Version,
}

impl Writer {
    /// Writes the version.
    pub fn new(version: Version) -> Self {
        Self { out: version.number().to_le_bytes().to_vec(), version }
    }

    /// Writes no version in front.
    pub fn bare() -> Self {
        Self { out: Vec::new(), version: Version::CURRENT }
    }

    /// The version of the message.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// A `uint`.
    pub fn uint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
        self
    }

    /// A `u64`.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `bool`.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.out.push(flag.into());
        self
    }

    /// A `str`.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.data(text.as_bytes())
    }

    /// A `data` that holds CBOR.
    pub fn payload(&mut self, payload: &Payload) -> &mut Self {
        self.data(payload.cbor())
    }

    /// An `optional`.
    pub fn optional<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T) -> &mut Self,
    ) -> &mut Self {
        self.flag(value.is_some());
        match value {
            Some(value) => write(self, value),
            None => self,
        }
    }

    /// A `list`.
    pub fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.uint(items.len() as u64);
        for item in items {
            write(self, item);
        }
        self
    }

    /// A `data`.
    pub fn data(&mut self, data: &[u8]) -> &mut Self {
        self.uint(data.len() as u64);
        self.out.extend_from_slice(data);
        self
    }
}
