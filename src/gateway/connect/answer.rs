//! The answers of calls: what they are on the wire, and who writes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::link::Out;
use crate::error::{Error, Result};
use crate::gateway::Shared;
use crate::gateway::outbox::Outbox;
use crate::protocol::{Disclosure, Encoding, ErrorBody, Limits, Payload, ToClient, Wire as _};

/// Up to how many open calls of all clients an answer is written by the thread that has it.
/// With more of them the threads of the sockets are awake, and write several in one go.
const QUIET: usize = 2;

/// The longest output that is encoded by the thread that has it, in bytes.
const SHORT: usize = 4 * 1024;

/// The calls of one client that are not answered.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    here: Arc<AtomicUsize>,
    /// Those of all clients.
    everywhere: Arc<AtomicUsize>,
    encoding: Encoding,
    limits: Limits,
    disclosure: Disclosure,
}

impl Calls {
    pub(super) fn new(shared: &Shared, encoding: Encoding, limits: Limits) -> Self {
        Self {
            here: Arc::default(),
            everywhere: Arc::clone(&shared.calls),
            encoding,
            limits,
            disclosure: shared.options.disclosure,
        }
    }

    /// How many there are.
    pub(super) fn here(&self) -> usize {
        self.here.load(Ordering::Relaxed)
    }

    /// One begins.
    pub(super) fn begin(&self) {
        self.here.fetch_add(1, Ordering::Relaxed);
        self.everywhere.fetch_add(1, Ordering::Relaxed);
    }

    /// One ends. Says whether it is quiet.
    fn end(&self) -> bool {
        let here = self.here.fetch_sub(1, Ordering::Relaxed);
        self.everywhere.fetch_sub(1, Ordering::Relaxed) <= QUIET && here == 1
    }

    /// What the client reads of a call's outcome.
    ///
    /// # Errors
    ///
    /// Why the connection cannot go on.
    pub(super) fn encoded(&self, id: u64, result: Result<Bytes>) -> Result<Bytes> {
        let response = result.and_then(|output| {
            let output = Payload::new(output).map_err(|error| {
                Error::internal(format_args!("what the action returned: {error}"))
            })?;
            let bytes = ToClient::ActionResponse { id, output }.encode(self.encoding)?;
            self.limits.check_outgoing(bytes.len())?;
            Ok(bytes)
        });
        match response {
            Err(error) if !error.is("actor", "send_failed") => {
                let error = ErrorBody::new(&error, self.disclosure);
                let message = ToClient::Error { action_id: Some(id), error };
                let bytes = message.encode(self.encoding)?;
                self.limits.check_outgoing(bytes.len())?;
                Ok(bytes)
            }
            response => response,
        }
    }
}

/// Who waits for a call.
pub(super) struct Answer {
    pub(super) id: u64,
    pub(super) outbox: Arc<Outbox<Out>>,
    pub(super) calls: Calls,
}

impl Answer {
    /// Gives the client its outcome.
    pub(super) fn give(self, result: Result<Bytes>) {
        let Self { id, outbox, calls } = self;
        let is_quiet = calls.end();
        let is_short = result.as_ref().is_ok_and(|output| output.len() <= SHORT);
        if is_quiet
            && is_short
            && let Ok(bytes) = calls.encoded(id, result.clone())
            && outbox.try_send(&bytes, calls.encoding.is_text())
        {
            return;
        }
        outbox.push(Out::Answer(id, result));
    }
}
