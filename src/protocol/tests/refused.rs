//! What is refused, and what clients read of errors.

use bytes::Bytes;
use serde_json::json;

use super::samples::hex;
use crate::error::{ActorSpecifier, Coded, Error, ErrorCode, INTERNAL_MESSAGE};
use crate::protocol::http::{ActionRequest, QueueSendRequest, QueueSendResponse};
use crate::protocol::{
    ActorBody, Disclosure, Encoding, ErrorBody, MAX_DEPTH, MAX_JSON_DEPTH, Origin, Payload,
    ProtocolError, ToServer, Wire, http_status,
};

fn refused(encoding: Encoding, bytes: impl Into<Bytes>) -> ProtocolError {
    ToServer::decode(encoding, bytes.into()).unwrap_err()
}

#[test]
fn a_frame_that_cannot_be_read_is_an_invalid_request() {
    let faults = [
        refused(Encoding::Json, "no"),
        refused(Encoding::Json, "5"),
        refused(Encoding::Json, "{}"),
        refused(Encoding::Json, r#"{"body":{"tag":"Event","val":{}}}"#),
        refused(Encoding::Json, r#"{"body":{"tag":"SubscriptionRequest","val":{}}}"#),
        refused(Encoding::Json, vec![b'['; 100_000]),
        refused(Encoding::Cbor, ""),
        refused(Encoding::Cbor, hex("a1 64626f6479")),
        refused(Encoding::Bare, ""),
        refused(Encoding::Bare, hex("0400 02")),
        refused(Encoding::Bare, hex("0400 01 026576 02")),
        refused(Encoding::Bare, hex("0400 01 026576 01 00")),
        refused(Encoding::Bare, hex("0400 01 02ff76 01")),
        refused(Encoding::Bare, hex("0400 00 00 0161 01 81")),
        refused(Encoding::Bare, hex("0500 01 026576 01")),
    ];

    for fault in faults {
        assert_eq!(fault.code(), ErrorCode::new("actor", "invalid_request"), "{fault}");
        assert_eq!(http_status(&fault.into(), Origin::Actor(Encoding::Bare)), 400);
    }
}

#[test]
fn a_fault_names_the_field_or_the_tag() {
    let field = |field, expected| ProtocolError::Field { field, expected };

    assert_eq!(refused(Encoding::Json, "{}"), field("body", "there"));
    assert_eq!(
        refused(
            Encoding::Json,
            r#"{"body":{"tag":"SubscriptionRequest","val":{"eventName":1,"subscribe":true}}}"#
        ),
        field("eventName", "a text")
    );
    assert_eq!(
        refused(
            Encoding::Json,
            r#"{"body":{"tag":"SubscriptionRequest","val":{"eventName":"e","subscribe":1}}}"#
        ),
        field("subscribe", "a boolean")
    );
    assert_eq!(
        refused(Encoding::Json, r#"{"body":{"tag":"Event","val":{}}}"#),
        ProtocolError::UnknownTag { tag: "Event".into() }
    );
    let long = format!(r#"{{"body":{{"tag":"{}","val":{{}}}}}}"#, "ä".repeat(100));
    assert_eq!(refused(Encoding::Json, long), ProtocolError::UnknownTag { tag: "ä".repeat(64) });
}

#[test]
fn a_frame_in_json_is_nested_no_deeper_than_the_limit() {
    let frame = |levels: usize| {
        let args = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let val = format!(r#"{{"id":1,"name":"a","args":{args}}}"#);
        ToServer::decode(
            Encoding::Json,
            format!(r#"{{"body":{{"tag":"ActionRequest","val":{val}}}}}"#).into(),
        )
    };

    assert!(frame(MAX_JSON_DEPTH - 3).is_ok());
    assert_eq!(frame(MAX_JSON_DEPTH - 2), Err(ProtocolError::TooDeep { limit: MAX_JSON_DEPTH }));
}

#[test]
fn an_argument_that_is_no_array_may_be_one_level_less_deep_than_an_array() {
    let body = |levels| [&b"\xa1\x64args"[..], &b"\xa1\x60".repeat(levels), &[5]].concat();
    let read = |levels| ActionRequest::decode(Encoding::Cbor, Bytes::from(body(levels)));

    let request = read(MAX_DEPTH - 1).unwrap();
    let again = ActionRequest::decode(Encoding::Cbor, request.encode(Encoding::Cbor).unwrap());
    assert_eq!(again, Ok(request));
    assert_eq!(read(MAX_DEPTH), Err(ProtocolError::TooDeep { limit: MAX_DEPTH }));
}

#[test]
fn a_status_that_nobody_knows_and_a_wait_that_is_no_time_are_refused() {
    let status = r#"{"status":"lost"}"#;
    assert!(QueueSendResponse::decode(Encoding::Json, status.into()).is_err());
    for timeout in ["-1", r#""1""#, "1e300", "[]"] {
        let body = format!(r#"{{"body":1,"timeout":{timeout}}}"#);
        assert!(QueueSendRequest::decode(Encoding::Json, body.into()).is_err(), "{timeout}");
    }
}

#[test]
fn a_message_that_is_too_long_has_a_code_of_its_own() {
    let error = Error::from(ProtocolError::IncomingTooLong { size: 5, limit: 4 });

    assert!(error.is("message", "incoming_too_long"));
    assert_eq!(error.metadata, Some(json!({ "size": 5, "limit": 4 })));
    assert_eq!(http_status(&error, Origin::Actor(Encoding::Bare)), 400);
}

/// §7.2.
#[test]
fn clients_read_group_and_code_of_any_error_but_the_text_of_a_public_one_only() {
    let private =
        Error::new(ErrorCode::new("actor", "broken"), "secret").with_metadata(json!({ "a": 1 }));
    let public =
        Error::new(ErrorCode::new("user", "mine"), "open").with_metadata(json!({ "a": 1 }));

    assert_eq!(
        ErrorBody::new(&private, Disclosure::Public),
        ErrorBody {
            group: "actor".into(),
            code: "broken".into(),
            message: INTERNAL_MESSAGE.into(),
            metadata: None,
            actor: None,
        }
    );
    let body = ErrorBody::new(&public, Disclosure::Public);
    assert_eq!(
        (body.message.as_str(), body.metadata),
        ("open", Some(Payload::new(Bytes::from_static(b"\xa1\x61a\x01")).unwrap()))
    );
}

#[test]
fn clients_read_the_real_text_of_an_internal_error_only_if_all_is_disclosed() {
    let internal = Error::internal("disk on fire");
    let message = |error, disclosure| ErrorBody::new(error, disclosure).message;

    assert_eq!(message(&internal, Disclosure::Public), INTERNAL_MESSAGE);
    assert_eq!(message(&internal, Disclosure::All), "disk on fire");
    let masked = Error::new(ErrorCode::new("actor", "validation_error"), "bad arguments");
    assert_eq!(message(&masked, Disclosure::All), "bad arguments");
    let public = Error::new(ErrorCode::new("user", "mine"), "open")
        .with_metadata(json!({ "error": "a field of the author's" }));
    let body = ErrorBody::new(&public, Disclosure::All);
    assert_eq!(body, ErrorBody::new(&public, Disclosure::Public));
    assert_eq!(body.message, "open");
}

/// §7.1.
#[test]
fn an_error_names_its_actor_but_not_the_phase() {
    let error = Error::internal("x").with_actor(ActorSpecifier {
        actor_id: "act1".into(),
        generation: 2,
        key: None,
        phase: Some("create_state".into()),
    });

    assert_eq!(
        ErrorBody::new(&error, Disclosure::Public).actor,
        Some(ActorBody { actor_id: "act1".into(), generation: 2, key: None })
    );
}
