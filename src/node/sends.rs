//! Messages that clients send to queues, taken apart for the contract's `onQueueSend`.

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{BigInt, Buffer, Uint8Array};
use napi_derive::napi;
use serde_json::json;

use super::error::thrown;
use super::guard::trip;
use crate::error::{Error, ErrorCode};
use crate::protocol::SendCall;

/// A message on its way to a queue.
#[napi(object)]
pub struct JsSendParts {
    /// The name of the queue.
    pub name: String,
    /// What is sent, encoded.
    pub body: Buffer,
    /// Whether its sender waits until it is completed.
    pub wait: bool,
    /// For how long, in milliseconds; none for no limit.
    pub timeout_ms: Option<BigInt>,
}

/// The parts of a message of a client, from the arguments of the call as which it came. Throws
/// `queue.option_not_supported` of what the contract's queues cannot do: nothing that a client
/// asks for is left out without a word.
#[napi(catch_unwind)]
pub fn send_parts(env: &Env, args: Uint8Array) -> napi::Result<JsSendParts> {
    trip();
    let call = SendCall::read(Bytes::copy_from_slice(&args)).map_err(|error| thrown(env, error))?;
    let SendCall { queue, body, wait, timeout_ms, policy } = call;
    let options = [
        ("dedupeKey", policy.dedupe_key.is_some()),
        ("delay", policy.delay_ms.is_some_and(|delay| delay > 0)),
    ];
    if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
        return Err(thrown(env, not_supported(&queue, option)));
    }
    Ok(JsSendParts {
        name: queue,
        body: body.cbor().to_vec().into(),
        wait,
        timeout_ms: timeout_ms.map(BigInt::from),
    })
}

/// `queue/option_not_supported`: a message is sent in a way that the actor's queues do not know.
fn not_supported(queue: &str, option: &str) -> Error {
    let code = ErrorCode::new("queue", "option_not_supported");
    let text = format!("the queue `{queue}` takes messages without `{option}` only");
    let mut error = Error::new(code, text).with_metadata(json!({ "option": option }));
    (error.public, error.status_code) = (Some(true), Some(400));
    error
}
