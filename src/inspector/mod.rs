//! What a dashboard and an actor say to each other: frames of the inspector's socket, in
//! all versions that dashboards speak, and the token that lets a dashboard in. Bytes in,
//! values out and back; no socket, no clock, no lock.
//!
//! # Invariants
//!
//! 1. No input makes a decoder panic, and none makes it allocate more than a small
//!    multiple of the input's length.
//! 2. There is one set of messages, that of [`Version::CURRENT`]. A message of an earlier
//!    version becomes one of it, and one that an earlier version has not becomes an error
//!    whose text says what was dropped.
//! 3. The number of a message depends on the version: later ones put theirs in between.
//! 4. `decode(encode(message))` is the message, as far as the version has it.
//! 5. What authors made is bytes here, and goes through unchanged.
//! 6. How long the check of a token takes says nothing of the token.

mod error;
mod parts;
mod tags;
#[cfg(test)]
mod tests;
mod to_client;
mod to_server;
mod token;
mod version;

pub use self::error::InspectorError;
pub use self::parts::{
    Connection, FireError, Init, QueueMessage, QueueStatus, Schedule, ScheduleFire, TabConfigEntry,
};
pub use self::to_client::ToClient;
pub use self::to_server::ToServer;
pub use self::token::{SECRET_LEN, Secret, is_same, unauthorized};
pub use self::version::Version;

use bytes::Bytes;

use crate::protocol::ProtocolError;

/// A request of a dashboard that speaks `advertised`, as the newest version has it.
///
/// # Errors
///
/// [`InspectorError::UnknownVersion`], and those of a message that cannot be read.
pub fn upgrade_request(bytes: Bytes, advertised: u64) -> Result<Vec<u8>, InspectorError> {
    let version = Version::of(advertised)?;
    let message = ToServer::decode(version, bytes)?;
    Ok(message.encode(Version::CURRENT).expect("the newest version has every message"))
}

/// A message of the newest version, as a dashboard of `target` reads it.
///
/// # Errors
///
/// Those of [`upgrade_request`].
pub fn downgrade_response(bytes: Bytes, target: u64) -> Result<Vec<u8>, InspectorError> {
    let version = Version::of(target)?;
    Ok(ToClient::decode(Version::CURRENT, bytes)?.encode(version))
}

/// A number that its version has no message of.
fn unknown(tag: u64) -> ProtocolError {
    ProtocolError::UnknownTag { tag: tag.to_string() }
}
