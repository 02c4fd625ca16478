//! Reading schedules.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    FaultRow, FireKind, FireRow, FireState, HistoryResult, HistoryRow, InvalidRow, RetryRow,
    ScheduleKind, ScheduleRow, StoredSchedules,
};
use crate::store::ActorNumber;

/// A row, or what is wrong with it.
type Checked<T> = Result<T, InvalidRow>;

/// Everything but the history.
pub(in super::super) fn load(
    sqlite: &Connection,
    number: ActorNumber,
) -> rusqlite::Result<StoredSchedules> {
    let mut stored = StoredSchedules::default();
    let pending = rows(
        sqlite,
        number,
        "SELECT event_id, trigger_at, action, args, kind, cron_expression, timezone, interval_ms,
             last_started_at, max_history, retry_max_attempts, retry_initial_ms, retry_max_ms, key
         FROM _gr_schedule_events WHERE num = ?1 ORDER BY event_id",
        pending_row,
    )?;
    for row in pending {
        match row {
            Ok(row) => stored.pending.push(row),
            Err(invalid) => stored.invalid = Some(invalid),
        }
    }
    let fires = rows(
        sqlite,
        number,
        "SELECT id, schedule_id, kind, action, args, scheduled_at, fired_at, attempt,
             retry_max_attempts, retry_initial_ms, retry_max_ms, key, state, state_at,
             error_group, error_code, error_message, error_metadata
         FROM _gr_schedule_fires WHERE num = ?1 ORDER BY id",
        fire_row,
    )?;
    for row in fires {
        match row {
            Ok(row) => stored.fires.push(row),
            Err(invalid) => stored.invalid = Some(invalid),
        }
    }
    stored.running = rows(
        sqlite,
        number,
        "SELECT id FROM _gr_schedule_history WHERE num = ?1 AND result = 0 ORDER BY id",
        |row| row.get(0),
    )?;
    stored.last_history = sqlite
        .prepare_cached("SELECT coalesce(max(id), 0) FROM _gr_schedule_history WHERE num = ?1")?
        .query_row([number.0], |row| row.get(0))?;
    stored.run_wake_at = sqlite
        .prepare_cached("SELECT wake_at FROM _gr_run_wake WHERE num = ?1")?
        .query_row([number.0], |row| row.get(0))
        .optional()?;
    Ok(stored)
}

/// The newest attempts of a schedule, the newest first, at most `limit`.
pub(in super::super) fn history(
    sqlite: &Connection,
    number: ActorNumber,
    schedule_id: &str,
    limit: u32,
) -> rusqlite::Result<Vec<HistoryRow>> {
    sqlite
        .prepare_cached(
            "SELECT id, schedule_id, action, scheduled_at, fired_at, finished_at, attempt, result,
                 error_group, error_code, error_message, error_metadata
             FROM _gr_schedule_history WHERE num = ?1 AND schedule_id = ?2
             ORDER BY fired_at DESC, id DESC LIMIT ?3",
        )?
        .query_map(params![number.0, schedule_id, limit], history_row)?
        .collect()
}

fn rows<T>(
    sqlite: &Connection,
    number: ActorNumber,
    sql: &'static str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    sqlite.prepare_cached(sql)?.query_map([number.0], read)?.collect()
}

fn args(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Bytes>> {
    Ok(row.get::<_, Option<Vec<u8>>>(index)?.map(Bytes::from))
}

fn retry(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<RetryRow>> {
    Ok(match (row.get(index)?, row.get(index + 1)?, row.get(index + 2)?) {
        (Some(max_attempts), Some(initial_ms), Some(max_ms)) => {
            Some(RetryRow { max_attempts, initial_ms, max_ms })
        }
        _ => None,
    })
}

fn fault(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<FaultRow>> {
    Ok(match (row.get(index)?, row.get(index + 1)?, row.get(index + 2)?) {
        (Some(group), Some(code), Some(message)) => {
            Some(FaultRow { group, code, message, metadata: args(row, index + 3)? })
        }
        _ => None,
    })
}

fn pending_row(row: &Row<'_>) -> rusqlite::Result<Checked<ScheduleRow>> {
    let event_id: String = row.get(0)?;
    let number: i64 = row.get(4)?;
    let cron: (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
    let interval_ms: Option<i64> = row.get(7)?;
    let kind = match (number, cron, interval_ms) {
        (0, (None, None), None) => ScheduleKind::At,
        (1, (Some(expression), Some(timezone)), None) => {
            ScheduleKind::Cron { expression, timezone }
        }
        (2, (None, None), Some(interval_ms)) => ScheduleKind::Every { interval_ms },
        (0..=2, ..) => {
            let reason = format!("columns do not fit the kind {number}");
            return Ok(Err(InvalidRow { schedule_id: event_id, reason }));
        }
        _ => {
            let reason = format!("unknown kind {number}");
            return Ok(Err(InvalidRow { schedule_id: event_id, reason }));
        }
    };
    let max_history: i64 = row.get(9)?;
    let Ok(max_history) = u32::try_from(max_history) else {
        let reason = format!("max_history {max_history} is out of range");
        return Ok(Err(InvalidRow { schedule_id: event_id, reason }));
    };
    Ok(Ok(ScheduleRow {
        trigger_at: row.get(1)?,
        action: row.get(2)?,
        args: args(row, 3)?,
        kind,
        last_started_at: row.get(8)?,
        max_history,
        retry: retry(row, 10)?,
        key: row.get(13)?,
        event_id,
    }))
}

fn fire_row(row: &Row<'_>) -> rusqlite::Result<Checked<FireRow>> {
    let id: String = row.get(0)?;
    let invalid = |reason: String, schedule_id| Ok(Err(InvalidRow { schedule_id, reason }));
    let kind = match row.get(2)? {
        0_i64 => FireKind::At,
        1 => FireKind::Cron,
        2 => FireKind::Every,
        kind => return invalid(format!("unknown kind {kind}"), id),
    };
    let (state, at): (i64, Option<i64>) = (row.get(12)?, row.get(13)?);
    let state = match (state, at, fault(row, 14)?) {
        (0, None, None) => FireState::Running,
        (1, Some(due_at), None) => FireState::Waiting { due_at },
        (2, Some(died_at), Some(error)) => FireState::Dead { died_at, error },
        (state, ..) => return invalid(format!("columns do not fit the state {state}"), id),
    };
    Ok(Ok(FireRow {
        schedule_id: row.get(1)?,
        kind,
        action: row.get(3)?,
        args: args(row, 4)?,
        scheduled_at: row.get(5)?,
        fired_at: row.get(6)?,
        attempt: row.get(7)?,
        retry: retry(row, 8)?,
        key: row.get(11)?,
        state,
        id,
    }))
}

fn history_row(row: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    let result = match (row.get(7)?, fault(row, 8)?) {
        (0_i64, _) => HistoryResult::Running,
        (1, _) => HistoryResult::Ok,
        (2, Some(error)) => HistoryResult::Error(error),
        (3, _) => HistoryResult::Skipped,
        (result, _) => {
            return Err(rusqlite::Error::IntegralValueOutOfRange(7, result));
        }
    };
    Ok(HistoryRow {
        id: row.get(0)?,
        schedule_id: row.get(1)?,
        action: row.get(2)?,
        scheduled_at: row.get(3)?,
        fired_at: row.get(4)?,
        finished_at: row.get(5)?,
        attempt: row.get(6)?,
        result,
    })
}
