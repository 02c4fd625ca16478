//! What one client of an actor may do. A gateway sees to it.

/// Limits of the clients of an actor; without one a client may do as much as it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// How many messages a second a connection may send in the long run.
    pub messages_per_second: Option<u32>,
    /// How many of them may come at once; without it as many as in a second.
    pub burst: Option<u32>,
    /// How many connections to one actor an address may have.
    pub connections_per_ip: Option<u32>,
}
