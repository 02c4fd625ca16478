//! From CBOR to JSON text, without calling itself and without a tree in between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::date;
use crate::protocol::ProtocolError;
use crate::protocol::cbor::{Event, Walker};

/// The greatest integer that a float holds exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// The longest integer that is written out: its digits cost the square of its length.
const MAX_INTEGER_BYTES: usize = 1_024;

/// Tags of RFC 8949 and of the registry.
mod tag {
    pub const TIME: u64 = 1;
    pub const POSITIVE: u64 = 2;
    pub const NEGATIVE: u64 = 3;
    pub const SET: u64 = 258;
}

/// Rewrites one item that is nested at most `max_depth` levels.
///
/// # Errors
///
/// [`ProtocolError::NotCbor`], [`ProtocolError::TooDeep`], and
/// [`ProtocolError::Unrepresentable`] of a key that is neither text nor an integer and of
/// an integer of more than 1,024 bytes.
pub fn from_cbor(cbor: &[u8], max_depth: usize) -> Result<String, ProtocolError> {
    let mut walker = Walker::new(cbor, 0, max_depth);
    let mut out = Out { text: String::with_capacity(cbor.len() + cbor.len() / 2), open: vec![] };
    while let Some(event) = walker.next()? {
        out.event(event)?;
    }
    Ok(out.text)
}

/// What is open around the place where is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    Array {
        first: bool,
    },
    /// Keys and values in turn.
    Map {
        first: bool,
        key: bool,
    },
    /// What is written after the content of a tag.
    Tag(u64),
}

struct Out {
    text: String,
    open: Vec<Open>,
}

impl Out {
    fn event(&mut self, event: Event<'_>) -> Result<(), ProtocolError> {
        if event == Event::End {
            self.text.push_str(match self.open.pop() {
                Some(Open::Array { .. } | Open::Tag(tag::SET)) => "]",
                Some(Open::Map { .. }) => "}",
                Some(Open::Tag(_)) | None => "",
            });
            return Ok(());
        }
        if self.separate() {
            return self.key(event);
        }
        match event {
            Event::Unsigned { value, wide } => self.integer(&value.to_string(), wide),
            Event::Negative { value, wide } => {
                self.integer(&(-1 - i128::from(value)).to_string(), wide);
            }
            Event::Float(number) => self.number(number),
            Event::Text(text) => self.quoted(&text),
            Event::Bytes(bytes) => self.bytes(&bytes)?,
            Event::Simple(20) => self.text.push_str("false"),
            Event::Simple(21) => self.text.push_str("true"),
            Event::Simple(23) => self.text.push_str(r#"["$Undefined",0]"#),
            Event::Simple(_) => self.text.push_str("null"),
            Event::Array => self.begin("[", Open::Array { first: true }),
            Event::Map => self.begin("{", Open::Map { first: true, key: true }),
            Event::Tag(tag::SET) => self.begin(r#"["$Set","#, Open::Tag(tag::SET)),
            Event::Tag(tag) => self.begin("", Open::Tag(tag)),
            Event::End => {}
        }
        Ok(())
    }

    /// Writes what stands between this item and the one before, and tells whether it is
    /// a key.
    fn separate(&mut self) -> bool {
        match self.open.last_mut() {
            Some(Open::Array { first }) => {
                if !std::mem::take(first) {
                    self.text.push(',');
                }
                false
            }
            Some(Open::Map { first, key }) => {
                let is_key = *key;
                *key = !is_key;
                match (is_key, std::mem::take(first)) {
                    (true, false) => self.text.push(','),
                    (false, _) => self.text.push(':'),
                    (true, true) => {}
                }
                is_key
            }
            Some(Open::Tag(_)) | None => false,
        }
    }

    fn key(&mut self, event: Event<'_>) -> Result<(), ProtocolError> {
        match event {
            Event::Text(text) => self.quoted(&text),
            Event::Unsigned { value, .. } => self.quoted(&value.to_string()),
            Event::Negative { value, .. } => {
                self.quoted(&(-1 - i128::from(value)).to_string());
            }
            _ => {
                return Err(ProtocolError::Unrepresentable {
                    what: "a key that is neither text nor an integer",
                });
            }
        }
        Ok(())
    }

    fn begin(&mut self, text: &str, open: Open) {
        self.text.push_str(text);
        self.open.push(open);
    }

    fn integer(&mut self, digits: &str, wide: bool) {
        if wide {
            self.pair("BigInt", digits);
        } else if self.is_in(tag::TIME) {
            self.number(digits.parse().expect("digits are a number"));
        } else {
            self.text.push_str(digits);
        }
    }

    fn number(&mut self, number: f64) {
        if self.is_in(tag::TIME) {
            match date::text(number) {
                Some(text) => self.quoted(&text),
                None => self.text.push_str("null"),
            }
        } else if !number.is_finite() {
            self.text.push_str("null");
        } else if number == 0.0 && number.is_sign_negative() {
            self.text.push_str("-0");
        } else if number.fract() == 0.0 && number.abs() <= MAX_SAFE {
            self.text.push_str(&(number as i64).to_string());
        } else {
            let number = serde_json::Number::from_f64(number).expect("it is finite");
            self.text.push_str(&number.to_string());
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let negative = self.is_in(tag::NEGATIVE);
        if negative || self.is_in(tag::POSITIVE) {
            if bytes.len() > MAX_INTEGER_BYTES {
                return Err(ProtocolError::Unrepresentable {
                    what: "an integer of more than 1,024 bytes",
                });
            }
            self.pair("BigInt", &decimal(bytes, negative));
        } else {
            self.pair("Uint8Array", &STANDARD.encode(bytes));
        }
        Ok(())
    }

    /// A value that only the clients know, under its name.
    fn pair(&mut self, name: &str, content: &str) {
        for part in [r#"["$"#, name, r#"",""#, content, r#""]"#] {
            self.text.push_str(part);
        }
    }

    fn quoted(&mut self, text: &str) {
        self.text.push_str(&serde_json::to_string(text).expect("a text has a form in JSON"));
    }

    fn is_in(&self, tag: u64) -> bool {
        self.open.last() == Some(&Open::Tag(tag))
    }
}

/// The digits of an integer whose bytes are these, or of `-1` less it.
fn decimal(bytes: &[u8], negative: bool) -> String {
    const GROUP: u64 = 1_000_000_000;
    // The lowest group first.
    let mut groups: Vec<u64> = vec![0];
    let mut shift_in = |factor: u64, plus: u64| {
        let mut carry = plus;
        for group in &mut groups {
            let value = *group * factor + carry;
            *group = value % GROUP;
            carry = value / GROUP;
        }
        if carry > 0 {
            groups.push(carry);
        }
    };
    for &byte in bytes {
        shift_in(256, byte.into());
    }
    if negative {
        shift_in(1, 1);
    }
    let mut digits = String::from(if negative { "-" } else { "" });
    for (place, group) in groups.iter().rev().enumerate() {
        digits.push_str(&if place == 0 { format!("{group}") } else { format!("{group:09}") });
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::MAX_DEPTH;

    /// The left sides are what cbor-x writes, or decodes, for the value.
    #[test]
    fn a_json_client_reads_the_value_that_a_cbor_client_reads() {
        let cases: [(&[u8], &str); 21] = [
            (&[0xfb, 0x80, 0, 0, 0, 0, 0, 0, 0], "-0"),
            (&[0x1a, 0xff, 0xff, 0xff, 0xff], "4294967295"),
            (&[0xfb, 0x41, 0xf0, 0, 0, 0, 0, 0, 0], "4294967296"),
            (&[0x3a, 0x7f, 0xff, 0xff, 0xff], "-2147483648"),
            (&[0x1b, 0, 0, 0, 0, 0, 0, 0, 5], r#"["$BigInt","5"]"#),
            (&[0x3b, 0, 0, 0, 0, 0, 0, 0, 4], r#"["$BigInt","-5"]"#),
            (
                &[0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                r#"["$BigInt","-18446744073709551616"]"#,
            ),
            (&[0xc2, 0x49, 1, 0, 0, 0, 0, 0, 0, 0, 0], r#"["$BigInt","18446744073709551616"]"#),
            (
                &[0xc3, 0x49, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                r#"["$BigInt","-1180591620717411303424"]"#,
            ),
            (&[0xc1, 0xfb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], r#""1970-01-01T00:00:01.500Z""#),
            (&[0xc1, 0x01], r#""1970-01-01T00:00:01.000Z""#),
            (&[0xc1, 0xf9, 0x7e, 0x00], "null"),
            (&[0xd9, 0x01, 0x02, 0x82, 0x01, 0x02], r#"["$Set",[1,2]]"#),
            (&[0xd9, 0x01, 0x03, 0xa1, 0x01, 0x20], r#"{"1":-1}"#),
            (&[0xd8, 0x40, 0x41, 0x01], r#"["$Uint8Array","AQ=="]"#),
            (&[0x5f, 0x41, 0x01, 0x41, 0x02, 0xff], r#"["$Uint8Array","AQI="]"#),
            (&[0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], "null"),
            (&[0x82, 0xf7, 0xf6], r#"[["$Undefined",0],null]"#),
            (b"\xb9\x00\x02\x61a\xf5\x61b\xf9\x3e\x00", r#"{"a":true,"b":1.5}"#),
            (
                b"\xbf\x61a\x9f\x80\xa0\xff\x61b\x7f\x61x\x61\"\xff\xff",
                r#"{"a":[[],{}],"b":"x\""}"#,
            ),
            (b"\x82\x67$BigInt\x613", r#"["$BigInt","3"]"#),
        ];

        for (cbor, text) in cases {
            assert_eq!(from_cbor(cbor, MAX_DEPTH).as_deref(), Ok(text), "{cbor:02x?}");
        }
    }

    #[test]
    fn a_key_that_json_has_not_is_refused() {
        let refused = from_cbor(&[0xa1, 0xf5, 0x01], MAX_DEPTH);

        assert!(matches!(refused, Err(ProtocolError::Unrepresentable { .. })));
    }

    #[test]
    fn an_integer_is_written_out_up_to_a_length() {
        let integer = |length: u16| {
            [&[0xc2, 0x59][..], &length.to_be_bytes(), &vec![0xff; length.into()]].concat()
        };

        let longest = from_cbor(&integer(1_024), MAX_DEPTH).unwrap();
        assert_eq!(longest.len(), r#"["$BigInt",""]"#.len() + 2_467);
        assert!(from_cbor(&integer(1_025), MAX_DEPTH).is_err());
    }

    #[test]
    fn the_deepest_payload_is_written_out() {
        let cbor = [vec![0x81; MAX_DEPTH - 1], vec![0x80]].concat();

        assert_eq!(from_cbor(&cbor, MAX_DEPTH).unwrap().len(), 2 * MAX_DEPTH);
    }
}
