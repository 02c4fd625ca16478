//! The tables of an actor's own file, and how older files become them.
//!
//! # Invariants
//!
//! 1. The tables with the prefix `_gr_`, but for `_gr_file`, are those of the shared
//!    store, column by column, so that the same SQL serves both places.
//! 2. As in the shared store: a step is never changed once released, each is one
//!    transaction together with its version, and a later version is never written.

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::connection::Database;
use crate::store::schema::{CONNECTIONS, Migration, QUEUE, SCHEDULE};
use crate::store::{ActorNumber, StoreError};

/// The steps, the first one from nothing.
///
/// * `_gr_file`: one row for the file. `num` is the actor's. `alarm` is when it must be
///   woken, which the directory learns later. `checkpoints` counts them, so that there
///   is something to write after one.
/// * `_rivet_*`: what an author's own statements can read of the actor. `_rivet_wf_kv`
///   is a table, in files only.
pub(super) const MIGRATIONS: &[Migration] =
    &[BASE, QUEUE, SCHEDULE, VIEWS, RUNTIME_VIEWS, CONNECTIONS, CONNECTION_VIEWS];

const BASE: Migration = "
    CREATE TABLE _gr_file (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        schema_version INTEGER NOT NULL,
        num INTEGER NOT NULL,
        alarm INTEGER,
        checkpoints INTEGER NOT NULL
    ) STRICT;
    INSERT INTO _gr_file (id, schema_version, num, alarm, checkpoints) VALUES (1, 0, 0, NULL, 0);
    CREATE TABLE _gr_actor (
        num INTEGER PRIMARY KEY,
        has_initialized INTEGER NOT NULL,
        input BLOB
    ) STRICT;
    CREATE TABLE _gr_state (
        num INTEGER PRIMARY KEY,
        state BLOB NOT NULL
    ) STRICT;
    CREATE TABLE _gr_kv (
        num INTEGER NOT NULL,
        key BLOB NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (num, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE _rivet_wf_kv (
        key BLOB PRIMARY KEY,
        value BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE VIEW _rivet_meta (key, value) AS
        SELECT 'schema_version', x'0100000000000000';
    CREATE VIEW _rivet_actor (id, has_initialized, input) AS
        SELECT 1, has_initialized, input FROM _gr_actor;
    CREATE VIEW _rivet_actor_state (id, state) AS SELECT 1, state FROM _gr_state;
    CREATE VIEW _rivet_user_kv (key, value) AS SELECT key, value FROM _gr_kv;
";

const VIEWS: Migration = "
    CREATE VIEW _rivet_queue (id, name, body, created_at) AS
        SELECT id, name, body, created_at FROM _gr_queue;
    CREATE VIEW _rivet_schedule_events (
        event_id, trigger_at, action, args, kind, cron_expression, timezone, interval_ms,
        last_started_at, max_history
    ) AS
        SELECT event_id, trigger_at, action, args, kind, cron_expression, timezone, interval_ms,
               last_started_at, max_history
        FROM _gr_schedule_events;
    CREATE VIEW _rivet_schedule_history (
        id, schedule_id, action, scheduled_at, fired_at, finished_at, result, error_group,
        error_code, error_message, error_metadata
    ) AS
        SELECT id, schedule_id, action, scheduled_at, fired_at, finished_at, result, error_group,
               error_code, error_message, error_metadata
        FROM _gr_schedule_history;
";

/// There is no token of an inspector, so nothing shows one. A moment in `_rivet_meta` is the version 1 in two bytes, whether
/// there is one, and its eight bytes, the lowest first.
const RUNTIME_VIEWS: Migration = "
    CREATE VIEW _rivet_runtime (id, last_pushed_alarm, inspector_token, queue_next_id) AS
        SELECT 1, alarm, NULL, coalesce((SELECT next_id FROM _gr_queue_next), 1) FROM _gr_file;
    DROP VIEW _rivet_meta;
    CREATE VIEW _rivet_meta (key, value) AS
        SELECT 'schema_version', x'0100000000000000'
        UNION ALL
        SELECT 'run_wake_at', unhex('010001' ||
            substr(hex, 15, 2) || substr(hex, 13, 2) || substr(hex, 11, 2) || substr(hex, 9, 2) ||
            substr(hex, 7, 2) || substr(hex, 5, 2) || substr(hex, 3, 2) || substr(hex, 1, 2))
        FROM (SELECT format('%016x', wake_at) AS hex FROM _gr_run_wake);
";

const CONNECTION_VIEWS: Migration = "
    CREATE VIEW _rivet_conns (
        conn_id, parameters, gateway_id, request_id, request_path, request_headers
    ) AS
        SELECT conn_id, parameters, gateway_id, request_id, request_path, request_headers
        FROM _gr_conns;
    CREATE VIEW _rivet_conn_state (
        conn_id, state, server_message_index, client_message_index, subscriptions
    ) AS
        SELECT conn_id, state, server_message_index, client_message_index, subscriptions
        FROM _gr_conn_state;
";

/// Brings a file to the newest version.
pub(super) fn migrate(sqlite: &Connection, database: &Database) -> Result<(), StoreError> {
    migrate_by(sqlite, database, MIGRATIONS)
}

pub(super) fn migrate_by(
    sqlite: &Connection,
    database: &Database,
    steps: &[Migration],
) -> Result<(), StoreError> {
    let fault = |error: rusqlite::Error| database.fault(&error);
    let supported = i64::try_from(steps.len()).expect("a few steps");
    let found = version(sqlite).map_err(fault)?;
    if found > supported {
        return Err(StoreError::NewerSchema { path: database.label(), found, supported });
    }
    for (reached, step) in (1..).zip(steps) {
        if reached <= found {
            continue;
        }
        let transaction = sqlite.unchecked_transaction().map_err(fault)?;
        transaction.execute_batch(step).map_err(fault)?;
        transaction
            .execute("UPDATE _gr_file SET schema_version = ?1 WHERE id = 1", [reached])
            .map_err(fault)?;
        transaction.commit().map_err(fault)?;
    }
    Ok(())
}

/// Zero of an empty database.
pub(super) fn version(sqlite: &Connection) -> rusqlite::Result<i64> {
    let is_empty: bool =
        sqlite.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    if is_empty {
        return Ok(0);
    }
    sqlite.query_row("SELECT schema_version FROM _gr_file WHERE id = 1", [], |row| row.get(0))
}

/// Whose file it is; `None` when it does not say.
pub(super) fn owner(sqlite: &Connection) -> rusqlite::Result<Option<ActorNumber>> {
    sqlite
        .prepare_cached("SELECT num FROM _gr_file WHERE id = 1")?
        .query_row([], |row| Ok(ActorNumber(row.get(0)?)))
        .optional()
}

/// Makes it this actor's file.
pub(super) fn sign(
    sqlite: &Connection,
    number: ActorNumber,
    alarm: Option<i64>,
) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("UPDATE _gr_file SET num = ?1, alarm = ?2 WHERE id = 1")?
        .execute(params![number.0, alarm])?;
    Ok(())
}

/// When the actor must be woken.
pub(super) fn alarm(sqlite: &Connection) -> rusqlite::Result<Option<i64>> {
    sqlite
        .prepare_cached("SELECT alarm FROM _gr_file WHERE id = 1")?
        .query_row([], |row| row.get(0))
}

/// Writes the alarm if it differs.
pub(super) fn put_alarm(sqlite: &Connection, alarm: Option<i64>) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("UPDATE _gr_file SET alarm = ?1 WHERE id = 1 AND alarm IS NOT ?1")?
        .execute([alarm])?;
    Ok(())
}

/// Changes a row, so that the header of a log that begins anew is written and synced
/// here and not by the next turn.
pub(super) fn count_checkpoint(sqlite: &Connection) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("UPDATE _gr_file SET checkpoints = checkpoints + 1 WHERE id = 1")?
        .execute([])?;
    Ok(())
}

/// The tables of an actor's rows, which both places have.
pub(super) fn actor_tables(sqlite: &Connection) -> rusqlite::Result<Vec<String>> {
    sqlite
        .prepare_cached(
            "SELECT name FROM sqlite_schema
             WHERE type = 'table' AND name GLOB '_gr_*' AND name <> '_gr_file' ORDER BY name",
        )?
        .query_map([], |row| row.get(0))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema as shared;

    fn memory() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    /// Tables and indexes of actors with the text that made them, however it was laid out.
    fn made(sqlite: &Connection) -> Vec<(String, String)> {
        sqlite
            .prepare(
                "SELECT name, sql FROM sqlite_schema
                 WHERE tbl_name GLOB '_gr_*' AND tbl_name <> '_gr_file' AND sql IS NOT NULL
                 ORDER BY name",
            )
            .unwrap()
            .query_map([], |row| {
                let sql: String = row.get(1)?;
                let words: Vec<_> = sql.split_whitespace().collect();
                Ok((row.get(0)?, words.join(" ").replace('"', "")))
            })
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap()
    }

    #[test]
    fn the_tables_of_an_actor_are_the_same_in_both_places() {
        let (store, file) = (memory(), memory());
        shared::migrate(&store, &Database::Memory, shared::MIGRATIONS).unwrap();
        migrate(&file, &Database::Memory).unwrap();

        assert!(!made(&file).is_empty());
        assert_eq!(made(&file), made(&store));
    }

    #[test]
    fn an_upgrade_that_failed_leaves_the_file_at_the_step_before_it() {
        let file = memory();

        migrate_by(&file, &Database::Memory, &[MIGRATIONS[0], "CREATE TABLE _gr_actor (x)"])
            .unwrap_err();

        assert_eq!(version(&file).unwrap(), 1);
        migrate_by(&file, &Database::Memory, &[MIGRATIONS[0], "CREATE TABLE t (x)"]).unwrap();
        assert_eq!(version(&file).unwrap(), 2);
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_by_naming_both() {
        let file = memory();
        migrate(&file, &Database::Memory).unwrap();
        file.execute("UPDATE _gr_file SET schema_version = 99", []).unwrap();

        let refused = migrate(&file, &Database::Memory).unwrap_err();

        let supported = i64::try_from(MIGRATIONS.len()).unwrap();
        assert_eq!(
            refused,
            StoreError::NewerSchema { path: ":memory:".into(), found: 99, supported }
        );
    }

    #[test]
    fn what_authors_can_read_has_no_number_of_the_actor() {
        let file = memory();
        migrate(&file, &Database::Memory).unwrap();
        file.execute_batch(
            "INSERT INTO _gr_actor VALUES (7, 1, x'01');
             INSERT INTO _gr_state VALUES (7, x'02');
             INSERT INTO _gr_kv VALUES (7, x'03', x'04');",
        )
        .unwrap();

        let columns = |name: &str| {
            let query = file.prepare(&format!("SELECT * FROM {name}")).unwrap();
            query.column_names().map(str::to_owned).collect::<Vec<_>>()
        };

        assert_eq!(columns("_rivet_actor"), ["id", "has_initialized", "input"]);
        assert_eq!(columns("_rivet_actor_state"), ["id", "state"]);
        assert_eq!(columns("_rivet_user_kv"), ["key", "value"]);
        assert_eq!(columns("_rivet_wf_kv"), ["key", "value"]);
        assert_eq!(columns("_rivet_meta"), ["key", "value"]);
        assert_eq!(
            columns("_rivet_conns"),
            [
                "conn_id",
                "parameters",
                "gateway_id",
                "request_id",
                "request_path",
                "request_headers"
            ]
        );
        assert_eq!(
            columns("_rivet_conn_state"),
            ["conn_id", "state", "server_message_index", "client_message_index", "subscriptions"]
        );
        assert_eq!(
            columns("_rivet_runtime"),
            ["id", "last_pushed_alarm", "inspector_token", "queue_next_id"]
        );
    }

    #[test]
    fn authors_can_read_the_alarm_the_next_message_and_the_moment_of_the_next_run() {
        let file = memory();
        migrate(&file, &Database::Memory).unwrap();
        let runtime = |file: &Connection| -> (Option<i64>, Option<String>, i64) {
            let sql =
                "SELECT last_pushed_alarm, inspector_token, queue_next_id FROM _rivet_runtime";
            file.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
        };
        let wake = |file: &Connection| -> Option<Vec<u8>> {
            let sql = "SELECT value FROM _rivet_meta WHERE key = 'run_wake_at'";
            file.query_row(sql, [], |row| row.get(0)).optional().unwrap()
        };
        assert_eq!((runtime(&file), wake(&file)), ((None, None, 1), None));

        put_alarm(&file, Some(77)).unwrap();
        file.execute_batch(
            "INSERT INTO _gr_queue_next VALUES (7, 5);
             INSERT INTO _gr_run_wake VALUES (7, 1700000000000);",
        )
        .unwrap();

        assert_eq!(runtime(&file), (Some(77), None, 5));
        let moment = 1_700_000_000_000_i64.to_le_bytes();
        assert_eq!(wake(&file).unwrap(), [&[1, 0, 1], &moment[..]].concat());
    }
}
