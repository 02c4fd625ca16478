//! An actor's own rows in the shared database.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::connection::Database;
use super::{ActorNumber, ActorRecord, RowOp, StoreError};

/// Tables of rows that a destroyed actor leaves, apart from the directory.
const SWEPT: [&str; 2] = ["DELETE FROM state WHERE num = ?1", "DELETE FROM actor WHERE num = ?1"];

/// Reads what is stored of an actor that lives in the shared store.
pub(super) fn load(
    sqlite: &Connection,
    database: &Database,
    number: ActorNumber,
) -> Result<ActorRecord, StoreError> {
    let found = sqlite
        .prepare_cached(
            "SELECT actor.has_initialized, actor.input, state.state
             FROM directory LEFT JOIN actor USING (num) LEFT JOIN state USING (num)
             WHERE num = ?1",
        )
        .and_then(|mut query| {
            query
                .query_row([number.0], |row| {
                    let has_initialized: Option<bool> = row.get(0)?;
                    let input: Option<Vec<u8>> = row.get(1)?;
                    let state: Option<Vec<u8>> = row.get(2)?;
                    Ok((has_initialized, input, state))
                })
                .optional()
        })
        .map_err(|error| database.fault(&error))?;
    let Some((has_initialized, input, state)) = found else { return Err(StoreError::NotFound) };
    let has_initialized = has_initialized.ok_or_else(|| StoreError::Corrupt {
        path: database.label(),
        reason: format!("actor {} is in the directory and has no row", number.0),
    })?;
    Ok(ActorRecord {
        input: input.map(Bytes::from),
        has_initialized,
        state: state.map(Bytes::from),
    })
}

/// Makes one change.
pub(super) fn apply(sqlite: &Connection, number: ActorNumber, op: &RowOp) -> rusqlite::Result<()> {
    match op {
        RowOp::PutState(state) => sqlite
            .prepare_cached(
                "INSERT INTO state (num, state) VALUES (?1, ?2)
                 ON CONFLICT (num) DO UPDATE SET state = excluded.state",
            )?
            .execute(params![number.0, &state[..]])?,
        RowOp::PutInitialized(has_initialized) => sqlite
            .prepare_cached("UPDATE actor SET has_initialized = ?2 WHERE num = ?1")?
            .execute(params![number.0, has_initialized])?,
        RowOp::PutInput(input) => sqlite
            .prepare_cached("UPDATE actor SET input = ?2 WHERE num = ?1")?
            .execute(params![number.0, input.as_deref()])?,
    };
    Ok(())
}

/// Deletes up to about `limit` rows of destroyed actors; says whether more remain.
pub(super) fn sweep(sqlite: &Connection, limit: u32) -> rusqlite::Result<bool> {
    let numbers: Vec<i64> = sqlite
        .prepare_cached("SELECT num FROM garbage LIMIT ?1")?
        .query_map([limit], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut rows = 0;
    for &number in &numbers {
        if rows >= limit as usize {
            return Ok(true);
        }
        for sql in SWEPT {
            rows += sqlite.prepare_cached(sql)?.execute([number])?;
        }
        rows += sqlite.prepare_cached("DELETE FROM garbage WHERE num = ?1")?.execute([number])?;
    }
    Ok(numbers.len() == limit as usize)
}

/// Whether destroyed actors have left rows.
pub(super) fn has_garbage(sqlite: &Connection) -> rusqlite::Result<bool> {
    sqlite.prepare_cached("SELECT 1 FROM garbage")?.exists([])
}
