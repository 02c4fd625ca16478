//! How long messages may be (§3.7, §4.5, §6.6).

use super::ProtocolError;

/// The longest frame of a raw socket and the longest message that frames make together,
/// in bytes: 32 MiB. An actor sets no limit of its own there.
pub const MAX_SOCKET_MESSAGE: usize = 32 * 1024 * 1024;

/// The longest body of a request for the author's code, in bytes: 20 MiB.
pub const MAX_REQUEST_BODY: usize = 20 * 1024 * 1024;

/// The limits of the messages of one actor, in bytes of their encoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest message that a client may send.
    pub incoming: usize,
    /// The longest message that is sent to a client.
    pub outgoing: usize,
}

impl Default for Limits {
    /// 64 KiB in, 1 MiB out.
    fn default() -> Self {
        Self { incoming: 65_536, outgoing: 1_048_576 }
    }
}

impl Limits {
    /// Refuses what a client sent if it has more than [`Limits::incoming`] bytes. To be
    /// asked before the bytes are decoded.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::IncomingTooLong`].
    pub const fn check_incoming(self, size: usize) -> Result<(), ProtocolError> {
        if size > self.incoming {
            return Err(ProtocolError::IncomingTooLong { size, limit: self.incoming });
        }
        Ok(())
    }

    /// Refuses what a client would be sent if it has more than [`Limits::outgoing`] bytes.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::OutgoingTooLong`].
    pub const fn check_outgoing(self, size: usize) -> Result<(), ProtocolError> {
        if size > self.outgoing {
            return Err(ProtocolError::OutgoingTooLong { size, limit: self.outgoing });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §3.7.
    #[test]
    fn a_message_of_the_limit_passes_and_one_byte_more_does_not() {
        let limits = Limits::default();

        assert_eq!(limits.check_incoming(65_536), Ok(()));
        assert_eq!(
            limits.check_incoming(65_537),
            Err(ProtocolError::IncomingTooLong { size: 65_537, limit: 65_536 })
        );
        assert_eq!(limits.check_outgoing(1_048_576), Ok(()));
        assert_eq!(
            limits.check_outgoing(1_048_577),
            Err(ProtocolError::OutgoingTooLong { size: 1_048_577, limit: 1_048_576 })
        );
    }
}
