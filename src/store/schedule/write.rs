//! Writing schedules.

use rusqlite::{Connection, params};

use super::{
    FaultRow, FireKind, FireRow, FireState, HistoryResult, HistoryRow, ScheduleKind, ScheduleOp,
    ScheduleRow,
};
use crate::store::ActorNumber;

/// Makes one change.
pub(in super::super) fn apply(
    sqlite: &Connection,
    number: ActorNumber,
    op: &ScheduleOp,
) -> rusqlite::Result<usize> {
    let num = number.0;
    match op {
        ScheduleOp::Put(row) => put(sqlite, num, row),
        ScheduleOp::Move { event_id, trigger_at, started_at } => sqlite
            .prepare_cached(
                "UPDATE _gr_schedule_events
                 SET trigger_at = ?3, last_started_at = coalesce(?4, last_started_at)
                 WHERE num = ?1 AND event_id = ?2",
            )?
            .execute(params![num, event_id, trigger_at, started_at]),
        ScheduleOp::Delete(event_id) => sqlite
            .prepare_cached("DELETE FROM _gr_schedule_events WHERE num = ?1 AND event_id = ?2")?
            .execute(params![num, event_id]),
        ScheduleOp::PutFire(row) => put_fire(sqlite, num, row),
        ScheduleOp::DeleteFire(id) => sqlite
            .prepare_cached("DELETE FROM _gr_schedule_fires WHERE num = ?1 AND id = ?2")?
            .execute(params![num, id]),
        ScheduleOp::AddHistory(row) => add_history(sqlite, num, row),
        ScheduleOp::FinishHistory { id, finished_at, error } => {
            finish_history(sqlite, num, *id, *finished_at, error.as_ref())
        }
        ScheduleOp::PruneHistory { schedule_id, keep } => prune(sqlite, num, schedule_id, *keep),
        ScheduleOp::PruneAllHistory { keep } => sqlite
            .prepare_cached(
                "DELETE FROM _gr_schedule_history WHERE num = ?1 AND id <=
                     (SELECT id FROM _gr_schedule_history WHERE num = ?1
                      ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute(params![num, keep]),
        ScheduleOp::PutRunWake(Some(wake_at)) => sqlite
            .prepare_cached(
                "INSERT INTO _gr_run_wake (num, wake_at) VALUES (?1, ?2)
                 ON CONFLICT (num) DO UPDATE SET wake_at = excluded.wake_at",
            )?
            .execute(params![num, wake_at]),
        ScheduleOp::PutRunWake(None) => {
            sqlite.prepare_cached("DELETE FROM _gr_run_wake WHERE num = ?1")?.execute([num])
        }
    }
}

fn put(sqlite: &Connection, num: i64, row: &ScheduleRow) -> rusqlite::Result<usize> {
    let (kind, expression, timezone, interval_ms) = match &row.kind {
        ScheduleKind::At => (0, None, None, None),
        ScheduleKind::Cron { expression, timezone } => (1, Some(expression), Some(timezone), None),
        ScheduleKind::Every { interval_ms } => (2, None, None, Some(interval_ms)),
    };
    let retry = row.retry.as_ref();
    sqlite
        .prepare_cached(
            "INSERT OR REPLACE INTO _gr_schedule_events
                 (num, event_id, trigger_at, action, args, kind, cron_expression, timezone,
                  interval_ms, last_started_at, max_history,
                  retry_max_attempts, retry_initial_ms, retry_max_ms, key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            num,
            row.event_id,
            row.trigger_at,
            row.action,
            row.args.as_deref(),
            kind,
            expression,
            timezone,
            interval_ms,
            row.last_started_at,
            row.max_history,
            retry.map(|retry| retry.max_attempts),
            retry.map(|retry| retry.initial_ms),
            retry.map(|retry| retry.max_ms),
            row.key,
        ])
}

fn put_fire(sqlite: &Connection, num: i64, row: &FireRow) -> rusqlite::Result<usize> {
    let kind = match row.kind {
        FireKind::At => 0,
        FireKind::Cron => 1,
        FireKind::Every => 2,
    };
    let (state, state_at, error) = match &row.state {
        FireState::Running => (0, None, None),
        FireState::Waiting { due_at } => (1, Some(due_at), None),
        FireState::Dead { died_at, error } => (2, Some(died_at), Some(error)),
    };
    let retry = row.retry.as_ref();
    sqlite
        .prepare_cached(
            "INSERT OR REPLACE INTO _gr_schedule_fires
                 (num, id, schedule_id, kind, action, args, scheduled_at, fired_at, attempt,
                  retry_max_attempts, retry_initial_ms, retry_max_ms, key, state, state_at,
                  error_group, error_code, error_message, error_metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
                     ?16, ?17, ?18, ?19)",
        )?
        .execute(params![
            num,
            row.id,
            row.schedule_id,
            kind,
            row.action,
            row.args.as_deref(),
            row.scheduled_at,
            row.fired_at,
            row.attempt,
            retry.map(|retry| retry.max_attempts),
            retry.map(|retry| retry.initial_ms),
            retry.map(|retry| retry.max_ms),
            row.key,
            state,
            state_at,
            error.map(|error| &error.group),
            error.map(|error| &error.code),
            error.map(|error| &error.message),
            error.and_then(|error| error.metadata.as_deref()),
        ])
}

fn add_history(sqlite: &Connection, num: i64, row: &HistoryRow) -> rusqlite::Result<usize> {
    let (result, error) = match &row.result {
        HistoryResult::Running => (0, None),
        HistoryResult::Ok => (1, None),
        HistoryResult::Error(error) => (2, Some(error)),
        HistoryResult::Skipped => (3, None),
    };
    sqlite
        .prepare_cached(
            "INSERT INTO _gr_schedule_history
                 (num, id, schedule_id, action, scheduled_at, fired_at, finished_at, attempt,
                  result, error_group, error_code, error_message, error_metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            num,
            row.id,
            row.schedule_id,
            row.action,
            row.scheduled_at,
            row.fired_at,
            row.finished_at,
            row.attempt,
            result,
            error.map(|error| &error.group),
            error.map(|error| &error.code),
            error.map(|error| &error.message),
            error.and_then(|error| error.metadata.as_deref()),
        ])
}

fn finish_history(
    sqlite: &Connection,
    num: i64,
    id: i64,
    finished_at: i64,
    error: Option<&FaultRow>,
) -> rusqlite::Result<usize> {
    sqlite
        .prepare_cached(
            "UPDATE _gr_schedule_history
             SET finished_at = ?3, result = ?4, error_group = ?5, error_code = ?6,
                 error_message = ?7, error_metadata = ?8
             WHERE num = ?1 AND id = ?2 AND result = 0",
        )?
        .execute(params![
            num,
            id,
            finished_at,
            if error.is_some() { 2 } else { 1 },
            error.map(|error| &error.group),
            error.map(|error| &error.code),
            error.map(|error| &error.message),
            error.and_then(|error| error.metadata.as_deref()),
        ])
}

fn prune(sqlite: &Connection, num: i64, schedule_id: &str, keep: u32) -> rusqlite::Result<usize> {
    if keep == 0 {
        return sqlite
            .prepare_cached("DELETE FROM _gr_schedule_history WHERE num = ?1 AND schedule_id = ?2")?
            .execute(params![num, schedule_id]);
    }
    // The oldest that stays; without one there are no more than are kept.
    sqlite
        .prepare_cached(
            "DELETE FROM _gr_schedule_history WHERE num = ?1 AND schedule_id = ?2
                 AND (fired_at, id) <
                     (SELECT fired_at, id FROM _gr_schedule_history
                      WHERE num = ?1 AND schedule_id = ?2
                      ORDER BY fired_at DESC, id DESC LIMIT 1 OFFSET ?3 - 1)",
        )?
        .execute(params![num, schedule_id, keep])
}
