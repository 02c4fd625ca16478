//! From JSON text to CBOR, in one pass and without a tree in between.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::protocol::cbor::Writer;
use crate::protocol::{MAX_JSON_DEPTH, ProtocolError};

/// Rewrites one value.
///
/// # Errors
///
/// [`ProtocolError::NotJson`], also if anything but space follows, and
/// [`ProtocolError::TooDeep`].
pub fn to_cbor(text: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let mut sink = Sink { out: Writer::with_capacity(text.len()), too_deep: false };
    let mut parser = serde_json::Deserializer::from_slice(text);
    let parsed =
        Part { sink: &mut sink, depth: 0 }.deserialize(&mut parser).and_then(|()| parser.end());
    match parsed {
        Ok(()) => Ok(sink.out.into_bytes()),
        Err(_) if sink.too_deep => Err(ProtocolError::TooDeep { limit: MAX_JSON_DEPTH }),
        Err(error) => Err(ProtocolError::not_json(&error)),
    }
}

struct Sink {
    out: Writer,
    too_deep: bool,
}

/// A value that is to be written, at a depth.
struct Part<'a> {
    sink: &'a mut Sink,
    depth: usize,
}

impl Part<'_> {
    /// A value inside of this one.
    fn inner(&mut self) -> Part<'_> {
        Part { sink: self.sink, depth: self.depth + 1 }
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        if self.depth >= MAX_JSON_DEPTH {
            self.sink.too_deep = true;
            return Err(E::custom("nested too deeply"));
        }
        Ok(self.sink.out.begin())
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.sink.out.null();
        Ok(())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.sink.out.flag(flag);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.sink.out.number(number as f64);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.sink.out.number(number as f64);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.sink.out.number(number);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.sink.out.text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let begin = self.enter()?;
        let mut count = 0;
        while items.next_element_seed(self.inner())?.is_some() {
            count += 1;
        }
        self.sink.out.end_array(begin, count);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut pairs: A) -> Result<(), A::Error> {
        let begin = self.enter()?;
        let mut count = 0;
        while pairs.next_key_seed(self.inner())?.is_some() {
            pairs.next_value_seed(self.inner())?;
            count += 1;
        }
        self.sink.out.end_map(begin, count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of JSON and of what cbor-x decodes to the same value.
    #[test]
    fn a_number_is_written_so_that_it_is_read_as_a_number_and_never_as_a_bigint() {
        let cases: [(&str, &[u8]); 10] = [
            ("5", &[0x05]),
            ("4294967295", &[0x1a, 0xff, 0xff, 0xff, 0xff]),
            ("4294967296", &[0xfb, 0x41, 0xf0, 0, 0, 0, 0, 0, 0]),
            ("-1", &[0x20]),
            ("-2147483648", &[0x3a, 0x7f, 0xff, 0xff, 0xff]),
            ("-4294967296", &[0xfb, 0xc1, 0xf0, 0, 0, 0, 0, 0, 0]),
            ("18446744073709551616", &[0xfb, 0x43, 0xf0, 0, 0, 0, 0, 0, 0]),
            ("1.5", &[0xfb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
            ("1e3", &[0x19, 0x03, 0xe8]),
            ("-0", &[0xfb, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ];

        for (text, cbor) in cases {
            assert_eq!(to_cbor(text.as_bytes()).unwrap(), cbor, "{text}");
        }
    }

    #[test]
    fn the_order_of_keys_and_a_key_that_comes_twice_are_kept() {
        let cbor = to_cbor(br#"{"b":[null,true],"a":false,"b":"x"}"#).unwrap();

        assert_eq!(cbor, b"\xa3\x61b\x82\xf6\xf5\x61a\xf4\x61b\x61x");
    }

    #[test]
    fn a_long_array_gets_a_head_that_fits() {
        let text = format!("[{}]", vec!["1"; 300].join(","));

        let cbor = to_cbor(text.as_bytes()).unwrap();

        assert_eq!(cbor[..4], [0x99, 0x01, 0x2c, 0x01]);
        assert_eq!(cbor.len(), 303);
    }

    #[test]
    fn text_that_goes_on_is_refused() {
        for text in ["", "1 2", "[1", "{\"a\"}", "nul", "\"\\ud800\"", "\u{feff}1"] {
            assert!(
                matches!(to_cbor(text.as_bytes()), Err(ProtocolError::NotJson { .. })),
                "{text:?}"
            );
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused_as_such() {
        let nested = |levels| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));

        assert!(to_cbor(nested(MAX_JSON_DEPTH).as_bytes()).is_ok());
        for levels in [MAX_JSON_DEPTH + 1, 100_000] {
            assert_eq!(
                to_cbor(nested(levels).as_bytes()),
                Err(ProtocolError::TooDeep { limit: MAX_JSON_DEPTH })
            );
        }
    }
}
