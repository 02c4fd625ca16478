//! Messages to test with.

use bytes::Bytes;

use crate::protocol::{ActorBody, Args, ErrorBody, Payload};

pub fn payload(cbor: &[u8]) -> Payload {
    Payload::new(Bytes::copy_from_slice(cbor)).unwrap()
}

pub fn args(cbor: &[u8]) -> Args {
    payload(cbor).try_into().unwrap()
}

/// `{"k":1}`.
pub fn object() -> Payload {
    payload(b"\xa1\x61k\x01")
}

/// An error with everything.
pub fn error() -> ErrorBody {
    ErrorBody {
        group: "user".into(),
        code: "no".into(),
        message: "m".into(),
        metadata: Some(object()),
        actor: Some(ActorBody {
            actor_id: "act1".into(),
            generation: 300,
            key: Some("a/b".into()),
        }),
    }
}

/// An error with nothing that may be left out.
pub fn short_error() -> ErrorBody {
    ErrorBody { metadata: None, actor: None, ..error() }
}

/// The bytes of hexadecimal digits, with spaces anywhere.
pub fn hex(digits: &str) -> Bytes {
    let digits: Vec<u8> =
        digits.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
