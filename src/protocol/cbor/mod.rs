//! CBOR: a walker that never calls itself, a writer that JavaScript reads right, and the
//! fields of a message's map.

mod fields;
mod read;
mod write;

pub use self::fields::{Field, Item};
pub use self::read::{Event, Walker};
pub use self::write::Writer;
