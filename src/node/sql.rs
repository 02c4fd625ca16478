//! The contract's `JsNativeDatabase` and `JsSqliteTransaction`: an author's SQL in one
//! generation.
//!
//! The promise-returning methods are added by the JavaScript half (`ts/native/sql.ts`)
//! on the same classes; the functions with a ticket below are what they stand on.
//!
//! # Invariants
//!
//! 1. Values cross packed, in both directions, as `packing` says; what cannot be read is
//!    refused and never guessed.

pub(super) mod packing;

use std::sync::Arc;

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either, Uint8Array};
use napi_derive::napi;

use self::packing::{pack, pack_all, pack_cursor, unpack};
use super::context::settle_with;
use super::env::number;
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use super::host::settles;
use super::hub::Hub;
use crate::core::behavior::Reply;
use crate::core::sql::{ActorSql, ActorTransaction};
use crate::error::Result;
use crate::store::{BeginOptions, Bindings, SqlOutcome};
use crate::time::Duration;

/// The database of one actor.
#[napi]
pub struct JsNativeDatabase {
    inner: ActorSql,
    hub: Arc<Hub>,
}

/// A transaction that spans turns.
#[napi]
pub struct JsSqliteTransaction {
    inner: ActorTransaction,
    hub: Arc<Hub>,
}

impl JsNativeDatabase {
    pub(super) fn new(inner: ActorSql, hub: Arc<Hub>) -> Self {
        Self { inner, hub }
    }
}

#[napi]
impl JsNativeDatabase {
    /// Counters of the database; none are kept.
    #[napi(catch_unwind, ts_return_type = "null")]
    pub fn metrics(&self) -> Option<f64> {
        trip();
        None
    }

    /// The last error of the store of keys and values; it is thrown where it happens.
    #[napi(catch_unwind, ts_return_type = "null")]
    pub fn take_last_kv_error(&self) -> Option<String> {
        trip();
        None
    }
}

/// Runs one statement and settles `ticket` with its packed outcome. `waits`: the output of the
/// call that asks is not made before it has ended.
#[napi(catch_unwind)]
pub fn sql_execute(
    env: &Env,
    database: &JsNativeDatabase,
    sql: String,
    bindings: Option<Uint8Array>,
    waits: bool,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let bindings = read_given(env, bindings.as_ref())?;
    let reply = settles(&database.hub, number(ticket));
    let packed = Reply::new(move |ran: Result<SqlOutcome>| {
        reply.send(ran.and_then(|outcome| pack(&outcome).map(Some)));
    });
    for_caller(database, waits).execute_told(sql, bindings, packed);
    Ok(())
}

/// Runs statements in the turn that is going on. The first `bound` bytes of `room` are the
/// packed bindings. The packed outcome is put in their place and its length returned, or
/// returned itself when there is not room enough. It has the rows that were written and
/// whether the turn has written in place of the changes and the id.
///
/// A buffer for each call would take longer than most statements.
#[napi(catch_unwind, ts_return_type = "number | Buffer")]
pub fn sql_in_turn<'env>(
    env: &'env Env,
    database: &JsNativeDatabase,
    sql: String,
    room: BufferSlice<'env>,
    bound: u32,
) -> napi::Result<Either<u32, BufferSlice<'env>>> {
    trip();
    through_room(env, room, bound, |bindings| {
        let ran = database.inner.run_in_turn(&sql, bindings)?;
        pack_cursor(ran.cursor, ran.wrote)
    })
}

/// Reads bindings from a room, and puts there what `run` gives; see [`sql_in_turn`].
pub(super) fn through_room<'env>(
    env: &'env Env,
    mut room: BufferSlice<'env>,
    bound: u32,
    run: impl FnOnce(&Bindings) -> Result<Vec<u8>>,
) -> napi::Result<Either<u32, BufferSlice<'env>>> {
    let packed = room.get(..bound as usize).unwrap_or_default();
    let bindings = if bound == 0 { Bindings::None } else { read(env, packed)? };
    let packed = run(&bindings).map_err(|error| thrown(env, error))?;
    match (room.get_mut(..packed.len()), u32::try_from(packed.len())) {
        (Some(place), Ok(length)) => {
            place.copy_from_slice(&packed);
            Ok(Either::A(length))
        }
        _ => BufferSlice::from_data(env, packed).map(Either::B),
    }
}

/// A turn in which [`sql_in_turn`] was called has ended.
#[napi(catch_unwind)]
pub fn sql_turn_ended(database: &JsNativeDatabase) {
    trip();
    database.inner.end_turn();
}

/// Runs a text of statements and settles `ticket` with the packed outcome of the last one
/// that has columns.
#[napi(catch_unwind)]
pub fn sql_exec(database: &JsNativeDatabase, sql: String, waits: bool, ticket: f64) {
    trip();
    let ran = for_caller(database, waits).exec(sql);
    settle_with(&database.hub, ticket, async move { pack(&ran.await?).map(Some) });
}

/// Runs statements, all or none, and settles `ticket` with their packed outcomes.
#[napi(catch_unwind)]
pub fn sql_batch(
    env: &Env,
    database: &JsNativeDatabase,
    statements: Vec<String>,
    bindings: Vec<Uint8Array>,
    waits: bool,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    if statements.len() != bindings.len() {
        let error = invalid_argument("bindings", "they are not as many as the statements");
        return Err(thrown(env, error));
    }
    let bindings: Vec<_> =
        bindings.iter().map(|packed| read(env, packed)).collect::<napi::Result<_>>()?;
    let ran =
        for_caller(database, waits).execute_batch(statements.into_iter().zip(bindings).collect());
    settle_with(&database.hub, ticket, async move { pack_all(&ran.await?).map(Some) });
    Ok(())
}

/// Begins a transaction and settles `ticket` with its key. No timeout is the default.
#[napi(catch_unwind)]
pub fn sql_begin(
    database: &JsNativeDatabase,
    timeout_ms: Option<f64>,
    name: Option<String>,
    ticket: f64,
) {
    trip();
    // The JavaScript half lets positive finite numbers through only.
    let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.ceil() as u64));
    let begun = database.inner.begin(BeginOptions { key: None, name, timeout });
    settle_with(&database.hub, ticket, async move {
        Ok(Some(Bytes::copy_from_slice(begun.await?.key().as_bytes())))
    });
}

/// The transaction of a key, whatever became of it. Throws once the database is closed.
#[napi(catch_unwind)]
pub fn sql_transaction(
    env: &Env,
    database: &JsNativeDatabase,
    key: String,
) -> napi::Result<JsSqliteTransaction> {
    trip();
    let inner = database.inner.transaction(key).map_err(|error| thrown(env, error))?;
    Ok(JsSqliteTransaction { inner, hub: Arc::clone(&database.hub) })
}

/// Closes the database for the rest of the generation, with `rows` also everything else that
/// is stored beside the state, and settles `ticket` when nothing runs in it.
#[napi(catch_unwind)]
pub fn sql_close(database: &JsNativeDatabase, rows: bool, ticket: f64) {
    trip();
    let closed = if rows { database.inner.close_rows_too() } else { database.inner.close() };
    settle_with(&database.hub, ticket, async move { closed.await.map(|()| None) });
}

/// Runs one statement within a transaction.
#[napi(catch_unwind)]
pub fn sql_transaction_execute(
    env: &Env,
    transaction: &JsSqliteTransaction,
    sql: String,
    bindings: Option<Uint8Array>,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let ran = transaction.inner.execute(sql, read_given(env, bindings.as_ref())?);
    settle_with(&transaction.hub, ticket, async move { pack(&ran.await?).map(Some) });
    Ok(())
}

/// Runs a text of statements within a transaction.
#[napi(catch_unwind)]
pub fn sql_transaction_exec(transaction: &JsSqliteTransaction, sql: String, ticket: f64) {
    trip();
    let ran = transaction.inner.exec(sql);
    settle_with(&transaction.hub, ticket, async move { pack(&ran.await?).map(Some) });
}

/// Ends a transaction, with its changes or without, and settles `ticket` when that is
/// durable.
#[napi(catch_unwind)]
pub fn sql_transaction_end(transaction: &JsSqliteTransaction, commits: bool, ticket: f64) {
    trip();
    let ended = if commits { transaction.inner.commit() } else { transaction.inner.roll_back() };
    settle_with(&transaction.hub, ticket, async move { ended.await.map(|()| None) });
}

fn for_caller(database: &JsNativeDatabase, waits: bool) -> ActorSql {
    if waits { database.inner.for_who_waits() } else { database.inner.clone() }
}

pub(super) fn read_given(env: &Env, packed: Option<&Uint8Array>) -> napi::Result<Bindings> {
    packed.map_or(Ok(Bindings::None), |packed| read(env, packed))
}

pub(super) fn read(env: &Env, packed: &[u8]) -> napi::Result<Bindings> {
    unpack(packed)
        .ok_or_else(|| thrown(env, invalid_argument("params", "they are not packed as agreed")))
}
