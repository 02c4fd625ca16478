//! The directory's rows: which actors there are.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::connection::Database;
use super::job::Created;
use super::place::FileName;
use super::{ActorNumber, ActorRow, AlarmRow, ListFilter, NewActor, Place, StoreError};
use crate::ids::{ActorId, ActorKey, ActorName, Generation};

/// The columns of [`Stored`], within a constant text.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT num, id, name, key, place, created_at FROM directory WHERE ", $rest)
    };
}

/// A row as it is stored, before its columns are checked.
struct Stored {
    number: i64,
    id: Vec<u8>,
    name: String,
    key: Vec<u8>,
    place: i64,
    created_at: i64,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            id: row.get(1)?,
            name: row.get(2)?,
            key: row.get(3)?,
            place: row.get(4)?,
            created_at: row.get(5)?,
        })
    }

    fn check(self, database: &Database) -> Result<ActorRow, StoreError> {
        let number = self.number;
        let broken = |what: &str| StoreError::Corrupt {
            path: database.label(),
            reason: format!("directory row {number}: {what}"),
        };
        let id: [u8; 16] = self.id.try_into().map_err(|_| broken("the id is not 16 bytes"))?;
        let place = match self.place {
            0 => Place::Shared,
            n => Place::File { n: u32::try_from(n).map_err(|_| broken("no such place"))? },
        };
        Ok(ActorRow {
            number: ActorNumber(number),
            id: ActorId::from_bytes(id),
            name: ActorName::new(self.name).map_err(|error| broken(&error.to_string()))?,
            key: ActorKey::decode(&self.key).map_err(|error| broken(&error.to_string()))?,
            place,
            created_at_ms: self.created_at,
        })
    }
}

/// The actor of this name and key.
pub(super) fn find(
    sqlite: &Connection,
    database: &Database,
    name: &ActorName,
    key: &[u8],
) -> Result<Option<ActorRow>, StoreError> {
    sqlite
        .prepare_cached(select!("name = ?1 AND key = ?2"))
        .and_then(|mut query| query.query_row(params![name.as_str(), key], Stored::read).optional())
        .map_err(|error| database.fault(&error))?
        .map(|stored| stored.check(database))
        .transpose()
}

/// The actor of this id.
pub(super) fn find_by_id(
    sqlite: &Connection,
    database: &Database,
    id: ActorId,
) -> Result<Option<ActorRow>, StoreError> {
    sqlite
        .prepare_cached(select!("id = ?1"))
        .and_then(|mut query| query.query_row([id.to_bytes()], Stored::read).optional())
        .map_err(|error| database.fault(&error))?
        .map(|stored| stored.check(database))
        .transpose()
}

/// The actor of this number.
pub(super) fn find_by_number(
    sqlite: &Connection,
    database: &Database,
    number: ActorNumber,
) -> Result<Option<ActorRow>, StoreError> {
    sqlite
        .prepare_cached(select!("num = ?1"))
        .and_then(|mut query| query.query_row([number.0], Stored::read).optional())
        .map_err(|error| database.fault(&error))?
        .map(|stored| stored.check(database))
        .transpose()
}

/// Those that the filter asks for.
pub(super) fn list(
    sqlite: &Connection,
    database: &Database,
    filter: &ListFilter,
) -> Result<Vec<ActorRow>, StoreError> {
    // Only what is asked for is in the text, so that the planner may choose.
    let mut sql = select!("num > ?1").to_owned();
    let mut values = vec![Value::from(filter.after.map_or(0, |number| number.0))];
    if let Some(name) = &filter.name {
        values.push(Value::from(name.as_str().to_owned()));
        sql.push_str(&format!(" AND name = ?{}", values.len()));
    }
    let prefix = filter.key_prefix.encode();
    if let Some(end) = end_of_prefix(&prefix) {
        values.push(Value::from(end));
        sql.push_str(&format!(" AND key < ?{}", values.len()));
    }
    if !prefix.is_empty() {
        values.push(Value::from(prefix));
        sql.push_str(&format!(" AND key >= ?{}", values.len()));
    }
    values.push(Value::from(filter.limit));
    sql.push_str(&format!(" ORDER BY num LIMIT ?{}", values.len()));

    let stored: Vec<Stored> = sqlite
        .prepare_cached(&sql)
        .and_then(|mut query| query.query_map(params_from_iter(values), Stored::read)?.collect())
        .map_err(|error| database.fault(&error))?;
    stored.into_iter().map(|stored| stored.check(database)).collect()
}

/// The newest of a name, the newest first, of those created before `before`.
pub(super) fn list_newest(
    sqlite: &Connection,
    database: &Database,
    name: &ActorName,
    before: Option<ActorNumber>,
    limit: u32,
) -> Result<Vec<ActorRow>, StoreError> {
    let before = before.map_or(i64::MAX, |number| number.0);
    let stored: Vec<Stored> = sqlite
        .prepare_cached(select!("name = ?1 AND num < ?2 ORDER BY num DESC LIMIT ?3"))
        .and_then(|mut query| {
            query.query_map(params![name.as_str(), before, limit], Stored::read)?.collect()
        })
        .map_err(|error| database.fault(&error))?;
    stored.into_iter().map(|stored| stored.check(database)).collect()
}

/// The smallest bytes greater than all that begin with `prefix`; `None` when
/// there are none.
fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The earliest alarms of all actors.
pub(super) fn earliest_alarms(
    sqlite: &Connection,
    limit: u32,
) -> rusqlite::Result<Vec<(ActorNumber, i64)>> {
    sqlite
        .prepare_cached(
            "SELECT num, alarm FROM directory WHERE alarm IS NOT NULL
             ORDER BY alarm, num LIMIT ?1",
        )?
        .query_map([limit], |row| Ok((ActorNumber(row.get(0)?), row.get(1)?)))?
        .collect()
}

/// The alarms of all actors that come after a place in their order.
pub(super) fn alarms(
    sqlite: &Connection,
    database: &Database,
    after: Option<(i64, ActorNumber)>,
    limit: u32,
) -> Result<Vec<AlarmRow>, StoreError> {
    let (at, number) = after.map_or((i64::MIN, i64::MIN), |(at, number)| (at, number.0));
    let stored: Vec<(i64, Vec<u8>, String, i64)> = sqlite
        .prepare_cached(
            "SELECT num, id, name, alarm FROM directory
             WHERE alarm IS NOT NULL AND (alarm, num) > (?1, ?2) ORDER BY alarm, num LIMIT ?3",
        )
        .and_then(|mut query| {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            query.query_map(params![at, number, limit], read)?.collect()
        })
        .map_err(|error| database.fault(&error))?;
    let checked = stored.into_iter().map(|(number, id, name, at)| {
        let broken = |reason: String| StoreError::Corrupt { path: database.label(), reason };
        let id: [u8; 16] = id
            .try_into()
            .map_err(|_| broken(format!("directory row {number}: the id is not 16 bytes")))?;
        let name = ActorName::new(name)
            .map_err(|error| broken(format!("directory row {number}: {error}")))?;
        let number = ActorNumber(number);
        Ok(AlarmRow { number, id: ActorId::from_bytes(id), name, at })
    });
    checked.collect()
}

/// The alarm of one actor; `None` also when there is no such actor.
pub(super) fn alarm_of(sqlite: &Connection, number: ActorNumber) -> rusqlite::Result<Option<i64>> {
    let found = sqlite
        .prepare_cached("SELECT alarm FROM directory WHERE num = ?1")?
        .query_row([number.0], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

/// Makes an actor, unless one of its name and key exists.
pub(super) fn create(
    sqlite: &Connection,
    database: &Database,
    actor: &NewActor,
) -> Result<Created, ApplyError> {
    let key = actor.key.encode();
    if let Some(row) = find(sqlite, database, &actor.name, &key).map_err(ApplyError::Refused)? {
        return Ok(Created { row, created: false });
    }
    sqlite
        .prepare_cached(
            "INSERT INTO directory
                 (id, name, key, place, created_at, alarm, alarm_open, generation)
             VALUES (?1, ?2, ?3, 0, ?4, NULL, 0, 0)",
        )?
        .execute(params![actor.id.to_bytes(), actor.name.as_str(), key, actor.created_at_ms])?;
    let number = sqlite.last_insert_rowid();
    sqlite
        .prepare_cached("INSERT INTO _gr_actor (num, has_initialized, input) VALUES (?1, 0, ?2)")?
        .execute(params![number, actor.input.as_deref()])?;
    let row = ActorRow {
        number: ActorNumber(number),
        id: actor.id,
        name: actor.name.clone(),
        key: actor.key.clone(),
        place: Place::Shared,
        created_at_ms: actor.created_at_ms,
    };
    Ok(Created { row, created: true })
}

/// Takes a number that no other actor gets.
pub(super) fn reserve(sqlite: &Connection) -> rusqlite::Result<ActorNumber> {
    let taken = sqlite
        .prepare_cached(
            "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'directory' RETURNING seq",
        )?
        .query_row([], |row| row.get(0))
        .optional()?;
    if let Some(number) = taken {
        return Ok(ActorNumber(number));
    }
    // The first actor of all.
    sqlite
        .prepare_cached("INSERT INTO sqlite_sequence (name, seq) VALUES ('directory', 1)")?
        .execute([])?;
    Ok(ActorNumber(1))
}

/// Enters an actor whose rows are in its file, unless one of its name and key exists.
pub(super) fn adopt(
    sqlite: &Connection,
    database: &Database,
    row: &ActorRow,
    alarm: Option<i64>,
) -> Result<Created, ApplyError> {
    let key = row.key.encode();
    if let Some(row) = find(sqlite, database, &row.name, &key).map_err(ApplyError::Refused)? {
        return Ok(Created { row, created: false });
    }
    let n = match row.place {
        Place::Shared => 0,
        Place::File { n } => n,
    };
    sqlite
        .prepare_cached(
            "INSERT INTO directory
                 (num, id, name, key, place, created_at, alarm, alarm_open, generation)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)",
        )?
        .execute(params![
            row.number.0,
            row.id.to_bytes(),
            row.name.as_str(),
            key,
            n,
            row.created_at_ms,
            alarm
        ])?;
    Ok(Created { row: row.clone(), created: true })
}

/// Ends an actor; its rows become garbage. `None` if it did not exist, else the file
/// that it leaves, if it had one.
pub(super) fn destroy(
    sqlite: &Connection,
    database: &Database,
    number: ActorNumber,
) -> Result<Option<Option<FileName>>, ApplyError> {
    let found = find_by_number(sqlite, database, number).map_err(ApplyError::Refused)?;
    let Some(row) = found else { return Ok(None) };
    sqlite.prepare_cached("DELETE FROM directory WHERE num = ?1")?.execute([number.0])?;
    put_garbage(sqlite, number)?;
    Ok(Some(FileName::of(&row)))
}

/// Leaves an actor's rows to the sweep. Those that it left when it moved to its own
/// file may still be waiting for it.
pub(super) fn put_garbage(sqlite: &Connection, number: ActorNumber) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("INSERT OR IGNORE INTO garbage (num) VALUES (?1)")?
        .execute([number.0])?;
    Ok(())
}

/// Writes the generation into the row of an actor that lives in the shared
/// store; says whether there is one.
pub(super) fn put_generation(
    sqlite: &Connection,
    number: ActorNumber,
    generation: Generation,
) -> rusqlite::Result<bool> {
    // SQLite's integers are signed; the epoch would have to exceed 2^31.
    let value = i64::try_from(generation.get()).unwrap_or(i64::MAX);
    let changed = sqlite
        .prepare_cached("UPDATE directory SET generation = ?2 WHERE num = ?1 AND place = 0")?
        .execute([number.0, value])?;
    Ok(changed > 0)
}

/// Writes the alarm if it differs: rewriting it would touch the index each time.
pub(super) fn put_alarm(
    sqlite: &Connection,
    number: ActorNumber,
    alarm: Option<i64>,
) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("UPDATE directory SET alarm = ?2 WHERE num = ?1 AND alarm IS NOT ?2")?
        .execute(params![number.0, alarm])?;
    Ok(())
}

/// Whether the actor has a row.
pub(super) fn exists(sqlite: &Connection, number: ActorNumber) -> rusqlite::Result<bool> {
    sqlite.prepare_cached("SELECT 1 FROM directory WHERE num = ?1")?.exists([number.0])
}

/// Why a write could not be applied.
#[derive(Debug)]
pub(super) enum ApplyError {
    /// The store's own rules; SQLite is untroubled.
    Refused(StoreError),
    /// SQLite; it may have thrown the whole transaction away.
    Sqlite(rusqlite::Error),
}

impl ApplyError {
    /// What it means outside of a group.
    pub(super) fn into_store_error(self, database: &Database) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Sqlite(error) => database.fault(&error),
        }
    }
}

impl From<rusqlite::Error> for ApplyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_first_bytes_that_do_not_begin_with_it() {
        assert_eq!(end_of_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end_of_prefix(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(end_of_prefix(b"\xff\xff"), None);
        assert_eq!(end_of_prefix(b""), None);
    }
}
