//! What holds of any input: the entry points of `fuzz/`, and of the property tests.
//!
//! Each function panics where an invariant of [`protocol`](super) is broken.

use std::fmt::Debug;

use bytes::Bytes;

use super::http::{
    ActionRequest, ActionResponse, QueueSendRequest, QueueSendResponse, ResolveResponse,
};
use super::manager::{ActorsQuery, CreateRequest, ListQuery, NamespaceRequest, parse_key};
use super::route::{ActorRoute, Hints, UpgradeRoute, route};
use super::{
    Encoding, ErrorBody, Offer, Payload, ProtocolError, ToClient, ToServer, Wire, form_decode,
    header,
};
use crate::error::Error;

/// The longest message of an error, in bytes: no client makes one of any length.
const MAX_MESSAGE: usize = 1_024;

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

/// Reads the input as a URL and, behind the first end of a line, as what stands beside it,
/// and as all that the manager reads.
pub fn requests(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (uri, beside) = text.split_once('\n').unwrap_or((&text, ""));
    let offer = Offer::parse([beside]);
    read(offer.encoding());
    read(offer.params());
    read(header::params(Some(beside.as_bytes())));
    let call = |name: &str| (name != header::TARGET).then_some(beside).or(Some("actor"));
    for hints in [Hints::of_call(|_| None), Hints::of_call(call), Hints::of_upgrade(&offer)] {
        if let Some(Some(target)) = read(route(uri, &hints)) {
            let path = target.path;
            assert!(path.starts_with('/'), "`{path}` is no path");
            assert!(path == uri || !uri.starts_with("/gateway/") || is_clean(&path), "{path}");
            UpgradeRoute::parse(&path);
            read(ActorRoute::parse(beside, &path));
        }
    }
    read(ActorRoute::parse("POST", uri));
    read(ActorRoute::parse("GET", uri));
    if let Some(key) = read(parse_key(uri)) {
        assert_eq!(parse_key(&key.to_string()), Ok(key), "a key is read as it is shown");
    }
    read(ActorsQuery::parse(uri));
    read(ListQuery::parse(uri, Some("name")));
    read(CreateRequest::decode(input));
    read(NamespaceRequest::decode(input));
}

/// What was read, after a look at the error if nothing was.
fn read<T>(result: Result<T, impl Into<Error>>) -> Option<T> {
    result
        .map_err(|error| {
            let message = &error.into().message;
            assert!(message.len() <= MAX_MESSAGE, "{message}");
        })
        .ok()
}

/// Whether a path has no parameter of the gateway in its query.
fn is_clean(path: &str) -> bool {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    !query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        form_decode(name).is_ok_and(|name| name.starts_with("rvt-")) || name.starts_with("rvt-")
    })
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
