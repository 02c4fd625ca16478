//! Writes CBOR as the clients' decoder takes it for the JavaScript value that is meant.
//!
//! # Invariants
//!
//! 1. Lengths and numbers are definite and as short as they can be, except for 2.
//! 2. An integer of eight bytes is a bigint to the reader, so an identifier always has
//!    eight bytes and a number does not: from 2³² on it is a float. Only a field that a
//!    float does not hold exactly has eight bytes, too.

use serde_json::Value;

/// The greatest integer that a float holds exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// CBOR in the making.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// With room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// A map of so many pairs; keys and values follow.
    pub fn map(&mut self, pairs: usize) -> &mut Self {
        self.head(5, pairs as u64)
    }

    /// An array of so many items; they follow.
    pub fn array(&mut self, items: usize) -> &mut Self {
        self.head(4, items as u64)
    }

    /// A text, such as a key.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.head(3, text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// A bigint.
    pub fn id(&mut self, id: u64) -> &mut Self {
        self.0.push(0x1b);
        self.0.extend_from_slice(&id.to_be_bytes());
        self
    }

    /// A bigint of either sign.
    pub fn big(&mut self, number: i64) -> &mut Self {
        self.0.push(if number < 0 { 0x3b } else { 0x1b });
        let size = if number < 0 { !number } else { number };
        self.0.extend_from_slice(&size.to_be_bytes());
        self
    }

    /// Bytes, which a reader sees as a `Uint8Array`.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(2, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A field that is a whole number.
    pub fn whole(&mut self, number: u64) -> &mut Self {
        if number > MAX_SAFE { self.id(number) } else { self.number(number as f64) }
    }

    /// A number, one of JavaScript's. A whole one is an integer if it is short.
    pub fn number(&mut self, number: f64) -> &mut Self {
        let whole = number.fract() == 0.0 && !(number == 0.0 && number.is_sign_negative());
        if whole && (0.0..=f64::from(u32::MAX)).contains(&number) {
            self.head(0, number as u64)
        } else if whole && (-f64::from(u32::MAX)..0.0).contains(&number) {
            self.head(1, (-1.0 - number) as u64)
        } else {
            self.0.push(0xfb);
            self.0.extend_from_slice(&number.to_be_bytes());
            self
        }
    }

    /// `true` or `false`.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.0.push(if flag { 0xf5 } else { 0xf4 });
        self
    }

    /// `null`.
    pub fn null(&mut self) -> &mut Self {
        self.0.push(0xf6);
        self
    }

    /// An item that is written already.
    pub fn raw(&mut self, item: &[u8]) -> &mut Self {
        self.0.extend_from_slice(item);
        self
    }

    /// A value of JSON.
    pub fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.null(),
            Value::Bool(flag) => self.flag(*flag),
            Value::Number(number) => {
                self.number(number.as_f64().expect("every number of JSON is near a float"))
            }
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.array(items.len());
                items.iter().fold(self, Self::value)
            }
            Value::Object(pairs) => {
                self.map(pairs.len());
                pairs.iter().fold(self, |out, (key, value)| out.text(key).value(value))
            }
        }
    }

    /// Notes where an array or a map begins whose length is not known yet.
    pub fn begin(&self) -> usize {
        self.0.len()
    }

    /// Puts the head of an array in front of what was written since `begin`.
    pub fn end_array(&mut self, begin: usize, items: usize) {
        self.insert(begin, 4, items);
    }

    /// Puts the head of a map in front of what was written since `begin`.
    pub fn end_map(&mut self, begin: usize, pairs: usize) {
        self.insert(begin, 5, pairs);
    }

    fn insert(&mut self, begin: usize, major: u8, length: usize) {
        let end = self.0.len();
        self.head(major, length as u64);
        let head = self.0.len() - end;
        self.0[begin..].rotate_right(head);
    }

    fn head(&mut self, major: u8, value: u64) -> &mut Self {
        let major = major << 5;
        match value {
            0..=23 => self.0.push(major | value as u8),
            24..=0xff => self.0.extend_from_slice(&[major | 24, value as u8]),
            0x100..=0xffff => {
                self.0.push(major | 25);
                self.0.extend_from_slice(&(value as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.0.push(major | 26);
                self.0.extend_from_slice(&(value as u32).to_be_bytes());
            }
            _ => {
                self.0.push(major | 27);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
        }
        self
    }
}

/// The whole number that a float is; `None` of any other and of one that it may have
/// been rounded to.
pub fn whole(number: f64) -> Option<u64> {
    let exact = number.fract() == 0.0 && (0.0..=MAX_SAFE as f64).contains(&number);
    exact.then_some(number as u64)
}
