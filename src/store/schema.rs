//! The tables of the shared database, and how older ones become them.
//!
//! # Invariants
//!
//! 1. A migration is never changed once released: the next one mends it.
//! 2. Each migration is one transaction together with the version that it
//!    reaches, so a crash leaves a version that the next start goes on from.
//! 3. A database of a later version, or of another program, is never written.

use rusqlite::{Connection, OptionalExtension};

use super::StoreError;
use super::connection::Database;

/// One step from a version to the next.
pub(super) type Migration = &'static str;

/// The steps, the first one from nothing. All tables but the directory have the
/// actor's number as their leading key. Those of actors have a prefix of their own,
/// since in an actor's file they lie beside an author's tables.
///
/// * `store_meta`: one row for the database. `secret` is what the tokens are made of that let
///   dashboards look into actors.
/// * `directory`: one row per actor. `num` is never used twice. `place` is 0 for
///   the shared store, else the number of the actor's file. `generation` is the
///   last one that wrote, for people; the fence is in memory. `alarm_open` is 1 while
///   the alarm of an actor that has its own file may differ from the one in that file.
/// * `_gr_actor`: what seldom changes, apart from `_gr_state` so that a save dirties
///   few pages. `_gr_state` is a rowid table, so that large values overflow late.
/// * `_gr_kv`: the keys and values of authors, in the order of the bytes of the keys.
/// * `_gr_queue`: the messages that wait, `_gr_queue_dead` those that were given up,
///   `_gr_queue_next` the id of the next one, `_gr_queue_key` the keys under which
///   messages were sent; a key and its message's id are one to one.
/// * `_gr_schedule_events`: what is to be done later. `_gr_schedule_fires`: what was
///   taken and is not finished, or is given up. `_gr_schedule_history`: how recurring
///   ones went. `_gr_run_wake`: when the author's `run` is to be active again.
/// * `_gr_conns`: connections that outlive a sleep; `_gr_conn_state` what changes of them.
/// * `garbage`: destroyed actors whose rows are not swept yet.
pub(super) const MIGRATIONS: &[Migration] = &[
    "
    CREATE TABLE store_meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        schema_version INTEGER NOT NULL,
        epoch INTEGER NOT NULL
    ) STRICT;
    INSERT INTO store_meta (id, schema_version, epoch) VALUES (1, 0, 0);
    CREATE TABLE directory (
        num INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL,
        key BLOB NOT NULL,
        place INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        alarm INTEGER,
        alarm_open INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        UNIQUE (name, key)
    ) STRICT;
    CREATE INDEX directory_alarm ON directory (alarm) WHERE alarm IS NOT NULL;
    CREATE TABLE actor (
        num INTEGER PRIMARY KEY,
        has_initialized INTEGER NOT NULL,
        input BLOB
    ) STRICT;
    CREATE TABLE state (
        num INTEGER PRIMARY KEY,
        state BLOB NOT NULL
    ) STRICT;
    CREATE TABLE garbage (
        num INTEGER PRIMARY KEY
    ) STRICT;
",
    "
    ALTER TABLE actor RENAME TO _gr_actor;
    ALTER TABLE state RENAME TO _gr_state;
    CREATE TABLE _gr_kv (
        num INTEGER NOT NULL,
        key BLOB NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (num, key)
    ) STRICT, WITHOUT ROWID;
",
    QUEUE,
    SCHEDULE,
    "CREATE INDEX directory_alarm_open ON directory (num) WHERE alarm_open <> 0",
    CONNECTIONS,
    "ALTER TABLE store_meta ADD COLUMN secret BLOB",
];

/// Connections that outlive a sleep. Also a step of the files of actors.
pub(super) const CONNECTIONS: Migration = "
    CREATE TABLE _gr_conns (
        num INTEGER NOT NULL,
        conn_id TEXT NOT NULL,
        parameters BLOB NOT NULL,
        gateway_id BLOB NOT NULL,
        request_id BLOB NOT NULL,
        request_path TEXT NOT NULL,
        request_headers BLOB NOT NULL,
        PRIMARY KEY (num, conn_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE _gr_conn_state (
        num INTEGER NOT NULL,
        conn_id TEXT NOT NULL,
        state BLOB NOT NULL,
        server_message_index INTEGER NOT NULL,
        client_message_index INTEGER NOT NULL,
        subscriptions BLOB NOT NULL,
        PRIMARY KEY (num, conn_id)
    ) STRICT, WITHOUT ROWID;";

/// Messages that wait, messages that are dead, keys that were sent. Also a step of the
/// files of actors.
pub(super) const QUEUE: Migration = "
    CREATE TABLE _gr_queue_next (
        num INTEGER PRIMARY KEY,
        next_id INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE _gr_queue (
        num INTEGER NOT NULL,
        id INTEGER NOT NULL,
        name TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        available_at INTEGER NOT NULL,
        deliveries INTEGER NOT NULL,
        error TEXT,
        body BLOB NOT NULL,
        PRIMARY KEY (num, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE _gr_queue_dead (
        num INTEGER NOT NULL,
        id INTEGER NOT NULL,
        name TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        deliveries INTEGER NOT NULL,
        died_at INTEGER NOT NULL,
        error TEXT,
        body BLOB NOT NULL,
        PRIMARY KEY (num, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE _gr_queue_key (
        num INTEGER NOT NULL,
        name TEXT NOT NULL,
        key TEXT NOT NULL,
        id INTEGER NOT NULL,
        sent_at INTEGER NOT NULL,
        PRIMARY KEY (num, name, key)
    ) STRICT, WITHOUT ROWID;";

/// Schedules, what they started, and the deadline of the run handler. Also a step of the
/// files of actors.
pub(super) const SCHEDULE: Migration = "
    CREATE TABLE _gr_schedule_events (
        num INTEGER NOT NULL,
        event_id TEXT NOT NULL,
        trigger_at INTEGER NOT NULL,
        action TEXT NOT NULL,
        args BLOB,
        kind INTEGER NOT NULL,
        cron_expression TEXT,
        timezone TEXT,
        interval_ms INTEGER,
        last_started_at INTEGER,
        max_history INTEGER NOT NULL,
        retry_max_attempts INTEGER,
        retry_initial_ms INTEGER,
        retry_max_ms INTEGER,
        key TEXT,
        PRIMARY KEY (num, event_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE _gr_schedule_fires (
        num INTEGER NOT NULL,
        id TEXT NOT NULL,
        schedule_id TEXT NOT NULL,
        kind INTEGER NOT NULL,
        action TEXT NOT NULL,
        args BLOB,
        scheduled_at INTEGER NOT NULL,
        fired_at INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        retry_max_attempts INTEGER,
        retry_initial_ms INTEGER,
        retry_max_ms INTEGER,
        key TEXT,
        state INTEGER NOT NULL,
        state_at INTEGER,
        error_group TEXT,
        error_code TEXT,
        error_message TEXT,
        error_metadata BLOB,
        PRIMARY KEY (num, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE _gr_schedule_history (
        num INTEGER NOT NULL,
        id INTEGER NOT NULL,
        schedule_id TEXT NOT NULL,
        action TEXT NOT NULL,
        scheduled_at INTEGER NOT NULL,
        fired_at INTEGER NOT NULL,
        finished_at INTEGER,
        attempt INTEGER NOT NULL,
        result INTEGER NOT NULL,
        error_group TEXT,
        error_code TEXT,
        error_message TEXT,
        error_metadata BLOB,
        PRIMARY KEY (num, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX _gr_schedule_history_schedule
        ON _gr_schedule_history (num, schedule_id, fired_at DESC, id DESC);
    CREATE INDEX _gr_schedule_history_running
        ON _gr_schedule_history (num) WHERE result = 0;
    CREATE TABLE _gr_run_wake (
        num INTEGER PRIMARY KEY,
        wake_at INTEGER NOT NULL
    ) STRICT;";

/// Reads the version, zero of an empty database, and refuses what invariant 3
/// forbids to write.
pub(super) fn check(
    sqlite: &Connection,
    database: &Database,
    steps: &[Migration],
) -> Result<i64, StoreError> {
    let supported = i64::try_from(steps.len()).expect("a few steps");
    let found = version(sqlite, database)?;
    if found > supported {
        return Err(StoreError::NewerSchema { path: database.label(), found, supported });
    }
    Ok(found)
}

/// Brings the database to the version that `steps` reach.
pub(super) fn migrate(
    sqlite: &Connection,
    database: &Database,
    steps: &[Migration],
) -> Result<(), StoreError> {
    let fault = |error: rusqlite::Error| database.fault(&error);
    let found = check(sqlite, database, steps)?;
    for (reached, step) in (1..).zip(steps) {
        if reached <= found {
            continue;
        }
        let transaction = sqlite.unchecked_transaction().map_err(fault)?;
        transaction.execute_batch(step).map_err(fault)?;
        transaction
            .execute("UPDATE store_meta SET schema_version = ?1 WHERE id = 1", [reached])
            .map_err(fault)?;
        transaction.commit().map_err(fault)?;
    }
    Ok(())
}

fn version(sqlite: &Connection, database: &Database) -> Result<i64, StoreError> {
    let fault = |error: rusqlite::Error| database.fault(&error);
    let foreign =
        |reason: &str| StoreError::Corrupt { path: database.label(), reason: reason.to_owned() };
    let tables: i64 = sqlite
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fault)?;
    if tables == 0 {
        return Ok(0);
    }
    let ours: bool = sqlite
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'store_meta'", [], |row| {
            row.get(0)
        })
        .map_err(fault)?;
    if !ours {
        return Err(foreign("it is the database of another program"));
    }
    sqlite
        .query_row("SELECT schema_version FROM store_meta WHERE id = 1", [], |row| row.get(0))
        .optional()
        .map_err(fault)?
        .ok_or_else(|| foreign("its schema version is missing"))
}

/// Raises the epoch of the process durably and returns it.
pub(super) fn raise_epoch(sqlite: &Connection, database: &Database) -> Result<u32, StoreError> {
    let raise = || {
        // A commit of its own, since only that one's error is heard.
        let transaction = sqlite.unchecked_transaction()?;
        transaction.execute("UPDATE store_meta SET epoch = epoch + 1 WHERE id = 1", [])?;
        let epoch =
            transaction
                .query_row("SELECT epoch FROM store_meta WHERE id = 1", [], |row| row.get(0))?;
        transaction.commit()?;
        Ok(epoch)
    };
    raise().map_err(|error| database.fault(&error))
}

/// The secret of the database; made by `make`, durably, by the first who asks.
pub(super) fn secret(
    sqlite: &Connection,
    database: &Database,
    make: impl FnOnce() -> [u8; 32],
) -> Result<[u8; 32], StoreError> {
    let read = || {
        sqlite.query_row("SELECT secret FROM store_meta WHERE id = 1", [], |row| {
            row.get::<_, Option<[u8; 32]>>(0)
        })
    };
    let fault = |error: rusqlite::Error| database.fault(&error);
    if let Some(secret) = read().map_err(fault)? {
        return Ok(secret);
    }
    let secret = make();
    let store = || {
        // A commit of its own, since only that one's error is heard.
        let transaction = sqlite.unchecked_transaction()?;
        transaction.execute("UPDATE store_meta SET secret = ?1 WHERE id = 1", [secret])?;
        transaction.commit()
    };
    store().map_err(fault)?;
    Ok(secret)
}

/// Makes an epoch durable that the process went on to by itself, within the
/// transaction of the caller.
pub(super) fn raise_epoch_to(sqlite: &Connection, epoch: u32) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("UPDATE store_meta SET epoch = max(epoch, ?1) WHERE id = 1")?
        .execute([epoch])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Migration = "
        CREATE TABLE store_meta (id INTEGER PRIMARY KEY, schema_version INTEGER, epoch INTEGER);
        INSERT INTO store_meta VALUES (1, 0, 0);
        CREATE TABLE fruit (name TEXT);
        INSERT INTO fruit VALUES ('apple');";
    const SECOND: Migration = "ALTER TABLE fruit ADD COLUMN ripe INTEGER;
        UPDATE fruit SET ripe = 1;";
    const BROKEN: Migration = "INSERT INTO fruit VALUES ('pear', 0); SELECT * FROM nowhere;";

    fn memory() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    fn fruit(sqlite: &Connection) -> (i64, i64) {
        sqlite
            .query_row("SELECT count(*), sum(ripe) FROM fruit", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap()
    }

    #[test]
    fn an_older_database_goes_through_the_steps_that_it_lacks() {
        let sqlite = memory();
        migrate(&sqlite, &Database::Memory, &[FIRST]).unwrap();

        migrate(&sqlite, &Database::Memory, &[FIRST, SECOND]).unwrap();
        migrate(&sqlite, &Database::Memory, &[FIRST, SECOND]).unwrap();

        assert_eq!(fruit(&sqlite), (1, 1));
        assert_eq!(version(&sqlite, &Database::Memory).unwrap(), 2);
    }

    #[test]
    fn what_the_first_version_stored_is_there_after_all_steps() {
        let sqlite = memory();
        migrate(&sqlite, &Database::Memory, &MIGRATIONS[..1]).unwrap();
        sqlite
            .execute_batch(
                "INSERT INTO actor VALUES (7, 1, x'01'); INSERT INTO state VALUES (7, x'02');",
            )
            .unwrap();

        migrate(&sqlite, &Database::Memory, MIGRATIONS).unwrap();

        let row: (i64, Vec<u8>, Vec<u8>) = sqlite
            .query_row(
                "SELECT num, input, state FROM _gr_actor JOIN _gr_state USING (num)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .unwrap();
        assert_eq!(row, (7, vec![1], vec![2]));
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let sqlite = memory();

        migrate(&sqlite, &Database::Memory, &[FIRST, SECOND, BROKEN]).unwrap_err();

        assert_eq!(fruit(&sqlite), (1, 1));
        assert_eq!(version(&sqlite, &Database::Memory).unwrap(), 2);
    }

    #[test]
    fn a_later_version_is_refused_by_naming_both() {
        let sqlite = memory();
        migrate(&sqlite, &Database::Memory, &[FIRST, SECOND]).unwrap();

        let refused = migrate(&sqlite, &Database::Memory, &[FIRST]).unwrap_err();

        assert_eq!(
            refused,
            StoreError::NewerSchema { path: ":memory:".into(), found: 2, supported: 1 }
        );
    }

    #[test]
    fn the_database_of_another_program_is_left_alone() {
        let sqlite = memory();
        sqlite.execute_batch("CREATE TABLE other (x)").unwrap();

        let refused = migrate(&sqlite, &Database::Memory, MIGRATIONS).unwrap_err();

        assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    }

    #[test]
    fn the_epoch_rises_by_one_each_time() {
        let sqlite = memory();
        migrate(&sqlite, &Database::Memory, MIGRATIONS).unwrap();

        assert_eq!(raise_epoch(&sqlite, &Database::Memory).unwrap(), 1);
        assert_eq!(raise_epoch(&sqlite, &Database::Memory).unwrap(), 2);
    }
}
