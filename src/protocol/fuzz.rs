//! What holds of any input: the entry points of `fuzz/`, and of the property tests.
//!
//! Each function panics where an invariant of [`protocol`](super) is broken.

use std::fmt::Debug;

use bytes::Bytes;

use super::http::{
    ActionRequest, ActionResponse, QueueSendRequest, QueueSendResponse, ResolveResponse,
};
use super::{Encoding, ErrorBody, Payload, ProtocolError, ToClient, ToServer, Wire};

/// Reads the input as each message in each encoding.
pub fn messages(input: &[u8]) {
    let input = Bytes::copy_from_slice(input);
    for encoding in Encoding::ALL {
        message::<ToClient>(encoding, &input);
        message::<ToServer>(encoding, &input);
        message::<ErrorBody>(encoding, &input);
        message::<ActionRequest>(encoding, &input);
        message::<ActionResponse>(encoding, &input);
        message::<QueueSendRequest>(encoding, &input);
        message::<QueueSendResponse>(encoding, &input);
        message::<ResolveResponse>(encoding, &input);
    }
}

/// Reads the input as a payload, in CBOR and in JSON.
pub fn payloads(input: &[u8]) {
    if let Ok(payload) = Payload::new(Bytes::copy_from_slice(input)) {
        assert!(input.is_empty() || payload.cbor() == input, "a payload keeps its bytes");
        match payload.to_json() {
            Ok(text) => json_settles(text.into_bytes(), |text| {
                Payload::from_json(&text)?.to_json().map(String::into_bytes)
            }),
            Err(error) => assert!(matches!(error, ProtocolError::Unrepresentable { .. })),
        }
    }
    if let Ok(payload) = Payload::from_json(input) {
        assert!(payload.to_json().is_ok(), "what came as JSON has a form in it");
        let again = Payload::new(payload.cbor().clone());
        assert_eq!(again, Ok(payload), "JSON becomes a payload");
    }
}

fn message<M: Wire + Debug + PartialEq>(encoding: Encoding, input: &Bytes) {
    let Ok(message) = M::decode(encoding, input.clone()) else {
        return;
    };
    for encoding in [Encoding::Cbor, Encoding::Bare] {
        let bytes = message.encode(encoding).expect("CBOR and BARE have a form of everything");
        assert_eq!(M::decode(encoding, bytes).as_ref(), Ok(&message), "{encoding:?}");
    }
    match message.encode(Encoding::Json) {
        Ok(text) => json_settles(text.into(), |text| {
            Ok(M::decode(Encoding::Json, text.into())?.encode(Encoding::Json)?.into())
        }),
        Err(error) => assert!(matches!(error, ProtocolError::Unrepresentable { .. })),
    }
}

/// What JSON has not becomes something else on the first way through, and nothing does on
/// the second.
fn json_settles(text: Vec<u8>, again: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, ProtocolError>) {
    match again(text.clone()) {
        Ok(same) => assert_eq!(same, text, "JSON is written as it was read"),
        // Deeper than JSON is read.
        Err(error) => assert!(matches!(error, ProtocolError::TooDeep { .. }), "{error}"),
    }
}
