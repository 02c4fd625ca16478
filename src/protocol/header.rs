//! The headers of HTTP calls, in lower case, and what they hold (§4.2, §6.4).

use std::borrow::Cow;

use super::{ActorBody, Payload, ProtocolError};

/// The encoding of the bodies; see [`Encoding::of_header`](super::Encoding::of_header).
pub const ENCODING: &str = "x-rivet-encoding";
/// The parameters of the connection in JSON; see [`params`].
pub const PARAMS: &str = "x-rivet-conn-params";
/// What a request is routed to; `actor` is the only target that there is.
pub const TARGET: &str = "x-rivet-target";
/// Of a request the id of the actor to route to, of a response that of the actor which
/// answers.
pub const ACTOR: &str = "x-rivet-actor";
/// The run of the actor which answers.
pub const ACTOR_GENERATION: &str = "x-rivet-actor-generation";
/// The key of the actor which answers, as it is shown.
pub const ACTOR_KEY: &str = "x-rivet-actor-key";
/// What a client authenticates with at the gateway.
pub const TOKEN: &str = "x-rivet-token";
/// `1` if the actor gets the call before it is ready.
pub const SKIP_READY_WAIT: &str = "x-rivet-skip-ready-wait";
/// The id of a request; given by the gateway unless the client has given one.
pub const RAY_ID: &str = "x-rivet-ray-id";
/// The fault that the gateway answers with, as `group.code`.
pub const ERROR: &str = "x-rivet-error";
/// The URL that an author's code has to see in place of the real one. Taken out before
/// that code sees the headers (§4.5).
pub const ORIGINAL_URL: &str = "x-rivet-internal-original-request-url";

/// The parameters of the connection that a call is, from the value of [`PARAMS`]; `null`
/// if there is none (§4.2).
///
/// What is no UTF-8 is Latin-1: `fetch` writes each character of a header as one byte, so the
/// `é` of a client that does not escape it comes as `E9`.
///
/// # Errors
///
/// Those of [`Payload::from_json`].
pub fn params(value: Option<&[u8]>) -> Result<Payload, ProtocolError> {
    let Some(value) = value else { return Ok(Payload::null()) };
    let json = match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.iter().copied().map(char::from).collect(),
    };
    Payload::from_json(json.as_bytes())
}

/// The headers of every response of an actor (§4.2). A key that no header can hold is
/// left out.
pub fn of_actor(actor: &ActorBody) -> Vec<(&'static str, String)> {
    let key = actor.key.as_ref().filter(|key| is_value(key));
    [(ACTOR, actor.actor_id.clone()), (ACTOR_GENERATION, actor.generation.to_string())]
        .into_iter()
        .chain(key.map(|key| (ACTOR_KEY, key.clone())))
        .collect()
}

/// The same of an actor that was not asked itself, and may sleep: of no run.
pub fn of_sleeping(id: String, key: String) -> Vec<(&'static str, String)> {
    let key = Some(key).filter(|key| is_value(key));
    [(ACTOR, id)].into_iter().chain(key.map(|key| (ACTOR_KEY, key))).collect()
}

/// Whether a header can hold a text: an end of a line would begin another header, and no
/// server sends other control characters.
pub(super) fn is_value(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_json_and_null_without_a_header() {
        assert_eq!(params(None), Ok(Payload::null()));
        assert_eq!(params(Some(br#"{"a":1}"#)).unwrap().cbor()[..], b"\xa1\x61a\x01"[..]);
        for bad in [&b""[..], b"{", b"\xff", b"%7B%7D"] {
            assert!(matches!(params(Some(bad)), Err(ProtocolError::NotJson { .. })), "{bad:?}");
        }
    }

    #[test]
    fn parameters_that_are_no_utf_8_are_latin_1() {
        let utf_8 = params(Some(r#""Zoë""#.as_bytes()));
        assert_eq!(params(Some(b"\"Zo\xeb\"")), utf_8);
        assert_eq!(utf_8.unwrap().cbor()[..], b"\x64Zo\xc3\xab"[..]);
    }

    /// §4.2.
    #[test]
    fn a_response_names_the_actor_and_its_key_unless_that_would_break_the_header() {
        let headers = |key: Option<&str>| {
            of_actor(&ActorBody {
                actor_id: "act1".into(),
                generation: 300,
                key: key.map(str::to_owned),
            })
        };
        let always = [("x-rivet-actor", "act1".into()), ("x-rivet-actor-generation", "300".into())];

        let named = headers(Some(r"a\/b/é"));
        assert_eq!(named[..2], always);
        assert_eq!(named[2..], [("x-rivet-actor-key", r"a\/b/é".into())]);
        for key in [None, Some("a\r\nb"), Some("a\nb"), Some("a\0"), Some("\x7f")] {
            assert_eq!(headers(key), always, "{key:?}");
        }
    }
}
