//! Messages that clients send to queues, taken apart for the contract's `onQueueSend`.

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{BigInt, Buffer, Uint8Array};
use napi_derive::napi;

use super::error::thrown;
use super::guard::trip;
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

/// The parts of a message of a client, from the arguments of the call as which it came.
#[napi(catch_unwind)]
pub fn send_parts(env: &Env, args: Uint8Array) -> napi::Result<JsSendParts> {
    trip();
    let call = SendCall::read(Bytes::copy_from_slice(&args)).map_err(|error| thrown(env, error))?;
    let SendCall { queue, body, wait, timeout_ms } = call;
    Ok(JsSendParts {
        name: queue,
        body: body.cbor().to_vec().into(),
        wait,
        timeout_ms: timeout_ms.map(BigInt::from),
    })
}
