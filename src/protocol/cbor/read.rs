//! Walks through CBOR without calling itself and without keeping what it reads.

use std::borrow::Cow;

use crate::protocol::ProtocolError;

/// What a reader meets, in the order of the bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// An integer from 0. Of eight bytes it is a bigint to JavaScript.
    Unsigned {
        /// The number.
        value: u64,
        /// Whether it has eight bytes.
        wide: bool,
    },
    /// The integer `-1 - value`. Of eight bytes it is a bigint to JavaScript.
    Negative {
        /// See [`Event::Negative`].
        value: u64,
        /// Whether it has eight bytes.
        wide: bool,
    },
    /// A byte string, joined when it came in chunks.
    Bytes(Cow<'a, [u8]>),
    /// A text, joined when it came in chunks.
    Text(Cow<'a, str>),
    /// An array begins; its end is an [`Event::End`].
    Array,
    /// A map begins, keys and values in turn; its end is an [`Event::End`].
    Map,
    /// The next item is tagged; after it comes an [`Event::End`].
    Tag(u64),
    /// `false` is 20, `true` 21, `null` 22, `undefined` 23.
    Simple(u8),
    /// A number of any of the three widths.
    Float(f64),
    /// The innermost array, map or tag ends.
    End,
}

/// What is still to come of an array, a map or a tag.
#[derive(Clone, Copy, Debug)]
enum Left {
    /// So many items.
    Items(u64),
    /// Items until a break; in a map, whether a value has to come first.
    Break { map: bool, value_due: bool },
}

/// Reads one item, the nested ones one by one.
#[derive(Debug)]
pub struct Walker<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Vec<Left>,
    max_depth: usize,
    done: bool,
}

impl<'a> Walker<'a> {
    /// Reads the item that starts at `at`.
    pub fn new(bytes: &'a [u8], at: usize, max_depth: usize) -> Self {
        Self { bytes, at, open: Vec::new(), max_depth, done: false }
    }

    /// The byte after what was read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes on at `at`, behind an item that somebody else has read.
    pub fn pass(&mut self, at: usize) {
        match self.open.last_mut() {
            Some(Left::Items(left)) => *left -= 1,
            Some(Left::Break { value_due, .. }) => *value_due = false,
            None => self.done = true,
        }
        self.at = at;
    }

    /// Reads to the end of the item.
    pub fn finish(&mut self) -> Result<(), ProtocolError> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// The next event; `None` after the item.
    pub fn next(&mut self) -> Result<Option<Event<'a>>, ProtocolError> {
        if self.done {
            return Ok(None);
        }
        match self.open.last().copied() {
            Some(Left::Items(0)) => return Ok(Some(self.close())),
            Some(Left::Break { value_due, .. }) if self.bytes.get(self.at) == Some(&0xff) => {
                if value_due {
                    return Err(self.fault("a map has a key without a value"));
                }
                self.at += 1;
                return Ok(Some(self.close()));
            }
            _ => {}
        }
        match self.open.last_mut() {
            Some(Left::Items(left)) => *left -= 1,
            Some(Left::Break { map, value_due }) => *value_due = *map && !*value_due,
            None => {}
        }
        let event = self.item()?;
        self.done = self.open.is_empty();
        Ok(Some(event))
    }

    fn close(&mut self) -> Event<'a> {
        self.open.pop();
        self.done = self.open.is_empty();
        Event::End
    }

    fn item(&mut self) -> Result<Event<'a>, ProtocolError> {
        let start = self.at;
        let (major, info) = self.initial()?;
        if major == 7 {
            return self.simple(info);
        }
        let value = self.argument(info)?;
        let wide = info == 27;
        let fixed = |value: Option<u64>| {
            value.ok_or(ProtocolError::NotCbor { offset: start, reason: "it has no length" })
        };
        Ok(match major {
            0 => Event::Unsigned { value: fixed(value)?, wide },
            1 => Event::Negative { value: fixed(value)?, wide },
            2 => Event::Bytes(match value {
                Some(length) => Cow::Borrowed(self.take(length)?),
                None => Cow::Owned(self.pieces(2)?),
            }),
            3 => Event::Text(match value {
                Some(length) => Cow::Borrowed(self.text(length)?),
                None => Cow::Owned(
                    String::from_utf8(self.pieces(3)?)
                        .expect("pieces that are texts are a text together"),
                ),
            }),
            4 => {
                self.open(value.map_or(Left::Break { map: false, value_due: false }, Left::Items))?;
                Event::Array
            }
            5 => {
                let left = match value {
                    None => Left::Break { map: true, value_due: false },
                    Some(pairs) => Left::Items(
                        pairs.checked_mul(2).ok_or_else(|| self.fault("a length is too great"))?,
                    ),
                };
                self.open(left)?;
                Event::Map
            }
            _ => {
                let tag = fixed(value)?;
                self.open(Left::Items(1))?;
                Event::Tag(tag)
            }
        })
    }

    fn open(&mut self, left: Left) -> Result<(), ProtocolError> {
        // An item has a byte at least, so a greater count is known to be false.
        if let Left::Items(items) = left
            && items > (self.bytes.len() - self.at) as u64
        {
            return Err(self.fault("it ends early"));
        }
        if self.open.len() >= self.max_depth {
            return Err(ProtocolError::TooDeep { limit: self.max_depth });
        }
        self.open.push(left);
        Ok(())
    }

    fn simple(&mut self, info: u8) -> Result<Event<'a>, ProtocolError> {
        Ok(match info {
            0..=23 => Event::Simple(info),
            24 => match self.byte()? {
                value @ 32.. => Event::Simple(value),
                _ => return Err(self.fault("a simple value is written too long")),
            },
            25 => Event::Float(half(u16::from_be_bytes(self.array()?))),
            26 => Event::Float(f32::from_be_bytes(self.array()?).into()),
            27 => Event::Float(f64::from_be_bytes(self.array()?)),
            31 => return Err(self.fault("a break has nothing to end")),
            _ => return Err(self.fault("a reserved value is used")),
        })
    }

    fn initial(&mut self) -> Result<(u8, u8), ProtocolError> {
        let byte = self.byte()?;
        Ok((byte >> 5, byte & 0x1f))
    }

    /// The number in an item's head; `None` for an indefinite length.
    fn argument(&mut self, info: u8) -> Result<Option<u64>, ProtocolError> {
        Ok(Some(match info {
            0..=23 => info.into(),
            24 => self.byte()?.into(),
            25 => u16::from_be_bytes(self.array()?).into(),
            26 => u32::from_be_bytes(self.array()?).into(),
            27 => u64::from_be_bytes(self.array()?),
            31 => return Ok(None),
            _ => return Err(self.fault("a reserved length is used")),
        }))
    }

    /// Joins the pieces of a string of indefinite length, up to its break. A piece of a
    /// text is a text by itself.
    fn pieces(&mut self, of: u8) -> Result<Vec<u8>, ProtocolError> {
        let mut joined = Vec::new();
        loop {
            match self.initial()? {
                (7, 31) => return Ok(joined),
                (major, info) if major == of => {
                    let length = self
                        .argument(info)?
                        .ok_or_else(|| self.fault("a piece of a string has no length"))?;
                    let piece = match of {
                        3 => self.text(length)?.as_bytes(),
                        _ => self.take(length)?,
                    };
                    joined.extend_from_slice(piece);
                }
                _ => return Err(self.fault("a string has a piece of another kind")),
            }
        }
    }

    fn text(&mut self, length: u64) -> Result<&'a str, ProtocolError> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.fault("a text is not UTF-8"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ProtocolError> {
        let taken = usize::try_from(length)
            .ok()
            .and_then(|length| self.at.checked_add(length))
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or_else(|| self.fault("it ends early"))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        Ok(self.take(N as u64)?.try_into().expect("`take` gives as many bytes as it is asked for"))
    }

    fn byte(&mut self) -> Result<u8, ProtocolError> {
        Ok(self.array::<1>()?[0])
    }

    fn fault(&self, reason: &'static str) -> ProtocolError {
        ProtocolError::NotCbor { offset: self.at, reason }
    }
}

/// The value of a number of two bytes: five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction / 1024.0 + 1.0) * 2f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}
