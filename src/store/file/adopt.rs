//! Making the file of one actor out of a copy of another's.
//!
//! # Invariants
//!
//! 1. Nothing in the file is trusted before it was looked at: its pages are sound, and the
//!    runtime's tables, indexes and views are those that this version makes, with no
//!    trigger on them. An author's own tables may be anything.
//! 2. What the author's statements may not reach is the same as in the copy, but for the
//!    number of the actor. So what was claimed and not finished is found as after a crash.

use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, params};

use super::schema;
use crate::store::connection::Database;
use crate::store::{ActorNumber, StoreError};

/// One thing that a database has: its kind, name, table and text.
type Made = (String, String, String, Option<String>);

/// Checks a file and gives it to the actor `number`; returns its alarm. `source` is what
/// errors name. The file is of no use after an error.
pub(super) fn adopt(
    sqlite: &Connection,
    source: &Database,
    number: ActorNumber,
) -> Result<Option<i64>, StoreError> {
    let fault = |error: rusqlite::Error| source.fault(&error);
    distrust(sqlite).map_err(fault)?;
    let version = check_version(sqlite, source)?;
    check_pages(sqlite, source)?;
    check_runtime_parts(sqlite, source, version)?;
    schema::migrate(sqlite, source)?;
    let transaction = sqlite.unchecked_transaction().map_err(fault)?;
    let alarm = schema::alarm(&transaction).map_err(fault)?;
    let owner = schema::owner(&transaction).map_err(fault)?;
    let owner = owner.ok_or_else(|| foreign(source, "it does not say whose it is"))?;
    renumber(&transaction, source, owner, number)?;
    schema::sign(&transaction, number, alarm).map_err(fault)?;
    transaction.commit().map_err(fault)?;
    Ok(alarm)
}

/// What a file says runs nothing while it is looked at.
pub(super) fn distrust(sqlite: &Connection) -> rusqlite::Result<()> {
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    sqlite.execute_batch("PRAGMA foreign_keys=OFF; PRAGMA cell_size_check=ON;")
}

/// The version of the runtime's tables, if this version of the runtime knows it.
pub(super) fn check_version(sqlite: &Connection, source: &Database) -> Result<usize, StoreError> {
    let has_own: bool = sqlite
        .query_row(
            "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = '_gr_file'",
            [],
            |row| row.get(0),
        )
        .map_err(|error| not_ours(source, &error))?;
    if !has_own {
        return Err(foreign(source, "it has no table _gr_file"));
    }
    let found = schema::version(sqlite).map_err(|error| not_ours(source, &error))?;
    let supported = i64::try_from(schema::MIGRATIONS.len()).expect("a few steps");
    if found > supported {
        return Err(StoreError::NewerSchema { path: source.label(), found, supported });
    }
    match usize::try_from(found) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(foreign(source, &format!("there is no schema version {found}"))),
    }
}

/// What an error means while nothing is known of the file.
fn not_ours(source: &Database, error: &rusqlite::Error) -> StoreError {
    let is_none = error.sqlite_error_code() == Some(ErrorCode::NotADatabase);
    match source.fault(error) {
        StoreError::Corrupt { reason, .. } if is_none => foreign(source, &reason),
        StoreError::Sqlite { reason } => foreign(source, &reason),
        other => other,
    }
}

fn check_pages(sqlite: &Connection, source: &Database) -> Result<(), StoreError> {
    let said: String = sqlite
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| source.fault(&error))?;
    if said == "ok" {
        return Ok(());
    }
    Err(StoreError::Corrupt { path: source.label(), reason: said })
}

/// Compares what the runtime has made with what it makes.
fn check_runtime_parts(
    sqlite: &Connection,
    source: &Database,
    version: usize,
) -> Result<(), StoreError> {
    let memory = Database::Memory;
    let fault = |error: rusqlite::Error| memory.fault(&error);
    let own = Connection::open_in_memory().map_err(fault)?;
    schema::migrate_by(&own, &memory, &schema::MIGRATIONS[..version])?;
    let expected = runtime_parts(&own).map_err(fault)?;
    let found = runtime_parts(sqlite).map_err(|error| source.fault(&error))?;
    let other = found.iter().find(|part| !expected.contains(part));
    match other.or_else(|| expected.iter().find(|part| !found.contains(part))) {
        None => Ok(()),
        Some((kind, name, ..)) => {
            Err(foreign(source, &format!("its {kind} {name} is not the one that belongs there")))
        }
    }
}

fn runtime_parts(sqlite: &Connection) -> rusqlite::Result<Vec<Made>> {
    sqlite
        .prepare(
            r"SELECT type, name, tbl_name, sql FROM sqlite_schema
              WHERE lower(name) GLOB '_gr_*' OR lower(name) GLOB '_rivet_*'
                 OR lower(tbl_name) GLOB '_gr_*' OR lower(tbl_name) GLOB '_rivet_*'",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect()
}

fn renumber(
    sqlite: &Connection,
    source: &Database,
    owner: ActorNumber,
    number: ActorNumber,
) -> Result<(), StoreError> {
    let fault = |error: rusqlite::Error| source.fault(&error);
    for table in schema::actor_tables(sqlite).map_err(fault)? {
        // Two looks at the ends of an index instead of one at every row.
        let ends =
            [format!("SELECT min(num) FROM {table}"), format!("SELECT max(num) FROM {table}")];
        for end in &ends {
            let end: Option<i64> = sqlite.query_row(end, [], |row| row.get(0)).map_err(fault)?;
            if end.is_some_and(|end| end != owner.0) {
                return Err(foreign(source, &format!("{table} has rows of another actor")));
            }
        }
        if owner != number {
            sqlite
                .execute(&format!("UPDATE {table} SET num = ?1"), params![number.0])
                .map_err(fault)?;
        }
    }
    let is_there: bool = sqlite
        .query_row("SELECT count(*) = 1 FROM _gr_actor WHERE num = ?1", [number.0], |row| {
            row.get(0)
        })
        .map_err(fault)?;
    if is_there { Ok(()) } else { Err(foreign(source, "it has no actor")) }
}

fn foreign(source: &Database, reason: &str) -> StoreError {
    StoreError::NotAnActor { path: source.label(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: ActorNumber = ActorNumber(3);
    const NEW: ActorNumber = ActorNumber(70);

    fn copy() -> Connection {
        let file = Connection::open_in_memory().unwrap();
        schema::migrate(&file, &Database::Memory).unwrap();
        schema::sign(&file, OLD, Some(12)).unwrap();
        file.execute_batch(
            "INSERT INTO _gr_actor VALUES (3, 1, x'01');
             INSERT INTO _gr_state VALUES (3, x'02');
             INSERT INTO _gr_kv VALUES (3, x'03', x'04'), (3, x'05', x'06');
             CREATE TABLE mine (x);",
        )
        .unwrap();
        file
    }

    fn refusal(change: &str) -> String {
        let file = copy();
        file.execute_batch(change).unwrap();
        adopt(&file, &Database::Memory, NEW).unwrap_err().to_string()
    }

    #[test]
    fn every_row_becomes_the_new_actors_and_the_alarm_stays() {
        let file = copy();

        assert_eq!(adopt(&file, &Database::Memory, NEW), Ok(Some(12)));

        assert_eq!(schema::owner(&file).unwrap(), Some(NEW));
        assert_eq!(schema::alarm(&file).unwrap(), Some(12));
        for table in ["_gr_actor", "_gr_state", "_gr_kv"] {
            let others: i64 = file
                .query_row(&format!("SELECT count(*) FROM {table} WHERE num <> 70"), [], |row| {
                    row.get(0)
                })
                .unwrap();
            assert_eq!(others, 0, "{table}");
        }
        let keys: i64 =
            file.query_row("SELECT count(*) FROM _gr_kv", [], |row| row.get(0)).unwrap();
        assert_eq!(keys, 2);
    }

    #[test]
    fn an_older_file_is_brought_to_the_newest_version() {
        let file = Connection::open_in_memory().unwrap();
        schema::migrate_by(&file, &Database::Memory, &schema::MIGRATIONS[..1]).unwrap();
        schema::sign(&file, OLD, None).unwrap();
        file.execute("INSERT INTO _gr_actor VALUES (3, 1, NULL)", []).unwrap();

        assert_eq!(adopt(&file, &Database::Memory, NEW), Ok(None));

        let version = schema::version(&file).unwrap();
        assert_eq!(usize::try_from(version), Ok(schema::MIGRATIONS.len()));
    }

    #[test]
    fn the_database_of_another_program_is_refused() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch("CREATE TABLE t (x)").unwrap();

        let refused = adopt(&file, &Database::Memory, NEW).unwrap_err();

        assert!(matches!(refused, StoreError::NotAnActor { .. }), "{refused}");
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_by_naming_both() {
        let file = copy();
        file.execute("UPDATE _gr_file SET schema_version = 99", []).unwrap();

        let refused = adopt(&file, &Database::Memory, NEW).unwrap_err();

        assert!(matches!(refused, StoreError::NewerSchema { found: 99, .. }), "{refused}");
    }

    #[test]
    fn tables_of_the_runtime_that_somebody_changed_are_refused() {
        let trigger = "CREATE TRIGGER harm AFTER UPDATE ON _gr_state BEGIN DELETE FROM mine; END";
        assert!(refusal(trigger).contains("trigger harm"));
        assert!(refusal("ALTER TABLE _gr_kv ADD COLUMN more TEXT").contains("_gr_kv"));
        assert!(refusal("DROP VIEW _rivet_meta").contains("_rivet_meta"));
        assert!(refusal("CREATE TABLE _GR_own (num)").contains("_GR_own"));
        assert!(refusal("CREATE INDEX i ON _gr_kv (value)").contains("index i"));
    }

    #[test]
    fn rows_of_another_actor_and_a_file_without_an_actor_are_refused() {
        assert!(refusal("INSERT INTO _gr_kv VALUES (4, x'00', x'00')").contains("another actor"));
        assert!(refusal("DELETE FROM _gr_actor").contains("has no actor"));
        assert!(refusal("DELETE FROM _gr_file").contains("is not the file of an actor"));
    }
}
