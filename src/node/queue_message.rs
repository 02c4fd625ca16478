//! The contract's `QueueMessage`: a message as its consumer has it.

use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{BigInt, BufferSlice, Uint8Array};
use napi_derive::napi;

use super::env::number;
use super::guard::trip;
use super::host::settles;
use super::hub::Hub;
use crate::core::behavior::Reply;
use crate::core::messages::ReceivedMessage;
use crate::error::Result;

/// A message that was received.
#[napi]
pub struct QueueMessage {
    inner: ReceivedMessage,
    hub: Arc<Hub>,
}

impl QueueMessage {
    pub(super) fn new(inner: ReceivedMessage, hub: Arc<Hub>) -> Self {
        Self { inner, hub }
    }
}

#[napi]
impl QueueMessage {
    /// Its id, from 1 on; ids grow and are never used again.
    #[napi(catch_unwind)]
    pub fn id(&self) -> BigInt {
        trip();
        BigInt::from(self.inner.delivery().id.0)
    }

    /// The name that it was sent under.
    #[napi(catch_unwind)]
    pub fn name(&self) -> String {
        trip();
        self.inner.delivery().name.to_string()
    }

    /// What was sent.
    #[napi(catch_unwind, ts_return_type = "Buffer")]
    pub fn body<'env>(&self, env: &'env Env) -> napi::Result<BufferSlice<'env>> {
        trip();
        BufferSlice::copy_from(env, self.inner.delivery().body.clone())
    }

    /// When it was sent, in milliseconds since the Unix epoch.
    #[napi(catch_unwind)]
    pub fn created_at(&self) -> i64 {
        trip();
        self.inner.delivery().created_at_ms
    }

    /// How often it has been handed out, this time included.
    #[napi(catch_unwind)]
    pub fn delivery_count(&self) -> u32 {
        trip();
        self.inner.delivery().deliveries
    }

    /// Whether it waits until it is completed.
    #[napi(catch_unwind)]
    pub fn is_completable(&self) -> bool {
        trip();
        self.inner.delivery().completable
    }
}

/// Completes a message and settles `ticket` when that is durable. With
/// `queue.already_completed` when it was completed through this object.
#[napi(catch_unwind)]
pub fn queue_message_complete(message: &QueueMessage, response: Option<Uint8Array>, ticket: f64) {
    trip();
    let reply = settles(&message.hub, number(ticket));
    let reply = Reply::new(move |result: Result<()>| reply.send(result.map(|()| None)));
    let response = response.map(|response| Bytes::copy_from_slice(&response));
    message.inner.complete_told(response, reply);
}
