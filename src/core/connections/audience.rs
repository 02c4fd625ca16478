//! Whom an event reaches.

/// The kinds of clients that want an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Clients within the process.
    pub local: bool,
    /// Clients outside of it.
    pub remote: bool,
}
