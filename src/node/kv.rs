//! The contract's `Kv`: keys and values of one generation.
//!
//! The promise-returning methods are added by the JavaScript half
//! (`ts/native/kv.ts`) on the same class; the functions with a ticket below are what
//! they stand on.
//!
//! # Invariants
//!
//! 1. Bytes are copied in before the call returns.
//! 2. Many small values come back as one packed buffer: each as its length plus one in
//!    four bytes, little endian, and its bytes; 0 for none.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use super::context::settle_with;
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::hub::Hub;
use crate::core::kv::ActorKv;
use crate::error::{Error, Result};
use crate::store::{KeyRange, KvQuery};

/// The keys and values of one actor, ordered by the bytes of the keys.
#[napi]
pub struct Kv {
    inner: ActorKv,
    hub: Arc<Hub>,
}

impl Kv {
    pub(super) fn new(inner: ActorKv, hub: Arc<Hub>) -> Self {
        Self { inner, hub }
    }
}

/// Settles `ticket` with the packed values of `keys`.
#[napi(catch_unwind)]
pub fn kv_get(kv: &Kv, keys: Vec<Uint8Array>, ticket: f64) {
    trip();
    let found = kv.inner.get(keys.iter().map(copied).collect());
    settle_with(&kv.hub, ticket, async move {
        let values = found.await?;
        packed(values.iter().map(Option::as_deref)).map(Some)
    });
}

/// Sets `keys` to `values`, which are as many, and settles `ticket` when they are
/// durable.
#[napi(catch_unwind)]
pub fn kv_put(
    env: &Env,
    kv: &Kv,
    keys: Vec<Uint8Array>,
    values: Vec<Uint8Array>,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    if keys.len() != values.len() {
        return Err(thrown(env, invalid_argument("values", "they are not as many as the keys")));
    }
    let written = kv.inner.put(keys.iter().map(copied).zip(values.iter().map(copied)).collect());
    settle_with(&kv.hub, ticket, async move { written.await.map(|()| None) });
    Ok(())
}

/// Deletes `keys` and settles `ticket` when that is durable.
#[napi(catch_unwind)]
pub fn kv_delete(kv: &Kv, keys: Vec<Uint8Array>, ticket: f64) {
    trip();
    let deleted = kv.inner.delete(keys.iter().map(copied).collect());
    settle_with(&kv.hub, ticket, async move { deleted.await.map(|()| None) });
}

/// Deletes the keys from `start` on and before `end`, and settles `ticket` when that
/// is durable.
#[napi(catch_unwind)]
pub fn kv_delete_range(kv: &Kv, start: Uint8Array, end: Uint8Array, ticket: f64) {
    trip();
    let deleted = kv.inner.delete_range(KeyRange::between(copied(&start), copied(&end)));
    settle_with(&kv.hub, ticket, async move { deleted.await.map(|()| None) });
}

/// Settles `ticket` with the packed keys and values from `start` on and before `end`,
/// or, without an end, of the keys that begin with `start`. A negative `limit` is none.
#[napi(catch_unwind)]
pub fn kv_list(
    kv: &Kv,
    start: Uint8Array,
    end: Option<Uint8Array>,
    reverse: bool,
    limit: f64,
    ticket: f64,
) {
    trip();
    let range = match end {
        Some(end) => KeyRange::between(copied(&start), copied(&end)),
        None => KeyRange::prefix(copied(&start)),
    };
    // The JavaScript half lets whole numbers through only; one beyond is no limit either.
    let limit = (0.0..=f64::from(u32::MAX)).contains(&limit).then_some(limit as u32);
    let found = kv.inner.list(KvQuery { range, reverse, limit });
    settle_with(&kv.hub, ticket, async move {
        let entries = found.await?;
        packed(entries.iter().flat_map(|(key, value)| [Some(&key[..]), Some(&value[..])])).map(Some)
    });
}

pub(super) fn copied(bytes: &Uint8Array) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// See invariant 2.
pub(super) fn packed<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<Bytes> {
    let mut out = BytesMut::new();
    for value in values {
        let Some(value) = value else {
            out.put_u32_le(0);
            continue;
        };
        let length = u32::try_from(value.len()).ok().and_then(|length| length.checked_add(1));
        let length = length.ok_or_else(|| Error::internal("a value of more than 4 GiB"))?;
        out.put_u32_le(length);
        out.put_slice(value);
    }
    Ok(out.freeze())
}
