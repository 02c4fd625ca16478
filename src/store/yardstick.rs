//! What SQLite does by itself, for the benchmark to hold the store against: no
//! queue, no fence, no actors, the same settings.

use std::path::PathBuf;

use rusqlite::{Connection, params};

use super::StoreError;
use super::connection::Database;

/// Writes `groups` commits of `rows` rows of `bytes` bytes each, every row within a
/// savepoint of its own, to the database at `path`. Returns when the last one is
/// durable.
///
/// # Errors
///
/// What SQLite says.
pub fn plain_commits(
    path: PathBuf,
    groups: u32,
    rows: u32,
    bytes: usize,
) -> Result<(), StoreError> {
    let database = Database::File(path.clone());
    let run = || -> rusqlite::Result<()> {
        let writer = database.set_up_writer(Connection::open(&path)?)?;
        let sqlite = &writer.sqlite;
        sqlite.execute_batch(
            "CREATE TABLE IF NOT EXISTS plain (num INTEGER PRIMARY KEY, state BLOB NOT NULL);
             PRAGMA wal_autocheckpoint=2000;",
        )?;
        let step = |sql: &str| sqlite.prepare_cached(sql)?.execute([]);
        for group in 0..groups {
            // Different each time: SQLite does not write what is there already.
            let state: Vec<u8> = group.to_le_bytes().into_iter().cycle().take(bytes).collect();
            step("BEGIN IMMEDIATE")?;
            for row in 0..rows {
                step("SAVEPOINT batch")?;
                sqlite
                    .prepare_cached(
                        "INSERT INTO plain (num, state) VALUES (?1, ?2)
                         ON CONFLICT (num) DO UPDATE SET state = excluded.state",
                    )?
                    .execute(params![(group * rows + row) % 100, &state])?;
                step("RELEASE batch")?;
            }
            step("COMMIT")?;
        }
        Ok(())
    };
    run().map_err(|error| database.fault(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_there_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plain.db");

        plain_commits(path.clone(), 3, 7, 10).unwrap();

        let sqlite = Connection::open(path).unwrap();
        let count: i64 =
            sqlite.query_row("SELECT count(*) FROM plain", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 21);
    }
}
