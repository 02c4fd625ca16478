//! What clients and the gateway say to each other: frames of a connection, bodies of
//! HTTP calls, the offer of an upgrade, the reason of a close. Bytes in, values out and
//! back; no socket, no clock, no lock.
//!
//! Every message has one shape and three encodings ([`Encoding`]). A message in JSON is
//! the same message in CBOR written as text, so the shapes exist twice: as fields of a
//! map (`cbor`) and as BARE (`bare`).
//!
//! `§` names a section of the specification of connections, the client protocol and the
//! gateway, `O§` one of what was observed of the published server, which holds where the
//! two differ.
//!
//! # Invariants
//!
//! 1. No input makes a decoder panic, and none makes it allocate more than a small
//!    multiple of the input's length: a length that is claimed is believed only as far
//!    as there are bytes.
//! 2. What an author or a client passes to the other is a [`Payload`]: one well-formed
//!    CBOR item, nested at most [`MAX_DEPTH`] levels, whose bytes go unchanged through
//!    CBOR and BARE. Only JSON makes other bytes of it.
//! 3. Whichever encoding a client speaks, it reads the same JavaScript value, as far as
//!    JSON has it: what it has not, gets a tagged pair (`["$BigInt","5"]`).
//! 4. `decode(encode(message))` is the message in CBOR and BARE, and in JSON if its
//!    payloads have only what JSON has. One that may be absent is, if it is `undefined`.
//! 5. Fields that a reader does not know are skipped; bytes after a message are refused.
//! 6. What clients may not read of an error is dropped where an [`ErrorBody`] is made of
//!    it, and nowhere later.

mod answer;
pub mod bare;
pub(crate) mod cbor;
mod close;
pub mod cors;
mod encoding;
mod error;
mod error_body;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod header;
pub mod http;
mod json;
mod limits;
pub mod manager;
mod message;
mod offer;
mod payload;
mod percent;
pub mod route;
mod send_call;
#[cfg(test)]
mod tests;
mod wire;

pub use self::answer::{ErrorResponse, Origin, http_status};
pub use self::bare::Version;
pub use self::close::Close;
pub use self::encoding::Encoding;
pub use self::error::ProtocolError;
pub use self::error_body::{ActorBody, Disclosure, ErrorBody};
pub use self::limits::{Limits, MAX_REQUEST_BODY, MAX_SOCKET_MESSAGE};
pub use self::message::{ToClient, ToServer};
pub use self::offer::Offer;
pub use self::payload::{Args, Payload};
pub use self::percent::{form_decode, percent_decode};
pub use self::send_call::SendCall;
pub use self::wire::Wire;

/// The deepest nesting of a payload, in levels of arrays, maps and tags.
pub const MAX_DEPTH: usize = 1_000;

/// The deepest nesting of JSON text, in levels of arrays and objects, the levels of the
/// message around a payload included. Less than [`MAX_DEPTH`], since a reader of JSON
/// calls itself for each level.
pub const MAX_JSON_DEPTH: usize = 120;

/// The levels that a message adds to the payload in it: the frame, its body, its value.
const ENVELOPE: usize = 3;
