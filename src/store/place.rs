//! What the directory says of actors that have their own file.
//!
//! # Invariants
//!
//! 1. An actor leaves the shared store once and never comes back: its rows there are
//!    garbage from the same commit on that names the file.
//! 2. While `alarm_open` is set, the alarm in the file is the truth; a start reads it
//!    there. It is set before the file's alarm may change.

use std::fmt;

use rusqlite::{Connection, params};

use super::{ActorNumber, ActorRow, Place, directory};
use crate::ids::{ActorId, Generation};

/// A change of an actor's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceChange {
    /// From here on the actor's rows are in the file `n`. Fenced: only the current
    /// generation of an actor that is in the shared store moves it.
    MoveToFile { generation: Generation, n: u32 },
    /// The alarm in the file may change.
    OpenAlarm,
    /// The file's alarm is this one and stays.
    SettleAlarm { alarm: Option<i64> },
}

/// Which file an actor has; its text is the file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileName {
    /// Whose.
    pub(super) id: ActorId,
    /// The how manieth; at least 1.
    pub(super) n: u32,
}

impl FileName {
    /// The file of an actor that has one.
    pub(super) fn of(row: &ActorRow) -> Option<Self> {
        match row.place {
            Place::Shared => None,
            Place::File { n } => Some(Self { id: row.id, n }),
        }
    }

    /// Reads the name of a database or of a file that SQLite keeps beside it.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let stem = ["-wal", "-shm", "-journal"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name)
            .strip_suffix(".db")?;
        let (id, n) = stem.split_once('.')?;
        let parsed = Self { id: ActorId::parse(id)?, n: n.parse().ok()? };
        // Another spelling of the same name is not a name of ours.
        (format!("{parsed}") == format!("{stem}.db")).then_some(parsed)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.db", self.id, self.n)
    }
}

/// Says whether the actor was in the shared store.
pub(super) fn move_to_file(
    sqlite: &Connection,
    number: ActorNumber,
    n: u32,
) -> rusqlite::Result<bool> {
    let moved = sqlite
        .prepare_cached("UPDATE directory SET place = ?2 WHERE num = ?1 AND place = 0")?
        .execute(params![number.0, n])?;
    if moved > 0 {
        directory::put_garbage(sqlite, number)?;
    }
    Ok(moved > 0)
}

pub(super) fn open_alarm(sqlite: &Connection, number: ActorNumber) -> rusqlite::Result<()> {
    sqlite
        .prepare_cached("UPDATE directory SET alarm_open = 1 WHERE num = ?1 AND alarm_open = 0")?
        .execute([number.0])?;
    Ok(())
}

pub(super) fn settle_alarm(
    sqlite: &Connection,
    number: ActorNumber,
    alarm: Option<i64>,
) -> rusqlite::Result<()> {
    directory::put_alarm(sqlite, number, alarm)?;
    sqlite
        .prepare_cached("UPDATE directory SET alarm_open = 0 WHERE num = ?1 AND alarm_open <> 0")?
        .execute([number.0])?;
    Ok(())
}

/// The actors whose alarm is to be read in their file.
pub(super) fn open_alarms(sqlite: &Connection) -> rusqlite::Result<Vec<(ActorNumber, FileName)>> {
    sqlite
        .prepare_cached(
            "SELECT num, id, place FROM directory WHERE alarm_open <> 0 AND place > 0
             ORDER BY num",
        )?
        .query_map([], |row| {
            let name = FileName { id: ActorId::from_bytes(row.get(1)?), n: row.get(2)? };
            Ok((ActorNumber(row.get(0)?), name))
        })?
        .collect()
}

/// Whether an actor has this file.
pub(super) fn has_file(sqlite: &Connection, name: FileName) -> rusqlite::Result<bool> {
    sqlite
        .prepare_cached("SELECT 1 FROM directory WHERE id = ?1 AND place = ?2")?
        .exists(params![name.id.to_bytes(), name.n])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdSource;

    #[test]
    fn a_name_is_read_back_and_so_are_the_names_beside_it() {
        let name = FileName { id: IdSource::seeded(1).actor_id(), n: 12 };

        for suffix in ["", "-wal", "-shm", "-journal"] {
            assert_eq!(FileName::parse(&format!("{name}{suffix}")), Some(name));
        }
    }

    #[test]
    fn what_is_not_spelled_like_a_name_is_none() {
        let name = FileName { id: IdSource::seeded(1).actor_id(), n: 1 };
        let text = name.to_string();

        for other in [
            text.to_uppercase(),
            text.replace(".1.", ".01."),
            text.replace(".1.", ".+1."),
            text.replace(".db", ".db.tmp"),
            text.replace(".1.db", ".db"),
            "notes.txt".into(),
        ] {
            assert_eq!(FileName::parse(&other), None, "{other}");
        }
    }
}
