//! The connections of an actor that outlive its sleep, as rows.
//!
//! # Invariants
//!
//! 1. A connection is two rows or none: what never changes, and apart from it what
//!    changes with every message, so that a save dirties few pages.
//! 2. They are read in the order of their ids.

mod cbor;

use bytes::Bytes;
use rusqlite::{Connection, params};

use super::ActorNumber;

/// How many bytes each part of a [`SocketId`] has.
pub const SOCKET_ID_BYTES: usize = 4;

/// A client's socket, as the gateway that holds it knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    /// The gateway.
    pub gateway: [u8; SOCKET_ID_BYTES],
    /// The socket on it.
    pub request: [u8; SOCKET_ID_BYTES],
}

/// What is stored of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConnection {
    /// Its id.
    pub id: String,
    /// What the client passed, encoded.
    pub params: Bytes,
    /// Its state, encoded; empty for none.
    pub state: Bytes,
    /// The names of the events that it wants, in order.
    pub subscriptions: Vec<String>,
    /// Its socket.
    pub socket: SocketId,
    /// The number of the last message from the client that was handled.
    pub server_index: u16,
    /// The number of the last message to the client; kept for the gateway.
    pub client_index: u16,
    /// The path and the query of the upgrade.
    pub path: String,
    /// The headers of the upgrade, names in lower case, in order of the names.
    pub headers: Vec<(String, String)>,
}

/// One change of the stored connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionOp {
    /// Stores one, or what can change of one that is stored.
    Put(Box<StoredConnection>),
    /// Removes one, if it is there.
    Delete(String),
}

impl ConnectionOp {
    /// The bytes that it carries.
    pub(super) fn payload(&self) -> usize {
        match self {
            Self::Put(stored) => {
                let names: usize = stored.subscriptions.iter().map(String::len).sum();
                let headers: usize =
                    stored.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
                let StoredConnection { id, params, state, path, .. } = &**stored;
                id.len() + params.len() + state.len() + path.len() + names + headers
            }
            Self::Delete(id) => id.len(),
        }
    }
}

/// Reads the connections of an actor.
pub(super) fn load(
    sqlite: &Connection,
    number: ActorNumber,
) -> rusqlite::Result<Vec<StoredConnection>> {
    sqlite
        .prepare_cached(
            "SELECT conn_id, parameters, state, subscriptions, gateway_id, request_id,
                    server_message_index, client_message_index, request_path, request_headers
             FROM _gr_conns JOIN _gr_conn_state USING (num, conn_id)
             WHERE num = ?1 ORDER BY conn_id",
        )?
        .query_map([number.0], |row| {
            let blob = |at: usize| row.get::<_, Vec<u8>>(at);
            Ok(StoredConnection {
                id: row.get(0)?,
                params: blob(1)?.into(),
                state: blob(2)?.into(),
                subscriptions: cbor::texts(&blob(3)?).map_err(|fault| unreadable(3, fault))?,
                socket: SocketId { gateway: row.get(4)?, request: row.get(5)? },
                server_index: row.get(6)?,
                client_index: row.get(7)?,
                path: row.get(8)?,
                headers: cbor::pairs(&blob(9)?).map_err(|fault| unreadable(9, fault))?,
            })
        })?
        .collect()
}

fn unreadable(column: usize, fault: cbor::Malformed) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, Box::new(fault))
}

/// Makes one change.
pub(super) fn apply(
    sqlite: &Connection,
    number: ActorNumber,
    op: &ConnectionOp,
) -> rusqlite::Result<usize> {
    match op {
        ConnectionOp::Put(stored) => put(sqlite, number, stored),
        ConnectionOp::Delete(id) => {
            sqlite
                .prepare_cached("DELETE FROM _gr_conn_state WHERE num = ?1 AND conn_id = ?2")?
                .execute(params![number.0, id])?;
            sqlite
                .prepare_cached("DELETE FROM _gr_conns WHERE num = ?1 AND conn_id = ?2")?
                .execute(params![number.0, id])
        }
    }
}

fn put(
    sqlite: &Connection,
    number: ActorNumber,
    stored: &StoredConnection,
) -> rusqlite::Result<usize> {
    sqlite
        .prepare_cached(
            "INSERT INTO _gr_conns
                (num, conn_id, parameters, gateway_id, request_id, request_path, request_headers)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (num, conn_id) DO NOTHING",
        )?
        .execute(params![
            number.0,
            stored.id,
            &stored.params[..],
            stored.socket.gateway,
            stored.socket.request,
            stored.path,
            cbor::of_pairs(&stored.headers),
        ])?;
    sqlite
        .prepare_cached(
            "INSERT INTO _gr_conn_state
                (num, conn_id, state, server_message_index, client_message_index, subscriptions)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (num, conn_id) DO UPDATE SET
                state = excluded.state,
                server_message_index = excluded.server_message_index,
                client_message_index = excluded.client_message_index,
                subscriptions = excluded.subscriptions",
        )?
        .execute(params![
            number.0,
            stored.id,
            &stored.state[..],
            stored.server_index,
            stored.client_index,
            cbor::of_texts(&stored.subscriptions),
        ])
}

#[cfg(test)]
mod tests;
