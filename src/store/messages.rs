//! The messages of an actor's queue, as rows.
//!
//! # Invariants
//!
//! 1. The id of a message is stored as used together with the message, so it is
//!    never given out again, whatever is deleted.
//! 2. A message is either waiting or dead, never both.
//! 3. The body is the last column of its row, so reading the others of a large
//!    message leaves the pages of its body alone.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::ActorNumber;

/// The number of a message within its actor, from 1 on, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageId(pub i64);

/// A message that waits, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Its id.
    pub id: MessageId,
    /// The name that it was sent under.
    pub name: Arc<str>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// From when on it may be handed out, in milliseconds since the Unix epoch.
    pub available_at_ms: i64,
    /// How often it has been handed out.
    pub deliveries: u32,
}

/// A key under which a message was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentKeyRow {
    /// The name of the message.
    pub name: Arc<str>,
    /// The key.
    pub key: Arc<str>,
    /// The message.
    pub id: MessageId,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
}

/// A dead message, as far as a generation must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadRow {
    /// Its id.
    pub id: MessageId,
    /// The name that it was sent under.
    pub name: Arc<str>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// A dead message, for its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id.
    pub id: MessageId,
    /// The name that it was sent under.
    pub name: Arc<str>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// How often it was handed out.
    pub deliveries: u32,
    /// When it was given up, in milliseconds since the Unix epoch.
    pub died_at_ms: i64,
    /// What its last consumer said against it.
    pub error: Option<String>,
    /// Its body.
    pub body: Bytes,
}

/// What a generation must know of its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueRows {
    /// The id of the next message; 0 before the first one.
    pub next_id: i64,
    /// What waits, by id.
    pub messages: Vec<MessageRow>,
    /// The keys that are remembered.
    pub sent_keys: Vec<SentKeyRow>,
    /// What is dead, by id.
    pub dead: Vec<DeadRow>,
}

/// One change of the rows of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueOp {
    /// A new message, which no delivery has.
    Send {
        /// Its id, larger than any before.
        id: MessageId,
        /// The name that it is sent under.
        name: Arc<str>,
        /// Its body.
        body: Bytes,
        /// When, in milliseconds since the Unix epoch.
        created_at_ms: i64,
        /// From when on it may be handed out, in milliseconds since the Unix epoch.
        available_at_ms: i64,
    },
    /// A message is handed out and stays.
    Deliver {
        /// Which.
        id: MessageId,
        /// How often it has been handed out, this time included.
        deliveries: u32,
        /// From when on it may be handed out again if nothing is heard of it.
        available_at_ms: i64,
    },
    /// A message that was handed out waits again.
    Release {
        /// Which.
        id: MessageId,
        /// From when on it may be handed out again.
        available_at_ms: i64,
        /// What its consumer said against it; the last word stays when absent.
        error: Option<Arc<str>>,
    },
    /// A message is done.
    Remove(MessageId),
    /// A message is given up.
    Bury {
        /// Which.
        id: MessageId,
        /// When, in milliseconds since the Unix epoch.
        died_at_ms: i64,
        /// Why; the last word of its consumers stays when absent.
        error: Option<Arc<str>>,
    },
    /// A dead message waits again, as one that was never handed out.
    Revive {
        /// Which.
        id: MessageId,
        /// From when on it may be handed out.
        available_at_ms: i64,
    },
    /// A dead message is thrown away.
    DeleteDead(MessageId),
    /// A key is remembered, in place of what it stood for.
    RememberKey(SentKeyRow),
    /// A key is forgotten.
    ForgetKey {
        /// The name of its message.
        name: Arc<str>,
        /// The key.
        key: Arc<str>,
    },
    /// All messages that wait and all keys are thrown away; dead ones stay.
    Clear,
}

impl QueueOp {
    /// The bytes that it carries.
    pub(super) fn payload(&self) -> usize {
        let text = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        match self {
            Self::Send { name, body, .. } => name.len() + body.len(),
            Self::Release { error, .. } | Self::Bury { error, .. } => text(error),
            Self::RememberKey(row) => row.name.len() + row.key.len(),
            Self::ForgetKey { name, key } => name.len() + key.len(),
            Self::Deliver { .. }
            | Self::Remove(_)
            | Self::Revive { .. }
            | Self::DeleteDead(_)
            | Self::Clear => 0,
        }
    }
}

/// Reads what a generation must know of its queue.
pub(super) fn load(sqlite: &Connection, number: ActorNumber) -> rusqlite::Result<QueueRows> {
    let next_id = sqlite
        .prepare_cached("SELECT next_id FROM _gr_queue_next WHERE num = ?1")?
        .query_row([number.0], |row| row.get(0))
        .optional()?;
    // Most actors never send a message: one look is all that their start pays.
    let Some(next_id) = next_id else { return Ok(QueueRows::default()) };
    let messages = sqlite
        .prepare_cached(
            "SELECT id, name, created_at, available_at, deliveries
             FROM _gr_queue WHERE num = ?1 ORDER BY id",
        )?
        .query_map([number.0], |row| {
            Ok(MessageRow {
                id: MessageId(row.get(0)?),
                name: row.get(1)?,
                created_at_ms: row.get(2)?,
                available_at_ms: row.get(3)?,
                deliveries: row.get(4)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let sent_keys = sqlite
        .prepare_cached("SELECT name, key, id, sent_at FROM _gr_queue_key WHERE num = ?1")?
        .query_map([number.0], |row| {
            Ok(SentKeyRow {
                name: row.get(0)?,
                key: row.get(1)?,
                id: MessageId(row.get(2)?),
                sent_at_ms: row.get(3)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let dead = sqlite
        .prepare_cached(
            "SELECT id, name, created_at FROM _gr_queue_dead WHERE num = ?1 ORDER BY id",
        )?
        .query_map([number.0], |row| {
            Ok(DeadRow {
                id: MessageId(row.get(0)?),
                name: row.get(1)?,
                created_at_ms: row.get(2)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(QueueRows { next_id, messages, sent_keys, dead })
}

/// The bodies of waiting messages, in the order of `ids`.
pub(super) fn bodies(
    sqlite: &Connection,
    number: ActorNumber,
    ids: &[MessageId],
) -> rusqlite::Result<Vec<Option<Bytes>>> {
    let mut query =
        sqlite.prepare_cached("SELECT body FROM _gr_queue WHERE num = ?1 AND id = ?2")?;
    ids.iter()
        .map(|id| {
            let found = query.query_row(params![number.0, id.0], |row| row.get(0)).optional()?;
            Ok(found.map(|body: Vec<u8>| Bytes::from(body)))
        })
        .collect()
}

/// At most `limit` dead messages behind the one of the id `after`, by id.
pub(super) fn dead(
    sqlite: &Connection,
    number: ActorNumber,
    after: MessageId,
    limit: u32,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let read = |row: &Row<'_>| {
        let body: Vec<u8> = row.get(6)?;
        Ok(DeadLetter {
            id: MessageId(row.get(0)?),
            name: row.get(1)?,
            created_at_ms: row.get(2)?,
            deliveries: row.get(3)?,
            died_at_ms: row.get(4)?,
            error: row.get(5)?,
            body: Bytes::from(body),
        })
    };
    sqlite
        .prepare_cached(
            "SELECT id, name, created_at, deliveries, died_at, error, body
             FROM _gr_queue_dead WHERE num = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
        )?
        .query_map(params![number.0, after.0, limit], read)?
        .collect()
}

/// Makes one change.
pub(super) fn apply(
    sqlite: &Connection,
    number: ActorNumber,
    op: &QueueOp,
) -> rusqlite::Result<usize> {
    let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
        sqlite.prepare_cached(sql).and_then(|mut statement| statement.execute(params))
    };
    let num = &number.0;
    match op {
        QueueOp::Send { id, name, body, created_at_ms, available_at_ms } => {
            run(
                "INSERT INTO _gr_queue_next (num, next_id) VALUES (?1, ?2)
                 ON CONFLICT (num) DO UPDATE SET next_id = max(next_id, excluded.next_id)",
                &[num, &(id.0 + 1)],
            )?;
            run(
                "INSERT INTO _gr_queue
                    (num, id, name, created_at, available_at, deliveries, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
                &[num, &id.0, name, created_at_ms, available_at_ms, &&body[..]],
            )
        }
        QueueOp::Deliver { id, deliveries, available_at_ms } => run(
            "UPDATE _gr_queue SET deliveries = ?3, available_at = ?4 WHERE num = ?1 AND id = ?2",
            &[num, &id.0, deliveries, available_at_ms],
        ),
        QueueOp::Release { id, available_at_ms, error } => run(
            "UPDATE _gr_queue SET available_at = ?3, error = coalesce(?4, error)
             WHERE num = ?1 AND id = ?2",
            &[num, &id.0, available_at_ms, error],
        ),
        QueueOp::Remove(id) => {
            run("DELETE FROM _gr_queue WHERE num = ?1 AND id = ?2", &[num, &id.0])
        }
        QueueOp::Bury { id, died_at_ms, error } => {
            run(
                "INSERT INTO _gr_queue_dead
                    (num, id, name, created_at, deliveries, died_at, error, body)
                 SELECT num, id, name, created_at, deliveries, ?3, coalesce(?4, error), body
                 FROM _gr_queue WHERE num = ?1 AND id = ?2",
                &[num, &id.0, died_at_ms, error],
            )?;
            run("DELETE FROM _gr_queue WHERE num = ?1 AND id = ?2", &[num, &id.0])
        }
        QueueOp::Revive { id, available_at_ms } => {
            run(
                "INSERT INTO _gr_queue
                    (num, id, name, created_at, available_at, deliveries, error, body)
                 SELECT num, id, name, created_at, ?3, 0, error, body
                 FROM _gr_queue_dead WHERE num = ?1 AND id = ?2",
                &[num, &id.0, available_at_ms],
            )?;
            run("DELETE FROM _gr_queue_dead WHERE num = ?1 AND id = ?2", &[num, &id.0])
        }
        QueueOp::DeleteDead(id) => {
            run("DELETE FROM _gr_queue_dead WHERE num = ?1 AND id = ?2", &[num, &id.0])
        }
        QueueOp::RememberKey(SentKeyRow { name, key, id, sent_at_ms }) => run(
            "INSERT INTO _gr_queue_key (num, name, key, id, sent_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (num, name, key)
             DO UPDATE SET id = excluded.id, sent_at = excluded.sent_at",
            &[num, name, key, &id.0, sent_at_ms],
        ),
        QueueOp::ForgetKey { name, key } => run(
            "DELETE FROM _gr_queue_key WHERE num = ?1 AND name = ?2 AND key = ?3",
            &[num, name, key],
        ),
        QueueOp::Clear => {
            run("DELETE FROM _gr_queue_key WHERE num = ?1", &[num])?;
            run("DELETE FROM _gr_queue WHERE num = ?1", &[num])
        }
    }
}
