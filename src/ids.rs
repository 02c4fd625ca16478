//! Names of things: actor types, keys, ids, generations.
//!
//! # Invariants
//!
//! 1. Two different keys never have the same encoding, and the encoding of a key
//!    is a prefix of the encoding of every longer key that begins with its parts.
//! 2. A value of these types is valid: whoever holds one need not check again.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::InvalidArgument;

/// The longest actor name, in bytes of UTF-8.
pub const MAX_NAME_LEN: usize = 64;
/// The longest part of a key, in bytes of UTF-8.
pub const MAX_KEY_PART_LEN: usize = 128;
/// The longest key, all parts together, in bytes of UTF-8.
pub const MAX_KEY_LEN: usize = 1024;
/// The largest input of a new actor, in bytes.
pub const MAX_INPUT_LEN: usize = 4 * 1024 * 1024;

/// The name of an actor type: 1 to 64 bytes of UTF-8, no control characters. Clones
/// share it: a live actor is named in several places.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorName(Arc<str>);

impl Serialize for ActorName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl ActorName {
    /// Checks a name.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidArgument> {
        let name = name.as_ref();
        let refuse = |reason: String| {
            Err(InvalidArgument { what: "actor name", value: quoted(name), reason })
        };
        if name.is_empty() {
            return refuse("it is empty".into());
        }
        if name.len() > MAX_NAME_LEN {
            let len = name.len();
            return refuse(format!("it has {len} bytes, the limit is {MAX_NAME_LEN}"));
        }
        if name.chars().any(char::is_control) {
            return refuse("it has a control character".into());
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ActorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ActorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KeyPart {
    /// Text; may be empty.
    String(String),
    /// A finite number. `-0` is `0`.
    Number(f64),
}

/// What tells the actors of one name apart: a list of parts, which may be empty. Clones
/// share it.
#[derive(Clone, Default, PartialEq)]
pub struct ActorKey(Arc<[KeyPart]>);

impl Serialize for ActorKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl ActorKey {
    /// Checks a key.
    pub fn new(parts: Vec<KeyPart>) -> Result<Self, InvalidArgument> {
        let refuse = |value: String, reason: String| {
            Err(InvalidArgument { what: "actor key", value, reason })
        };
        let mut total = 0;
        let mut parts = parts;
        for (index, part) in parts.iter_mut().enumerate() {
            match part {
                KeyPart::String(text) => {
                    let len = text.len();
                    if len > MAX_KEY_PART_LEN {
                        let reason = format!(
                            "part {index} has {len} bytes, the limit is {MAX_KEY_PART_LEN}"
                        );
                        return refuse(quoted(text), reason);
                    }
                    total += len;
                }
                KeyPart::Number(number) => {
                    if !number.is_finite() {
                        return refuse(number.to_string(), format!("part {index} is not finite"));
                    }
                    // `-0 == 0`, so they must be one key.
                    *number += 0.0;
                    total += 8;
                }
            }
        }
        if total > MAX_KEY_LEN {
            let reason =
                format!("its parts have {total} bytes together, the limit is {MAX_KEY_LEN}");
            return refuse(format!("of {} parts", parts.len()), reason);
        }
        Ok(Self(parts.into()))
    }

    /// A key of text parts.
    pub fn of<S: Into<String>>(
        parts: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidArgument> {
        Self::new(parts.into_iter().map(|part| KeyPart::String(part.into())).collect())
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[KeyPart] {
        &self.0
    }

    /// The bytes under which the key is stored and compared (invariant 1): for
    /// each part a tag, then a number in eight bytes, or text with each zero byte
    /// escaped and a terminator.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in self.0.iter() {
            match part {
                KeyPart::Number(number) => {
                    out.push(b'n');
                    out.extend_from_slice(&number.to_be_bytes());
                }
                KeyPart::String(text) => {
                    out.push(b's');
                    for &byte in text.as_bytes() {
                        out.push(byte);
                        if byte == 0 {
                            out.push(0xff);
                        }
                    }
                    out.extend_from_slice(&[0, 0]);
                }
            }
        }
        out
    }

    /// Reads what [`ActorKey::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, InvalidArgument> {
        let broken = || InvalidArgument {
            what: "stored actor key",
            value: format!("of {} bytes", bytes.len()),
            reason: "it is not an encoded key".into(),
        };
        let mut parts = Vec::new();
        let mut rest = bytes;
        while let Some((&tag, after)) = rest.split_first() {
            match tag {
                b'n' => {
                    let (number, after) = after.split_first_chunk::<8>().ok_or_else(broken)?;
                    parts.push(KeyPart::Number(f64::from_be_bytes(*number)));
                    rest = after;
                }
                b's' => {
                    let mut text = Vec::new();
                    rest = after;
                    loop {
                        match rest {
                            [0, 0xff, tail @ ..] => {
                                text.push(0);
                                rest = tail;
                            }
                            [0, 0, tail @ ..] => {
                                rest = tail;
                                break;
                            }
                            [byte, tail @ ..] if *byte != 0 => {
                                text.push(*byte);
                                rest = tail;
                            }
                            _ => return Err(broken()),
                        }
                    }
                    parts.push(KeyPart::String(String::from_utf8(text).map_err(|_| broken())?));
                }
                _ => return Err(broken()),
            }
        }
        Self::new(parts)
    }
}

/// The form for logs, errors and the HTTP API: parts joined by `/`, the empty key
/// is `/`, within a part `\` and `/` are escaped, an empty part is `\0`.
impl fmt::Display for ActorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("/")?;
            }
            match part {
                KeyPart::Number(number) => write!(f, "{number}")?,
                KeyPart::String(text) if text.is_empty() => f.write_str("\\0")?,
                KeyPart::String(text) => {
                    f.write_str(&text.replace('\\', "\\\\").replace('/', "\\/"))?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ActorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorKey({self})")
    }
}

impl Eq for ActorKey {}

impl std::hash::Hash for ActorKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for part in self.0.iter() {
            match part {
                KeyPart::String(text) => text.hash(state),
                KeyPart::Number(number) => number.to_bits().hash(state),
            }
        }
    }
}

/// The id that an actor keeps over all its generations: 128 random bits, shown
/// as a UUID (RFC 9562, version 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(u128);

impl ActorId {
    /// Reads the text form; `None` when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let hex: String = text.split('-').collect();
        let well_formed = text.len() == 36
            && hex.len() == 32
            && [8, 13, 18, 23].iter().all(|&at| text.as_bytes()[at] == b'-')
            && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if well_formed { u128::from_str_radix(&hex, 16).ok().map(Self) } else { None }
    }

    /// The sixteen bytes under which the id is stored.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads what [`ActorId::to_bytes`] wrote.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            id >> 96,
            (id >> 80) & 0xffff,
            (id >> 64) & 0xffff,
            (id >> 48) & 0xffff,
            id & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where new ids come from: the only source of chance.
#[derive(Debug)]
pub struct IdSource(Mutex<StdRng>);

impl IdSource {
    /// Ids that nobody can foresee.
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    /// The same ids for the same seed, for tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A new random UUID, as text.
    pub fn uuid(&self) -> String {
        self.actor_id().to_string()
    }

    /// A new actor id.
    pub fn actor_id(&self) -> ActorId {
        let mut bytes = [0; 16];
        self.0.lock().fill_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        ActorId::from_bytes(bytes)
    }

    /// Eight random bytes.
    pub fn eight_bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        self.0.lock().fill_bytes(&mut bytes);
        bytes
    }

    /// A new secret.
    pub fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.lock().fill_bytes(&mut bytes);
        bytes
    }

    /// A new id of something that an actor has: a UUID, as text.
    pub fn event_id(&self) -> String {
        self.actor_id().to_string()
    }
}

/// One run of an actor, from its start to its stop. Later runs have larger
/// numbers, also after a restart of the process: the upper part is the epoch of
/// the process, which the store raises durably each time it opens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Generation(u64);

impl Generation {
    /// The `counter`-th start within the process that has this `epoch`.
    pub const fn new(epoch: u32, counter: u32) -> Self {
        Self((epoch as u64) << 32 | counter as u64)
    }

    /// The number, for logs and errors; below 2^53 for the first two million
    /// restarts, so that JavaScript reads it exactly.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A value in quotes, shortened to what fits into a message.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 64;
    if text.len() <= SHOWN {
        return format!("{text:?}");
    }
    let end = (0..=SHOWN).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{:?}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(parts: &[&str]) -> ActorKey {
        ActorKey::of(parts.iter().copied()).unwrap()
    }

    #[test]
    fn a_name_is_refused_when_empty_too_long_or_with_control_characters() {
        assert!(ActorName::new("").is_err());
        assert!(ActorName::new("a\n").is_err());
        assert!(ActorName::new("x".repeat(65)).unwrap_err().to_string().contains("65 bytes"));

        assert!(ActorName::new("é".repeat(32)).is_ok());
    }

    #[test]
    fn a_key_is_refused_beyond_128_bytes_a_part_and_1024_together() {
        assert!(ActorKey::of(["x".repeat(129)]).is_err());
        assert!(ActorKey::of(vec!["x".repeat(128); 9]).is_err());
        assert!(ActorKey::new(vec![KeyPart::Number(f64::NAN)]).is_err());

        assert!(ActorKey::of(vec!["x".repeat(128); 8]).is_ok());
    }

    #[test]
    fn keys_that_look_alike_are_different() {
        let one = ActorKey::new(vec![KeyPart::Number(1.0)]).unwrap();
        let all = [
            key(&[]),
            key(&[""]),
            key(&["", ""]),
            key(&["a/b"]),
            key(&["a", "b"]),
            key(&["a\\", "b"]),
            key(&["\0"]),
            key(&["\\0"]),
            key(&["1"]),
            one,
        ];

        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert_ne!(a.encode(), b.encode(), "{a:?} and {b:?}");
                assert_ne!(a, b);
            }
        }
    }

    #[test]
    fn minus_zero_and_zero_are_one_key() {
        let of = |number| ActorKey::new(vec![KeyPart::Number(number)]).unwrap();

        assert_eq!(of(-0.0).encode(), of(0.0).encode());
    }

    #[test]
    fn the_display_form_escapes_what_it_uses() {
        assert_eq!(key(&[]).to_string(), "/");
        assert_eq!(key(&["a/b", "", "c\\d"]).to_string(), "a\\/b/\\0/c\\\\d");
    }

    #[test]
    fn an_id_reads_back_and_nothing_else_does() {
        let id = IdSource::seeded(7).actor_id();

        assert_eq!(ActorId::parse(&id.to_string()), Some(id));
        assert_eq!(ActorId::parse(&id.to_string().to_uppercase()), None);
        assert_eq!(ActorId::parse("not-an-id"), None);
        assert_eq!(ActorId::parse("日本語日本語日本語日本語"), None);
    }

    fn part() -> impl Strategy<Value = KeyPart> {
        prop_oneof![
            "\\PC{0,20}|[\\x00a/\\\\]{0,6}".prop_map(KeyPart::String),
            any::<i32>().prop_map(|number| KeyPart::Number(f64::from(number))),
        ]
    }

    proptest! {
        #[test]
        fn an_encoded_key_reads_back(parts in prop::collection::vec(part(), 0..6)) {
            let key = ActorKey::new(parts).unwrap();

            prop_assert_eq!(ActorKey::decode(&key.encode()).unwrap(), key);
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(key) = ActorKey::decode(&bytes) {
                prop_assert_eq!(ActorKey::decode(&key.encode()).unwrap(), key);
            }
        }
    }
}
