//! JSON as another way to write CBOR (§3.4).
//!
//! # Invariants
//!
//! 1. A number becomes what JavaScript's own encoder would write for it, so an actor reads
//!    the number that the client had, and never a bigint.
//! 2. What JSON has not becomes the pair that the clients know: a bigint
//!    `["$BigInt","5"]`, bytes `["$Uint8Array","AQ=="]`, a set `["$Set",[1]]`, `undefined`
//!    `["$Undefined",0]`. Pairs that come in are passed on: only JavaScript gives them
//!    meaning.
//! 3. A number that JSON has not is `null` and a date is its text, as `JSON.stringify`
//!    has it. Of any other tag only the content is written.

mod date;
mod read;
mod write;

pub use self::read::to_cbor;
pub use self::write::from_cbor;
