//! What an author and a client pass to each other: values that only JavaScript reads
//! (§3.4, §3.5).

use std::fmt;

use bytes::Bytes;
use serde_json::Value;

use super::cbor::{Event, Walker, Writer};
use super::{MAX_DEPTH, MAX_JSON_DEPTH, ProtocolError, json};

/// One value in CBOR, well-formed and nested at most [`MAX_DEPTH`] levels. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Bytes);

impl Payload {
    /// Takes CBOR. No bytes at all are `undefined`, as everywhere between host and author.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::NotCbor`] and [`ProtocolError::TooDeep`].
    pub fn new(cbor: Bytes) -> Result<Self, ProtocolError> {
        if cbor.is_empty() {
            return Ok(Self::undefined());
        }
        let mut walker = Walker::new(&cbor, 0, MAX_DEPTH);
        walker.finish()?;
        if walker.at() != cbor.len() {
            return Err(ProtocolError::NotCbor { offset: walker.at(), reason: "bytes follow it" });
        }
        Ok(Self(cbor))
    }

    /// Takes JSON text, such as the parameters of a connection.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::NotJson`], and [`ProtocolError::TooDeep`] with the limit
    /// [`MAX_JSON_DEPTH`].
    pub fn from_json(text: &[u8]) -> Result<Self, ProtocolError> {
        Ok(Self(json::to_cbor(text)?.into()))
    }

    /// `null`.
    pub fn null() -> Self {
        Self(Bytes::from_static(&[0xf6]))
    }

    /// `undefined`.
    pub fn undefined() -> Self {
        Self(Bytes::from_static(&[0xf7]))
    }

    /// The value in CBOR.
    pub fn cbor(&self) -> &Bytes {
        &self.0
    }

    /// The value as JSON text, with tagged pairs for what JSON has not.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::Unrepresentable`].
    pub fn to_json(&self) -> Result<String, ProtocolError> {
        json::from_cbor(&self.0, MAX_DEPTH)
    }

    /// Whether it is `null` or `undefined`.
    pub fn is_absent(&self) -> bool {
        matches!(self.0[..], [0xf6 | 0xf7])
    }

    fn is_array(&self) -> bool {
        matches!(Walker::new(&self.0, 0, MAX_DEPTH).next(), Ok(Some(Event::Array)))
    }
}

/// Takes a value of JSON, such as the metadata of an error.
///
/// # Errors
///
/// [`ProtocolError::TooDeep`] with the limit [`MAX_JSON_DEPTH`].
impl TryFrom<&Value> for Payload {
    type Error = ProtocolError;

    fn try_from(value: &Value) -> Result<Self, ProtocolError> {
        if is_deeper(value, MAX_JSON_DEPTH) {
            return Err(ProtocolError::TooDeep { limit: MAX_JSON_DEPTH });
        }
        let mut out = Writer::default();
        out.value(value);
        Ok(Self(out.into_bytes().into()))
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let deeper = |part| levels == 0 || is_deeper(part, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(deeper),
        Value::Object(pairs) => levels == 0 || pairs.values().any(deeper),
        _ => false,
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 32;
        f.write_str("Payload(")?;
        for byte in self.0.iter().take(SHOWN) {
            write!(f, "{byte:02x}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => f.write_str(")"),
            more => write!(f, " and {more} bytes)"),
        }
    }
}

/// The arguments of an action or of an event: a [`Payload`] that is an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args(Payload);

impl Args {
    /// No arguments.
    pub fn none() -> Self {
        Self(Payload(Bytes::from_static(&[0x80])))
    }

    /// The value in CBOR, an array.
    pub fn cbor(&self) -> &Bytes {
        self.0.cbor()
    }

    /// The value, an array.
    pub fn payload(&self) -> &Payload {
        &self.0
    }
}

/// An array as it is; none for `null` and `undefined`; anything else is the only one.
///
/// # Errors
///
/// [`ProtocolError::TooDeep`] of a value that is nested as deeply as it may be and has to
/// get an array around it.
impl TryFrom<Payload> for Args {
    type Error = ProtocolError;

    fn try_from(value: Payload) -> Result<Self, ProtocolError> {
        if value.is_array() {
            return Ok(Self(value));
        }
        if value.is_absent() {
            return Ok(Self::none());
        }
        let mut out = Writer::with_capacity(value.0.len() + 1);
        out.array(1).raw(&value.0);
        Payload::new(out.into_bytes().into()).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn payload(cbor: &'static [u8]) -> Payload {
        Payload::new(Bytes::from_static(cbor)).unwrap()
    }

    #[test]
    fn no_bytes_are_undefined() {
        assert_eq!(payload(b""), Payload::undefined());
    }

    #[test]
    fn a_payload_is_one_item_and_nothing_more() {
        let refused = |cbor: &'static [u8]| Payload::new(Bytes::from_static(cbor)).unwrap_err();

        assert_eq!(
            refused(&[0x01, 0x02]),
            ProtocolError::NotCbor { offset: 1, reason: "bytes follow it" }
        );
        assert_eq!(
            refused(&[0x82, 0x01]),
            ProtocolError::NotCbor { offset: 1, reason: "it ends early" }
        );
    }

    #[test]
    fn a_payload_is_nested_no_deeper_than_the_limit() {
        let nested = |levels| Bytes::from([vec![0x81; levels], vec![0x80]].concat());

        assert!(Payload::new(nested(MAX_DEPTH - 1)).is_ok());
        assert_eq!(
            Payload::new(nested(MAX_DEPTH)),
            Err(ProtocolError::TooDeep { limit: MAX_DEPTH })
        );
    }

    #[test]
    fn metadata_is_nested_no_deeper_than_json_is() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));

        assert!(Payload::try_from(&nested(MAX_JSON_DEPTH)).is_ok());
        assert_eq!(
            Payload::try_from(&nested(MAX_JSON_DEPTH + 1)),
            Err(ProtocolError::TooDeep { limit: MAX_JSON_DEPTH })
        );
    }

    #[test]
    fn arguments_are_an_array_whatever_came() {
        let args = |cbor| Args::try_from(payload(cbor)).unwrap();

        assert_eq!(args(&[0x81, 0x05]).cbor()[..], [0x81, 0x05]);
        assert_eq!(args(&[0x9f, 0xff]).cbor()[..], [0x9f, 0xff]);
        assert_eq!(args(&[0xf6]), Args::none());
        assert_eq!(args(&[0xf7]), Args::none());
        assert_eq!(args(&[0x05]).cbor()[..], [0x81, 0x05]);
    }

    #[test]
    fn arguments_are_nested_no_deeper_than_any_payload() {
        let maps = |levels| Bytes::from([b"\xa1\x60".repeat(levels), vec![0x05]].concat());
        let args = |levels| Args::try_from(Payload::new(maps(levels)).unwrap());

        assert!(Payload::new(args(MAX_DEPTH - 1).unwrap().cbor().clone()).is_ok());
        assert_eq!(args(MAX_DEPTH), Err(ProtocolError::TooDeep { limit: MAX_DEPTH }));
    }
}
