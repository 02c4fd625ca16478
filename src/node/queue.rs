//! The contract's `Queue`: the messages of one generation.
//!
//! The promise-returning methods are added by the JavaScript half (`ts/native/queue.ts`)
//! on the same class; the functions with a ticket below are what they stand on.
//!
//! # Invariants
//!
//! 1. Bytes are copied in before the call returns.
//! 2. Ids cross as numbers: an actor would have to send a million messages each second
//!    for 285 years before one is no longer exact.
//! 3. A negative number of milliseconds is none given.
//! 4. Messages come back as one packed buffer, little endian: id and time of sending as
//!    floats, the number of deliveries in four bytes, then name and body, each behind its
//!    length in four bytes. Dead ones have the time of their end behind that of sending,
//!    and at the end the error, with an empty one for none.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use napi::bindgen_prelude::{ClassInstance, Uint8Array};
use napi_derive::napi;

use super::context::settle_with;
use super::env::{number, to_js};
use super::guard::trip;
use super::host::settles;
use super::hub::Hub;
use super::queue_message::QueueMessage;
use super::token::CancellationToken;
use crate::core::behavior::Reply;
use crate::core::messages::{ActorQueue, Receive, ReceivedMessage, Until};
use crate::core::queue::{Delivery, Names, NewMessage, Sent};
use crate::error::Result;
use crate::store::{DeadLetter, MessageId};
use crate::time::Duration;

/// What waits in a queue, as the inspector shows it.
#[napi(object)]
pub struct JsQueueMessageSummary {
    /// The message.
    pub id: f64,
    /// The name that it was sent under.
    pub name: String,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: f64,
}

/// The messages of one actor.
#[napi]
pub struct Queue {
    inner: ActorQueue,
    hub: Arc<Hub>,
}

#[napi]
impl Queue {
    /// How many messages may wait.
    #[napi(catch_unwind)]
    pub fn max_size(&self) -> u32 {
        trip();
        u32::try_from(self.inner.max_size()).unwrap_or(u32::MAX)
    }

    /// What waits, by id, those included that consumers have.
    #[napi(catch_unwind)]
    pub fn inspect_messages(&self) -> Vec<JsQueueMessageSummary> {
        trip();
        let summary = |(id, name, at): (MessageId, Arc<str>, i64)| JsQueueMessageSummary {
            id: id_to_js(id),
            name: name.to_string(),
            created_at_ms: ms_to_js(at),
        };
        self.inner.inspect().into_iter().map(summary).collect()
    }
}

impl Queue {
    pub(super) fn new(inner: ActorQueue, hub: Arc<Hub>) -> Self {
        Self { inner, hub }
    }

    /// A reply that settles `ticket` with what `encode` makes of the outcome.
    fn tells<T: 'static>(
        &self,
        ticket: f64,
        encode: impl FnOnce(T) -> Option<Bytes> + Send + 'static,
    ) -> Reply<T> {
        let reply = settles(&self.hub, number(ticket));
        Reply::new(move |result: Result<T>| reply.send(result.map(encode)))
    }
}

/// A message that was received through `queue`, of what was packed of it.
#[napi(catch_unwind)]
pub fn queue_message(
    queue: &Queue,
    id: f64,
    name: String,
    body: Uint8Array,
    created_at_ms: f64,
    deliveries: u32,
    completable: bool,
) -> QueueMessage {
    trip();
    #[expect(clippy::cast_possible_truncation, reason = "it was a whole number of milliseconds")]
    let created_at_ms = created_at_ms as i64;
    let delivery = Delivery {
        id: id_of(id),
        name: name.into(),
        body: Bytes::copy_from_slice(&body),
        created_at_ms,
        deliveries,
        completable,
    };
    QueueMessage::new(queue.inner.received(delivery), Arc::clone(&queue.hub))
}

/// Sends a message and settles `ticket` with its id and the time of its sending, as
/// floats, when it is durable. With `dedupe_key` those may be of an earlier one.
#[napi(catch_unwind)]
pub fn queue_send(
    queue: &Queue,
    name: String,
    body: Uint8Array,
    delay_ms: f64,
    dedupe_key: Option<String>,
    ticket: f64,
) {
    trip();
    let reply = queue.tells(ticket, |sent: Sent| {
        let mut out = BytesMut::with_capacity(16);
        out.put_f64_le(id_to_js(sent.id));
        out.put_f64_le(ms_to_js(sent.created_at_ms));
        Some(out.freeze())
    });
    queue.inner.send_told(new_message(name, &body, delay_ms, dedupe_key), reply);
}

/// Sends a message and settles `ticket` with the response of whoever completes it.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "they cross one by one, which costs least")]
pub fn queue_send_and_wait(
    queue: &Queue,
    name: String,
    body: Uint8Array,
    delay_ms: f64,
    dedupe_key: Option<String>,
    timeout_ms: f64,
    signal: Option<ClassInstance<'_, CancellationToken>>,
    ticket: f64,
) {
    trip();
    let message = new_message(name, &body, delay_ms, dedupe_key);
    let response = queue.inner.send_and_wait(message, until(timeout_ms, signal));
    settle_with(&queue.hub, ticket, response);
}

/// Receives at most `count` messages of these names, of any name for none, and settles
/// `ticket` with them, packed.
#[napi(catch_unwind)]
pub fn queue_receive(
    queue: &Queue,
    names: Vec<String>,
    count: u32,
    completable: bool,
    timeout_ms: f64,
    signal: Option<ClassInstance<'_, CancellationToken>>,
    ticket: f64,
) {
    trip();
    let (names, count) = (Names::of(names), count as usize);
    if signal.is_none() {
        let reply = queue.tells(ticket, |found: Vec<Delivery>| Some(packed(found.iter())));
        return queue.inner.receive_told(names, count, completable, span(timeout_ms), reply);
    }
    let until = until(timeout_ms, signal);
    let received = queue.inner.receive(Receive { names, count, completable, until });
    settle_with(&queue.hub, ticket, async move {
        let received = received.await?;
        Ok(Some(packed(received.iter().map(ReceivedMessage::delivery))))
    });
}

/// Settles `ticket` when a message of these names is there, of any name for none.
#[napi(catch_unwind)]
pub fn queue_wait_available(
    queue: &Queue,
    names: Vec<String>,
    timeout_ms: f64,
    signal: Option<ClassInstance<'_, CancellationToken>>,
    ticket: f64,
) {
    trip();
    let there = queue.inner.wait_for_names_available(Names::of(names), until(timeout_ms, signal));
    settle_with(&queue.hub, ticket, async move { there.await.map(|()| None) });
}

/// Completes the delivery of a message and settles `ticket` when that is durable.
#[napi(catch_unwind)]
pub fn queue_complete(
    queue: &Queue,
    id: f64,
    deliveries: u32,
    response: Option<Uint8Array>,
    ticket: f64,
) {
    trip();
    let reply = queue.tells(ticket, |()| None);
    let response = response.map(|response| Bytes::copy_from_slice(&response));
    queue.inner.received(delivery(id, deliveries)).complete_told(response, reply);
}

/// Gives the delivery of a message back, for `delay_ms` or as its policy says, and
/// settles `ticket` when that is durable.
#[napi(catch_unwind)]
pub fn queue_release(
    queue: &Queue,
    id: f64,
    deliveries: u32,
    delay_ms: f64,
    error: Option<String>,
    ticket: f64,
) {
    trip();
    let reply = queue.tells(ticket, |()| None);
    queue.inner.received(delivery(id, deliveries)).release_told(span(delay_ms), error, reply);
}

/// Completes a message by its id and name, whoever has it, and settles `ticket` with
/// one byte when that is durable: 1, or 0 when it was not there.
#[napi(catch_unwind)]
pub fn queue_complete_by_id(
    queue: &Queue,
    id: f64,
    expected_name: String,
    response: Option<Uint8Array>,
    ticket: f64,
) {
    trip();
    let response = response.map(|response| Bytes::copy_from_slice(&response));
    let done = queue.inner.complete_by_id(id_of(id), expected_name, response);
    settle_with(&queue.hub, ticket, async move { Ok(Some(flag(done.await?))) });
}

/// Throws away everything that waits, and settles `ticket` when that is durable.
#[napi(catch_unwind)]
pub fn queue_reset(queue: &Queue, ticket: f64) {
    trip();
    let done = queue.inner.reset();
    settle_with(&queue.hub, ticket, async move { done.await.map(|()| None) });
}

/// Settles `ticket` with at most `limit` dead messages with an id behind `after`, packed.
#[napi(catch_unwind)]
pub fn queue_dead(queue: &Queue, after: f64, limit: u32, ticket: f64) {
    trip();
    let found = queue.inner.dead_letters(id_of(after), limit);
    settle_with(&queue.hub, ticket, async move { Ok(Some(packed_dead(&found.await?))) });
}

/// Lets a dead message wait again, and settles `ticket` with one byte when that is
/// durable: 1, or 0 when it was not there.
#[napi(catch_unwind)]
pub fn queue_dead_retry(queue: &Queue, id: f64, ticket: f64) {
    trip();
    let done = queue.inner.revive(id_of(id));
    settle_with(&queue.hub, ticket, async move { Ok(Some(flag(done.await?))) });
}

/// Throws away a dead message, and settles `ticket` likewise.
#[napi(catch_unwind)]
pub fn queue_dead_delete(queue: &Queue, id: f64, ticket: f64) {
    trip();
    let done = queue.inner.delete_dead(id_of(id));
    settle_with(&queue.hub, ticket, async move { Ok(Some(flag(done.await?))) });
}

fn new_message(
    name: String,
    body: &Uint8Array,
    delay_ms: f64,
    dedupe_key: Option<String>,
) -> NewMessage {
    NewMessage {
        name: name.into(),
        body: Bytes::copy_from_slice(body),
        delay: span(delay_ms).unwrap_or_default(),
        dedupe_key: dedupe_key.map(Into::into),
    }
}

/// What is needed of a delivery to end it.
fn delivery(id: f64, deliveries: u32) -> Delivery {
    Delivery {
        id: id_of(id),
        name: "".into(),
        body: Bytes::new(),
        created_at_ms: 0,
        deliveries,
        completable: true,
    }
}

fn until(timeout_ms: f64, signal: Option<ClassInstance<'_, CancellationToken>>) -> Until {
    Until { timeout: span(timeout_ms), signal: signal.map(|signal| signal.token()) }
}

/// See invariant 3.
fn span(ms: f64) -> Option<Duration> {
    (ms >= 0.0).then(|| Duration::from_millis(number(ms.ceil())))
}

#[expect(clippy::cast_possible_truncation, reason = "see invariant 2")]
fn id_of(id: f64) -> MessageId {
    MessageId(id as i64)
}

fn id_to_js(id: MessageId) -> f64 {
    to_js(u64::try_from(id.0).unwrap_or_default())
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of this age stay below 2^53")]
fn ms_to_js(ms: i64) -> f64 {
    ms as f64
}

fn flag(was_there: bool) -> Bytes {
    Bytes::copy_from_slice(&[u8::from(was_there)])
}

/// See invariant 4.
fn packed<'a>(messages: impl Iterator<Item = &'a Delivery>) -> Bytes {
    let mut out = BytesMut::new();
    for message in messages {
        out.put_f64_le(id_to_js(message.id));
        out.put_f64_le(ms_to_js(message.created_at_ms));
        out.put_u32_le(message.deliveries);
        put(&mut out, message.name.as_bytes());
        put(&mut out, &message.body);
    }
    out.freeze()
}

fn packed_dead(messages: &[DeadLetter]) -> Bytes {
    let mut out = BytesMut::new();
    for message in messages {
        out.put_f64_le(id_to_js(message.id));
        out.put_f64_le(ms_to_js(message.created_at_ms));
        out.put_f64_le(ms_to_js(message.died_at_ms));
        out.put_u32_le(message.deliveries);
        put(&mut out, message.name.as_bytes());
        put(&mut out, &message.body);
        put(&mut out, message.error.as_deref().unwrap_or_default().as_bytes());
    }
    out.freeze()
}

/// Bytes behind their length; bodies and names are far below 4 GiB.
fn put(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32_le(u32::try_from(bytes.len()).expect("SQLite stores no value of 4 GiB"));
    out.put_slice(bytes);
}
