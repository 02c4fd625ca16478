//! An actor's own rows in the shared database.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::connection::Database;
use super::{ActorNumber, ActorRecord, RowOp, StoreError, hibernated, kv, messages, schedule};

/// Deletes a part of the rows that a destroyed actor leaves, at most `?2` of a table:
/// many of them at once would keep everybody else waiting.
const SWEPT: [&str; 13] = [
    "DELETE FROM _gr_kv WHERE num = ?1
        AND key IN (SELECT key FROM _gr_kv WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_queue WHERE num = ?1
        AND id IN (SELECT id FROM _gr_queue WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_queue_dead WHERE num = ?1
        AND id IN (SELECT id FROM _gr_queue_dead WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_queue_key WHERE num = ?1
        AND id IN (SELECT id FROM _gr_queue_key WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_queue_next WHERE num = ?1 AND ?2 > 0",
    "DELETE FROM _gr_schedule_history WHERE num = ?1
        AND id IN (SELECT id FROM _gr_schedule_history WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_schedule_fires WHERE num = ?1
        AND id IN (SELECT id FROM _gr_schedule_fires WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_schedule_events WHERE num = ?1
        AND event_id IN (SELECT event_id FROM _gr_schedule_events WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_conn_state WHERE num = ?1
        AND conn_id IN (SELECT conn_id FROM _gr_conn_state WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_conns WHERE num = ?1
        AND conn_id IN (SELECT conn_id FROM _gr_conns WHERE num = ?1 LIMIT ?2)",
    "DELETE FROM _gr_run_wake WHERE num = ?1 AND ?2 > 0",
    "DELETE FROM _gr_state WHERE num = ?1 AND ?2 > 0",
    "DELETE FROM _gr_actor WHERE num = ?1 AND ?2 > 0",
];

/// Which kind of database is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// The shared one.
    Store,
    /// An actor's own.
    File,
}

/// Reads what is stored of an actor. In the shared store the directory says whether it
/// exists, in its own file the file does.
pub(super) fn load(
    sqlite: &Connection,
    database: &Database,
    number: ActorNumber,
    home: Home,
) -> Result<ActorRecord, StoreError> {
    const IN_STORE: &str =
        "SELECT _gr_actor.has_initialized, _gr_actor.input, _gr_state.state, directory.alarm
         FROM directory LEFT JOIN _gr_actor USING (num) LEFT JOIN _gr_state USING (num)
         WHERE num = ?1";
    const IN_FILE: &str =
        "SELECT _gr_actor.has_initialized, _gr_actor.input, _gr_state.state, _gr_file.alarm
         FROM _gr_file LEFT JOIN _gr_actor USING (num) LEFT JOIN _gr_state USING (num)
         WHERE num = ?1";
    let found = sqlite
        .prepare_cached(match home {
            Home::Store => IN_STORE,
            Home::File => IN_FILE,
        })
        .and_then(|mut query| {
            query
                .query_row([number.0], |row| {
                    let has_initialized: Option<bool> = row.get(0)?;
                    let input: Option<Vec<u8>> = row.get(1)?;
                    let state: Option<Vec<u8>> = row.get(2)?;
                    let alarm: Option<i64> = row.get(3)?;
                    Ok((has_initialized, input, state, alarm))
                })
                .optional()
        })
        .map_err(|error| database.fault(&error))?;
    let Some((has_initialized, input, state, alarm)) = found else {
        return Err(StoreError::NotFound);
    };
    let has_initialized = has_initialized.ok_or_else(|| StoreError::Corrupt {
        path: database.label(),
        reason: format!("actor {} is in the directory and has no row", number.0),
    })?;
    let queue = messages::load(sqlite, number).map_err(|error| database.fault(&error))?;
    Ok(ActorRecord {
        input: input.map(Bytes::from),
        has_initialized,
        state: state.map(Bytes::from),
        alarm,
        queue,
        schedules: schedule::load(sqlite, number).map_err(|error| database.fault(&error))?,
        connections: hibernated::load(sqlite, number).map_err(|error| database.fault(&error))?,
    })
}

/// Makes one change.
pub(super) fn apply(sqlite: &Connection, number: ActorNumber, op: &RowOp) -> rusqlite::Result<()> {
    match op {
        RowOp::PutState(state) => sqlite
            .prepare_cached(
                "INSERT INTO _gr_state (num, state) VALUES (?1, ?2)
                 ON CONFLICT (num) DO UPDATE SET state = excluded.state",
            )?
            .execute(params![number.0, &state[..]])?,
        RowOp::PutInitialized(has_initialized) => sqlite
            .prepare_cached("UPDATE _gr_actor SET has_initialized = ?2 WHERE num = ?1")?
            .execute(params![number.0, has_initialized])?,
        RowOp::PutInput(input) => sqlite
            .prepare_cached("UPDATE _gr_actor SET input = ?2 WHERE num = ?1")?
            .execute(params![number.0, input.as_deref()])?,
        RowOp::PutKv { key, value } => kv::put(sqlite, number, key, value)?,
        RowOp::DeleteKv(key) => kv::delete(sqlite, number, key)?,
        RowOp::DeleteKvRange(range) => kv::delete_range(sqlite, number, range)?,
        RowOp::PutWorkflow { key, value } => sqlite
            .prepare_cached(
                "INSERT INTO _rivet_wf_kv (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )?
            .execute(params![&key[..], &value[..]])?,
        RowOp::Queue(op) => messages::apply(sqlite, number, op)?,
        RowOp::Schedule(op) => schedule::apply(sqlite, number, op)?,
        RowOp::Connection(op) => hibernated::apply(sqlite, number, op)?,
    };
    Ok(())
}

/// Deletes up to about `limit` rows of destroyed actors; says whether more remain.
pub(super) fn sweep(sqlite: &Connection, limit: u32) -> rusqlite::Result<bool> {
    let numbers: Vec<i64> = sqlite
        .prepare_cached("SELECT num FROM garbage LIMIT ?1")?
        .query_map([limit], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut left = limit;
    for &number in &numbers {
        for sql in SWEPT {
            left -= deleted(sqlite.prepare_cached(sql)?.execute(params![number, left])?);
        }
        if left == 0 {
            return Ok(true);
        }
        left -= deleted(
            sqlite.prepare_cached("DELETE FROM garbage WHERE num = ?1")?.execute([number])?,
        );
    }
    Ok(numbers.len() == limit as usize)
}

/// No statement of a sweep deletes more than it is allowed to.
fn deleted(rows: usize) -> u32 {
    u32::try_from(rows).expect("at most the limit of the sweep")
}

/// Whether destroyed actors have left rows.
pub(super) fn has_garbage(sqlite: &Connection) -> rusqlite::Result<bool> {
    sqlite.prepare_cached("SELECT 1 FROM garbage")?.exists([])
}
