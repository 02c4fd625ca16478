//! Errors on their way between Rust and JavaScript.
//!
//! Two forms: a *record* is the JSON of an [`Error`], from which the JavaScript
//! half builds a plain error; the *bridge form* is a message with a prefix, which
//! the contract's classes throw and which author code written for them throws back.
//!
//! # Invariants
//!
//! 1. The bridge form has exactly the eight keys, in alphabetical order, with
//!    explicit nulls.
//! 2. What cannot be read back is an unstructured error that keeps its text.
//! 3. Nothing is thrown on a hot path: those functions answer with numbers.

use napi::Env;
use napi::bindgen_prelude::{Function, JsObjectValue, JsValue, Null, Object, Unknown};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{ActorSpecifier, Error, ErrorCode, public_status};

/// What a message in the bridge form begins with.
pub(super) const BRIDGE_PREFIX: &str = "__RIVET_ERROR_JSON__:";

/// The keys of the bridge form (invariant 1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bridged<'a> {
    actor: Option<Actor<'a>>,
    code: &'a str,
    group: &'a str,
    message: &'a str,
    metadata: Option<&'a Value>,
    public: Option<bool>,
    ray_id: Option<&'a str>,
    status_code: Option<u16>,
}

/// An actor without the phase, which readers of the bridge form do not know.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Actor<'a> {
    actor_id: &'a str,
    generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

impl<'a> From<&'a ActorSpecifier> for Actor<'a> {
    fn from(actor: &'a ActorSpecifier) -> Self {
        Self { actor_id: &actor.actor_id, generation: actor.generation, key: actor.key.as_deref() }
    }
}

/// The message of an error in the bridge form.
pub(super) fn to_bridge(error: &Error) -> String {
    let (public, status_code) = promoted(error);
    let bridged = Bridged {
        actor: error.actor.as_ref().map(Actor::from),
        code: &error.code,
        group: &error.group,
        message: &error.message,
        metadata: error.metadata.as_ref(),
        public,
        ray_id: error.ray_id.as_deref(),
        status_code,
    };
    let json = serde_json::to_string(&bridged).expect("strings and JSON values always serialise");
    format!("{BRIDGE_PREFIX}{json}")
}

/// The record of an error.
pub(super) fn to_record(error: &Error) -> Vec<u8> {
    let mut promoted = error.clone();
    (promoted.public, promoted.status_code) = self::promoted(error);
    serde_json::to_vec(&promoted).expect("strings and JSON values always serialise")
}

/// Reads a record (invariant 2).
pub(super) fn from_record(bytes: &[u8]) -> Error {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Error::internal(String::from_utf8_lossy(bytes)))
}

/// `public` and `statusCode` as they cross: a fault that every client may know
/// of is public, unless whoever threw it chose otherwise.
fn promoted(error: &Error) -> (Option<bool>, Option<u16>) {
    let chosen = error.public == Some(true) && error.status_code.is_some_and(|code| code != 500);
    match public_status(&error.group, &error.code) {
        Some(status) if !chosen => (Some(true), Some(status)),
        _ => (error.public, error.status_code),
    }
}

/// `napi/invalid_argument`: the caller of an exported item passed what it cannot take.
pub(super) fn invalid_argument(argument: &str, reason: impl std::fmt::Display) -> Error {
    let reason = reason.to_string();
    Error::new(
        ErrorCode::new("napi", "invalid_argument"),
        format!("Invalid native argument '{argument}': {reason}"),
    )
    .with_metadata(json!({ "argument": argument, "reason": reason }))
}

/// `napi/invalid_state`: an exported item was called when it cannot be.
pub(super) fn invalid_state(state: &str, reason: impl std::fmt::Display) -> Error {
    let reason = reason.to_string();
    Error::new(
        ErrorCode::new("napi", "invalid_state"),
        format!("Invalid native state '{state}': {reason}"),
    )
    .with_metadata(json!({ "state": state, "reason": reason }))
}

/// `actor/environment_gone`: the JavaScript that ran the actor is no more. The
/// call may be repeated, whether or not it had begun.
pub(super) fn environment_gone() -> Error {
    Error::new(
        ErrorCode::new("actor", "environment_gone"),
        "the environment that ran the actor is gone",
    )
    .with_metadata(json!({ "retryable": true }))
}

/// The JavaScript error that an exported item throws: the bridge form as its
/// message, and `group`, `code` and `metadata` as its own properties.
pub(super) fn thrown(env: &Env, error: impl Into<Error>) -> napi::Error {
    let error = error.into();
    build(env, &error).unwrap_or_else(|_| napi::Error::from_reason(to_bridge(&error)))
}

fn build(env: &Env, error: &Error) -> napi::Result<napi::Error> {
    let mut object = env.create_error(napi::Error::from_reason(to_bridge(error)))?;
    object.set_named_property("group", error.group.as_ref())?;
    object.set_named_property("code", error.code.as_ref())?;
    match &error.metadata {
        Some(metadata) => {
            object.set_named_property("metadata", parse_json(env, &metadata.to_string())?)?;
        }
        None => object.set_named_property("metadata", Null)?,
    }
    Ok(napi::Error::from(object.to_unknown()))
}

/// The JavaScript value of a JSON text.
fn parse_json<'env>(env: &'env Env, text: &str) -> napi::Result<Unknown<'env>> {
    let json: Object = env.get_global()?.get_named_property("JSON")?;
    let parse: Function<'_, String, Unknown<'_>> = json.get_named_property("parse")?;
    parse.call(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_form_has_its_eight_keys_in_order_with_explicit_nulls() {
        let error = Error::new(ErrorCode::new("services", "start_failed"), "no")
            .with_metadata(json!({ "reason": "x" }));

        assert_eq!(
            to_bridge(&error),
            "__RIVET_ERROR_JSON__:{\"actor\":null,\"code\":\"start_failed\",\
             \"group\":\"services\",\"message\":\"no\",\"metadata\":{\"reason\":\"x\"},\
             \"public\":null,\"rayId\":null,\"statusCode\":null}"
        );
    }

    #[test]
    fn a_known_fault_becomes_public_unless_the_thrower_chose() {
        let not_found = Error::new(ErrorCode::new("actor", "not_found"), "x");
        let mut chosen = not_found.clone();
        (chosen.public, chosen.status_code) = (Some(true), Some(410));
        let mut broken = not_found.clone();
        (broken.public, broken.status_code) = (Some(true), Some(500));
        let private = Error::internal("secret");

        assert_eq!(promoted(&not_found), (Some(true), Some(404)));
        assert_eq!(promoted(&chosen), (Some(true), Some(410)));
        assert_eq!(promoted(&broken), (Some(true), Some(404)));
        assert_eq!(promoted(&private), (None, None));
    }

    #[test]
    fn a_record_reads_back_and_anything_else_keeps_its_text() {
        let error = Error::new(ErrorCode::new("user", "mine"), "m").with_metadata(json!([1]));

        let back = from_record(&to_record(&error));
        let broken = from_record(b"{not json");

        assert_eq!((back.code.as_ref(), back.metadata.clone()), ("mine", Some(json!([1]))));
        assert_eq!(back.status_code, Some(400));
        assert!(broken.is("core", "internal_error"));
        assert_eq!(broken.metadata, Some(json!({ "error": "{not json" })));
    }

    #[test]
    fn the_bridge_form_names_the_actor_without_its_phase() {
        let actor = ActorSpecifier {
            actor_id: "a".into(),
            generation: 7,
            key: Some("k".into()),
            phase: Some("on_wake".into()),
        };

        let message = to_bridge(&Error::internal("x").with_actor(actor));

        assert!(message.contains(r#""actor":{"actorId":"a","generation":7,"key":"k"}"#));
    }
}
