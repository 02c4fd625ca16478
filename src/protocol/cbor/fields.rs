//! The parts of a message: an item of a map and what it may be.

use bytes::Bytes;

use super::write::whole;
use super::{Event, Walker};
use crate::protocol::{ENVELOPE, MAX_DEPTH, Payload, ProtocolError};

/// One well-formed item; a window on the message, not a copy.
#[derive(Clone, Debug)]
pub struct Item {
    bytes: Bytes,
    field: &'static str,
}

impl Item {
    /// The item that a message is.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::NotCbor`] unless it is one item and nothing more, and
    /// [`ProtocolError::TooDeep`].
    pub fn message(bytes: Bytes) -> Result<Self, ProtocolError> {
        let mut walker = Walker::new(&bytes, 0, MAX_DEPTH + ENVELOPE);
        walker.finish()?;
        if walker.at() != bytes.len() {
            return Err(ProtocolError::NotCbor { offset: walker.at(), reason: "bytes follow it" });
        }
        Ok(Self { bytes, field: "the message" })
    }

    /// The values under these keys of a map; the last one of a key counts.
    pub fn fields<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Field; N], ProtocolError> {
        let mut found = names.map(|field| Field { field, item: None });
        let mut walker = self.walker();
        if walker.next()? != Some(Event::Map) {
            return Err(self.is_not("an object"));
        }
        loop {
            let key = match walker.next()? {
                None | Some(Event::End) => return Ok(found),
                Some(Event::Text(key)) => key,
                Some(_) => return Err(self.is_not("an object with names for keys")),
            };
            let start = walker.at();
            let mut value = self.walker_at(start);
            value.finish()?;
            if let Some(field) = found.iter_mut().find(|field| field.field == key) {
                let bytes = self.bytes.slice(start..value.at());
                field.item = Some(Self { bytes, field: field.field });
            }
            walker.pass(value.at());
        }
    }

    /// The items of an array that has exactly these.
    pub fn items<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Self; N], ProtocolError> {
        const EXPECTED: &str = "an array of its parts";
        let mut walker = self.walker();
        if walker.next()? != Some(Event::Array) {
            return Err(self.is_not(EXPECTED));
        }
        let mut found = names.map(|field| Self { bytes: Bytes::new(), field });
        for item in &mut found {
            let start = walker.at();
            let mut value = self.walker_at(start);
            value.finish()?;
            item.bytes = self.bytes.slice(start..value.at());
            walker.pass(value.at());
        }
        match walker.next()? {
            Some(Event::End) => Ok(found),
            _ => Err(self.is_not(EXPECTED)),
        }
    }

    /// Whether it is a number below 0.
    pub fn is_negative(&self) -> Result<bool, ProtocolError> {
        match self.walker().next()? {
            Some(Event::Negative { .. }) => Ok(true),
            Some(Event::Float(number)) => Ok(number < 0.0),
            _ => Ok(false),
        }
    }

    /// As text.
    pub fn text(&self) -> Result<String, ProtocolError> {
        match self.walker().next()? {
            Some(Event::Text(text)) => Ok(text.into_owned()),
            _ => Err(self.is_not("a text")),
        }
    }

    /// As `true` or `false`.
    pub fn flag(&self) -> Result<bool, ProtocolError> {
        match self.walker().next()? {
            Some(Event::Simple(20)) => Ok(false),
            Some(Event::Simple(21)) => Ok(true),
            _ => Err(self.is_not("a boolean")),
        }
    }

    /// As an identifier: a whole number, or the pair that stands for a bigint in JSON.
    pub fn id(&self) -> Result<u64, ProtocolError> {
        const EXPECTED: &str = "a whole number from 0";
        let mut walker = self.walker();
        match walker.next()? {
            Some(Event::Unsigned { value, .. }) => Ok(value),
            Some(Event::Float(number)) => whole(number).ok_or_else(|| self.is_not(EXPECTED)),
            Some(Event::Array) => {
                let tag = walker.next()?;
                let digits = walker.next()?;
                match (tag, digits, walker.next()?) {
                    (Some(Event::Text(tag)), Some(Event::Text(digits)), Some(Event::End))
                        if tag == "$BigInt" && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
                    {
                        digits.parse().map_err(|_| self.is_not(EXPECTED))
                    }
                    _ => Err(self.is_not(EXPECTED)),
                }
            }
            _ => Err(self.is_not(EXPECTED)),
        }
    }

    /// As a span of time in milliseconds; a part of one counts as a whole one, so that
    /// nobody waits less than was asked for.
    pub fn milliseconds(&self) -> Result<u64, ProtocolError> {
        match self.walker().next()? {
            Some(Event::Float(number)) => {
                whole(number.ceil()).ok_or_else(|| self.is_not("a number of milliseconds"))
            }
            _ => self.id(),
        }
    }

    /// As what somebody passes on.
    pub fn payload(&self) -> Result<Payload, ProtocolError> {
        Payload::new(self.bytes.clone())
    }

    fn is_absent(&self) -> bool {
        matches!(self.bytes[..], [0xf6 | 0xf7])
    }

    fn walker(&self) -> Walker<'_> {
        self.walker_at(0)
    }

    fn walker_at(&self, at: usize) -> Walker<'_> {
        Walker::new(&self.bytes, at, MAX_DEPTH + ENVELOPE)
    }

    fn is_not(&self, expected: &'static str) -> ProtocolError {
        ProtocolError::Field { field: self.field, expected }
    }
}

/// What a map has under a name.
#[derive(Clone, Debug)]
pub struct Field {
    field: &'static str,
    item: Option<Item>,
}

impl Field {
    /// The item, which has to be there.
    pub fn required(self) -> Result<Item, ProtocolError> {
        let field = self.field;
        self.item.ok_or(ProtocolError::Field { field, expected: "there" })
    }

    /// The item; `None` if it is missing, `null` or `undefined`.
    pub fn optional(self) -> Option<Item> {
        self.item.filter(|item| !item.is_absent())
    }

    /// The item as what somebody passes on; `undefined` if it is missing.
    pub fn payload(self) -> Result<Payload, ProtocolError> {
        self.item.map_or_else(|| Ok(Payload::undefined()), |item| item.payload())
    }

    /// The item; `None` only if it is missing or `undefined`: `null` is a value.
    pub fn given(self) -> Option<Item> {
        self.item.filter(|item| item.bytes[..] != [0xf7])
    }
}
