//! One event on its way to any number of clients.

use std::sync::OnceLock;

use bytes::Bytes;

/// How many encoded forms of an event are kept.
pub const FORMS: usize = 3;

/// An event: a name and encoded arguments, which the core does not look into.
#[derive(Debug)]
pub struct Event {
    name: Box<str>,
    args: Bytes,
    forms: [OnceLock<Bytes>; FORMS],
}

impl Event {
    /// An event that nobody has encoded.
    pub fn new(name: &str, args: Bytes) -> Self {
        Self { name: name.into(), args, forms: Default::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its arguments, encoded by the author's side.
    pub fn args(&self) -> &Bytes {
        &self.args
    }

    /// The message that a client reads, in the form number `form` below [`FORMS`]; which
    /// number is which encoding is the gateway's choice. Encoded for the first receiver,
    /// shared by the others. A form out of range is encoded each time.
    pub fn encoded(&self, form: usize, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        match self.forms.get(form) {
            Some(kept) => kept.get_or_init(|| encode(self)).clone(),
            None => encode(self),
        }
    }
}
