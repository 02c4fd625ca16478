//! What a failed HTTP call is answered: status, headers and body (§4.2, §6.6, §7.3).
//!
//! # Invariants
//!
//! 1. A client can read the body by its content type alone: what the gateway or the
//!    manager answers is JSON, whatever encoding the client speaks with the actor.
//! 2. The same fault has the same status wherever it is made, but for the manager, whose
//!    tools know 400 and the statuses of `api` only.

use bytes::Bytes;

use super::{Disclosure, Encoding, ErrorBody, Wire, header};
use crate::error::{Error, public_status};

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The actor, in the encoding that the client asked for.
    Actor(Encoding),
    /// The gateway, before an actor had the call or in its place.
    Gateway,
    /// The manager.
    Manager,
}

/// The response that an error is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    /// The status, 400 to 599.
    pub status: u16,
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// The value of [`header::ERROR`]; only the gateway's responses have it.
    pub error_header: Option<String>,
    /// The body: an [`ErrorBody`].
    pub body: Bytes,
}

impl ErrorResponse {
    /// The response of `origin`, with so much of the error.
    pub fn new(error: &Error, disclosure: Disclosure, origin: Origin) -> Self {
        let encoding = match origin {
            Origin::Actor(encoding) => encoding,
            Origin::Gateway | Origin::Manager => Encoding::Json,
        };
        let body = ErrorBody::new(error, disclosure)
            .encode(encoding)
            .expect("an error's metadata came from JSON and has a form in it");
        let fault = || format!("{}.{}", error.group, error.code);
        Self {
            status: http_status(error, origin),
            content_type: encoding.content_type(),
            error_header: (origin == Origin::Gateway).then(fault).filter(|f| header::is_value(f)),
            body,
        }
    }
}

/// The status of a response that an error is: the thrower's choice, else that of the
/// fault, else 500 of an actor and 400 of the gateway (§6.6, §7.2). The manager's are
/// those of `api`, 500 of what is internal and 400 of all else.
pub fn http_status(error: &Error, origin: Origin) -> u16 {
    let (group, code) = (&*error.group, &*error.code);
    let internal = matches!((group, code), ("core" | "rivetkit", "internal_error"));
    if origin == Origin::Manager {
        return match (group, code) {
            ("api", _) => of_gateway(group, code).unwrap_or(400),
            _ if internal => 500,
            _ => 400,
        };
    }
    let otherwise = match origin {
        Origin::Gateway if !internal => 400,
        _ => 500,
    };
    error
        .status_code
        .filter(|status| (400..600).contains(status))
        .or_else(|| public_status(group, code))
        .or_else(|| of_gateway(group, code))
        .unwrap_or(otherwise)
}

/// The statuses of faults whose text clients may not read unless the thrower says so.
fn of_gateway(group: &str, code: &str) -> Option<u16> {
    Some(match (group, code) {
        ("actor", "invalid_request") => 400,
        ("api", "unauthorized") | ("inspector", "unauthorized") => 401,
        ("api", "forbidden") => 403,
        ("api", "not_found") | ("guard", "no_route") => 404,
        ("guard", "invalid_request_body") => 413,
        ("guard", "rate_limit") => 429,
        ("gateway", "answer_invalid" | "answer_broken") => 500,
        (
            "guard",
            "upstream_error"
            | "routing_error"
            | "retry_attempts_exceeded"
            | "invalid_response_body",
        ) => 502,
        (
            "guard",
            "service_unavailable"
            | "actor_ready_timeout"
            | "actor_stopped_while_waiting"
            | "tunnel_request_aborted"
            | "tunnel_response_closed",
        ) => 503,
        (
            "guard",
            "request_timeout" | "tunnel_message_timeout" | "gateway_response_start_timeout",
        ) => 504,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::{ActorSpecifier, ErrorCode};

    fn error(group: &'static str, code: &'static str) -> Error {
        Error::new(ErrorCode::new(group, code), "m")
    }

    fn status(group: &'static str, code: &'static str, origin: Origin) -> u16 {
        http_status(&error(group, code), origin)
    }

    const ACTOR: Origin = Origin::Actor(Encoding::Json);

    /// §6.6.
    #[test]
    fn a_fault_of_the_gateway_has_the_status_of_the_map() {
        let cases = [
            ("actor", "not_found", 404),
            ("guard", "no_route", 404),
            ("api", "not_found", 404),
            ("api", "unauthorized", 401),
            ("api", "forbidden", 403),
            ("guard", "rate_limit", 429),
            ("guard", "service_unavailable", 503),
            ("guard", "actor_ready_timeout", 503),
            ("guard", "actor_stopped_while_waiting", 503),
            ("guard", "tunnel_request_aborted", 503),
            ("guard", "tunnel_response_closed", 503),
            ("guard", "request_timeout", 504),
            ("guard", "tunnel_message_timeout", 504),
            ("guard", "gateway_response_start_timeout", 504),
            ("guard", "upstream_error", 502),
            ("guard", "routing_error", 502),
            ("guard", "retry_attempts_exceeded", 502),
            ("guard", "invalid_response_body", 502),
            ("guard", "invalid_request_body", 413),
            ("guard", "actor_runner_failed", 400),
            ("actor", "destroyed_while_waiting_for_ready", 400),
            ("core", "internal_error", 500),
        ];

        for (group, code, expected) in cases {
            assert_eq!(status(group, code, Origin::Gateway), expected, "{group}.{code}");
        }
    }

    /// §7.2 and §7.3, in one table: what is public has its status, all else is 500.
    #[test]
    fn a_fault_of_an_actor_has_the_throwers_status_else_its_own_else_500() {
        let cases = [
            ("auth", "forbidden", 403),
            ("actor", "not_found", 404),
            ("actor", "action_not_found", 404),
            ("actor", "method_not_allowed", 405),
            ("actor", "action_timed_out", 408),
            ("actor", "invalid_request", 400),
            ("message", "incoming_too_long", 400),
            ("message", "outgoing_too_long", 400),
            ("queue", "full", 400),
            ("user", "mine", 400),
            ("inspector", "unauthorized", 401),
            ("actor", "validation_error", 500),
            ("rivetkit", "internal_error", 500),
        ];

        for (group, code, expected) in cases {
            assert_eq!(status(group, code, ACTOR), expected, "{group}.{code}");
        }
        for (chosen, expected) in [(422, 422), (200, 400), (99, 400), (600, 400)] {
            let mut thrown = error("user", "mine");
            thrown.status_code = Some(chosen);
            assert_eq!(http_status(&thrown, ACTOR), expected, "{chosen}");
        }
    }

    /// §6.6: "401/403/404 for `api.*`, otherwise 400".
    #[test]
    fn the_manager_answers_400_whatever_the_fault_says() {
        let mut not_found = error("actor", "not_found");
        not_found.status_code = Some(404);

        assert_eq!(http_status(&not_found, Origin::Manager), 400);
        assert_eq!(status("api", "unauthorized", Origin::Manager), 401);
        assert_eq!(status("api", "forbidden", Origin::Manager), 403);
        assert_eq!(status("api", "not_found", Origin::Manager), 404);
        assert_eq!(status("api", "bad_request", Origin::Manager), 400);
        assert_eq!(status("core", "internal_error", Origin::Manager), 500);
    }

    /// §11.2: a client of BARE cannot read JSON that is called a stream of bytes.
    #[test]
    fn the_content_type_says_what_the_body_is() {
        let fault = error("user", "no");
        let response = |origin| ErrorResponse::new(&fault, Disclosure::Public, origin);
        let json = &br#"{"group":"user","code":"no","message":"m"}"#[..];

        let bare = response(Origin::Actor(Encoding::Bare));
        assert_eq!(bare.content_type, "application/octet-stream");
        assert_eq!(bare.body[..], b"\x04\0\x04user\x02no\x01m\0\0"[..]);
        let cbor = response(Origin::Actor(Encoding::Cbor));
        assert_eq!(cbor.content_type, "application/octet-stream");
        assert_eq!(cbor.body[..], b"\xa3\x65group\x64user\x64code\x62no\x67message\x61m"[..]);
        for origin in [ACTOR, Origin::Gateway, Origin::Manager] {
            let response = response(origin);
            assert_eq!(response.content_type, "application/json", "{origin:?}");
            assert_eq!(response.body, json, "{origin:?}");
        }
    }

    /// O§1.
    #[test]
    fn the_gateway_names_its_fault_in_a_header_if_a_header_can() {
        let header = |error: &Error, origin| {
            ErrorResponse::new(error, Disclosure::Public, origin).error_header
        };

        assert_eq!(
            header(&error("guard", "no_route"), Origin::Gateway).as_deref(),
            Some("guard.no_route")
        );
        assert_eq!(header(&error("user", "a\r\nset-cookie: b"), Origin::Gateway), None);
        assert_eq!(header(&error("user", "no"), ACTOR), None);
        assert_eq!(header(&error("api", "not_found"), Origin::Manager), None);
    }

    /// §7.2 and §7.1.
    #[test]
    fn the_body_names_the_actor_and_hides_what_is_internal() {
        let error =
            error("actor", "broken").with_metadata(json!({ "a": 1 })).with_actor(ActorSpecifier {
                actor_id: "act1".into(),
                generation: 2,
                key: Some("a/b".into()),
                phase: None,
            });

        let response = ErrorResponse::new(&error, Disclosure::Public, ACTOR);

        assert_eq!(response.status, 500);
        assert_eq!(
            response.body[..],
            *concat!(
                r#"{"group":"actor","code":"broken","message":"An internal error occurred","#,
                r#""actor":{"actorId":"act1","generation":2,"key":"a/b"}}"#
            )
            .as_bytes()
        );
    }
}
