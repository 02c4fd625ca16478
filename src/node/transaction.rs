//! The contract's `JsActorStateTransaction`, and what the author's layer stands on beyond
//! it: keys, messages, schedules and statements within one.
//!
//! The promise-returning methods are added by the JavaScript half
//! (`ts/native/transaction.ts`) on the same class; the functions with a ticket below are
//! what they stand on.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either, Uint8Array};
use napi_derive::napi;

use super::connections::JsStateDelta;
use super::context::settle_with;
use super::env::to_js;
use super::error::thrown;
use super::guard::trip;
use super::hub::Hub;
use super::kv::Kv;
use super::queue::Queue;
use super::schedule::Schedule;
use super::sql::packing::{pack, pack_cursor};
use super::sql::{read_given, through_room};
use crate::core::transaction::{StateTransaction, TransactionOwner};

/// What an actor changes over several turns, all or nothing. One that is dropped is rolled
/// back.
#[napi]
pub struct JsActorStateTransaction {
    owner: TransactionOwner,
    hub: Arc<Hub>,
}

impl JsActorStateTransaction {
    pub(super) fn new(owner: TransactionOwner, hub: Arc<Hub>) -> Self {
        Self { owner, hub }
    }

    fn inner(&self) -> &StateTransaction {
        self.owner.transaction()
    }
}

#[napi]
impl JsActorStateTransaction {
    /// Whether it is open.
    #[napi(catch_unwind)]
    pub fn is_open(&self) -> bool {
        trip();
        self.inner().check().is_ok()
    }

    /// Keys and values as it sees and changes them.
    #[napi(catch_unwind)]
    pub fn kv(&self) -> Kv {
        trip();
        Kv::new(self.inner().kv(), Arc::clone(&self.hub))
    }

    /// Messages, to send, complete and give back with it.
    #[napi(catch_unwind)]
    pub fn queue(&self) -> Queue {
        trip();
        Queue::new(self.inner().queue(), Arc::clone(&self.hub))
    }

    /// Schedules as it sees and changes them.
    #[napi(catch_unwind)]
    pub fn schedule(&self) -> Schedule {
        trip();
        Schedule::new(self.inner().schedule(), Arc::clone(&self.hub))
    }
}

/// Begins the statements of a transaction and settles `ticket` when they have.
#[napi(catch_unwind)]
pub fn state_transaction_begin_sql(transaction: &JsActorStateTransaction, ticket: f64) {
    trip();
    let begun = transaction.inner().begin_statements();
    settle_with(&transaction.hub, ticket, async move { begun.await.map(|()| None) });
}

/// Runs one statement and settles `ticket` with its packed outcome. `budgeted` counts it
/// against the budget of the contract.
#[napi(catch_unwind)]
pub fn state_transaction_execute(
    env: &Env,
    transaction: &JsActorStateTransaction,
    sql: String,
    bindings: Option<Uint8Array>,
    budgeted: bool,
    ticket: f64,
) -> napi::Result<()> {
    trip();
    let bindings = read_given(env, bindings.as_ref())?;
    let inner = transaction.inner();
    let ran =
        if budgeted { inner.execute_budgeted(sql, bindings) } else { inner.execute(sql, bindings) };
    settle_with(&transaction.hub, ticket, async move { pack(&ran.await?).map(Some) });
    Ok(())
}

/// Runs a text of statements and settles `ticket` with the packed outcome of the last one
/// that has columns.
#[napi(catch_unwind)]
pub fn state_transaction_exec(transaction: &JsActorStateTransaction, sql: String, ticket: f64) {
    trip();
    let ran = transaction.inner().exec(sql);
    settle_with(&transaction.hub, ticket, async move { pack(&ran.await?).map(Some) });
}

/// Runs statements here and now, through a room as `sql_in_turn` does.
#[napi(catch_unwind, ts_return_type = "number | Buffer")]
pub fn state_transaction_now<'env>(
    env: &'env Env,
    transaction: &JsActorStateTransaction,
    sql: String,
    room: BufferSlice<'env>,
    bound: u32,
) -> napi::Result<Either<u32, BufferSlice<'env>>> {
    trip();
    through_room(env, room, bound, |bindings| {
        pack_cursor(transaction.inner().execute_now(&sql, bindings)?, false)
    })
}

/// Commits, with what the author's side hands over, and settles `ticket` when that is
/// durable; returns the number of the commit. `covers_state` says that there is no other
/// state to save, and lifts the budget of the contract. Throws why nothing of it was
/// committed.
#[napi(catch_unwind)]
pub fn state_transaction_commit(
    env: &Env,
    transaction: &JsActorStateTransaction,
    delta: JsStateDelta,
    covers_state: bool,
    ticket: f64,
) -> napi::Result<f64> {
    trip();
    let deltas = delta.read(env)?;
    let owner = &transaction.owner;
    let begun = if covers_state {
        owner.commit_deltas(deltas, true)
    } else {
        owner.commit_budgeted(deltas)
    };
    let (number, durable) = begun.map_err(|error| thrown(env, error))?;
    settle_with(&transaction.hub, ticket, async move { durable.await.map(|()| None) });
    Ok(to_js(number.get()))
}

/// Ends it without its changes and settles `ticket` when its statements are undone.
#[napi(catch_unwind)]
pub fn state_transaction_roll_back(transaction: &JsActorStateTransaction, ticket: f64) {
    trip();
    let undone = transaction.owner.roll_back();
    settle_with(&transaction.hub, ticket, async move {
        undone.await;
        Ok(None)
    });
}

/// Settles `ticket` when it ends: with an error when nobody asked for that.
#[napi(catch_unwind)]
pub fn state_transaction_ended(transaction: &JsActorStateTransaction, ticket: f64) {
    trip();
    let ended = transaction.inner().ended();
    settle_with(&transaction.hub, ticket, async move { ended.await.map(|()| None) });
}
