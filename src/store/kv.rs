//! The keys and values of authors, as rows.
//!
//! # Invariants
//!
//! 1. Keys are ordered by their bytes, as unsigned numbers, a shorter key before a
//!    longer one that begins with it. SQLite compares blobs just so.
//! 2. A range is half open: it has its start and not its end.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::ActorNumber;

/// A part of all keys: from `start` on, and before `end` where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    start: Bytes,
    end: Option<Bytes>,
}

impl KeyRange {
    /// The keys from `start` on and before `end`; none when `end` is not behind `start`.
    pub fn between(start: Bytes, end: Bytes) -> Self {
        Self { start, end: Some(end) }
    }

    /// The keys that begin with `prefix`; all keys for an empty one.
    pub fn prefix(prefix: Bytes) -> Self {
        // The next prefix of the same length or a shorter one. Behind one of 0xFF only
        // is nothing but keys that begin with it.
        let end = prefix.iter().rposition(|&byte| byte != 0xFF).map(|last| {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            Bytes::from(end)
        });
        Self { start: prefix, end }
    }

    /// Whether `key` lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    /// How much it weighs in the queue of the store, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.start.len() + self.end.as_ref().map_or(0, Bytes::len)
    }
}

/// Which keys are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvQuery {
    /// Only these.
    pub range: KeyRange,
    /// Whether from the last one to the first.
    pub reverse: bool,
    /// How many at most, counted from where the list begins; `None` for all.
    pub limit: Option<u32>,
}

/// The values of `keys`, in their order.
pub(super) fn get(
    sqlite: &Connection,
    number: ActorNumber,
    keys: &[Bytes],
) -> rusqlite::Result<Vec<Option<Bytes>>> {
    // One moment for all keys; an author's transaction that is open is one.
    let moment = if sqlite.is_autocommit() { Some(sqlite.unchecked_transaction()?) } else { None };
    let values = {
        let mut query =
            sqlite.prepare_cached("SELECT value FROM _gr_kv WHERE num = ?1 AND key = ?2")?;
        keys.iter()
            .map(|key| {
                let found = query.query_row(params![number.0, &key[..]], |row| row.get(0));
                Ok(found.optional()?.map(|value: Vec<u8>| Bytes::from(value)))
            })
            .collect::<rusqlite::Result<_>>()?
    };
    if let Some(moment) = moment {
        moment.finish()?;
    }
    Ok(values)
}

/// The keys and values that `query` asks for.
pub(super) fn list(
    sqlite: &Connection,
    number: ActorNumber,
    query: &KvQuery,
) -> rusqlite::Result<Vec<(Bytes, Bytes)>> {
    let KvQuery { range: KeyRange { start, end }, reverse, limit } = query;
    let sql = match (end, reverse) {
        (Some(_), false) => {
            "SELECT key, value FROM _gr_kv WHERE num = ?1 AND key >= ?2 AND key < ?3
             ORDER BY key LIMIT ?4"
        }
        (Some(_), true) => {
            "SELECT key, value FROM _gr_kv WHERE num = ?1 AND key >= ?2 AND key < ?3
             ORDER BY key DESC LIMIT ?4"
        }
        (None, false) => {
            "SELECT key, value FROM _gr_kv WHERE num = ?1 AND key >= ?2 AND ?3 IS NULL
             ORDER BY key LIMIT ?4"
        }
        (None, true) => {
            "SELECT key, value FROM _gr_kv WHERE num = ?1 AND key >= ?2 AND ?3 IS NULL
             ORDER BY key DESC LIMIT ?4"
        }
    };
    let limit = limit.map_or(-1, i64::from);
    sqlite
        .prepare_cached(sql)?
        .query_map(params![number.0, &start[..], end.as_deref(), limit], |row| {
            let (key, value): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            Ok((Bytes::from(key), Bytes::from(value)))
        })?
        .collect()
}

pub(super) fn put(
    sqlite: &Connection,
    number: ActorNumber,
    key: &[u8],
    value: &[u8],
) -> rusqlite::Result<usize> {
    sqlite
        .prepare_cached(
            "INSERT INTO _gr_kv (num, key, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (num, key) DO UPDATE SET value = excluded.value",
        )?
        .execute(params![number.0, key, value])
}

pub(super) fn delete(
    sqlite: &Connection,
    number: ActorNumber,
    key: &[u8],
) -> rusqlite::Result<usize> {
    sqlite
        .prepare_cached("DELETE FROM _gr_kv WHERE num = ?1 AND key = ?2")?
        .execute(params![number.0, key])
}

pub(super) fn delete_range(
    sqlite: &Connection,
    number: ActorNumber,
    KeyRange { start, end }: &KeyRange,
) -> rusqlite::Result<usize> {
    match end {
        Some(end) => sqlite
            .prepare_cached("DELETE FROM _gr_kv WHERE num = ?1 AND key >= ?2 AND key < ?3")?
            .execute(params![number.0, &start[..], &end[..]]),
        None => sqlite
            .prepare_cached("DELETE FROM _gr_kv WHERE num = ?1 AND key >= ?2")?
            .execute(params![number.0, &start[..]]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(prefix: &'static [u8]) -> Option<Vec<u8>> {
        KeyRange::prefix(Bytes::from_static(prefix)).end.map(|end| end.to_vec())
    }

    #[test]
    fn the_end_of_a_prefix_is_the_next_one_of_its_length_or_shorter() {
        assert_eq!(end_of(b"a"), Some(b"b".to_vec()));
        assert_eq!(end_of(&[0x61, 0xFF]), Some(vec![0x62]));
        assert_eq!(end_of(&[0x00]), Some(vec![0x01]));
        assert_eq!(end_of(&[0x61, 0xFF, 0x00, 0xFF, 0xFF]), Some(vec![0x61, 0xFF, 0x01]));
    }

    #[test]
    fn behind_a_prefix_of_the_last_byte_only_there_is_no_end() {
        assert_eq!(end_of(&[0xFF, 0xFF]), None);
        assert_eq!(end_of(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn a_prefix_range_holds_just_the_keys_that_begin_with_it(
            prefix in proptest::collection::vec(proptest::num::u8::ANY, 0..4),
            key in proptest::collection::vec(proptest::num::u8::ANY, 0..6),
        ) {
            let range = KeyRange::prefix(Bytes::from(prefix.clone()));
            proptest::prop_assert_eq!(range.contains(&key), key.starts_with(&prefix));
        }
    }
}
