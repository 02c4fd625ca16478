//! A call with a connection of its own, as a request over HTTP is.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::SessionRequest;
use super::connect::is_closed_to;
use crate::core::behavior::{CallId, Caller, Reply};
use crate::core::connections::{ConnectRequest, RequestConnection};
use crate::core::context::{ActorContext, CallRequest};
use crate::error::{ActorSpecifier, Error, Result};
use crate::host::embedded::{Address, EmbeddedHost, EnvironmentId};

/// What a call with a connection of its own came to.
#[derive(Debug)]
pub struct RequestOutcome {
    /// What the function returned, or why it did not.
    pub result: Result<Bytes>,
    /// The generation that took the call, if one did.
    pub taken_by: Option<ActorSpecifier>,
}

/// Gives the call up if whoever waits goes away.
struct Abandoned {
    live: ActorContext,
    call: Option<CallId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.live.cancel_call(call);
        }
    }
}

impl EmbeddedHost {
    /// Connects for one request: all hooks of a connection run. It ends when it is dropped,
    /// or with [`ConnHandle::disconnect`](crate::core::connections::ConnHandle::disconnect),
    /// which can be awaited.
    ///
    /// # Errors
    ///
    /// What a hook threw, and those of [`EmbeddedHost::call`].
    pub async fn connect_for_request(
        &self,
        address: &Address,
        request: &SessionRequest,
        environment: EnvironmentId,
    ) -> Result<(ActorContext, RequestConnection)> {
        loop {
            let (reply, met) = Reply::channel();
            self.meet(address.clone(), environment, reply);
            let live = met.await?;
            let connected = live.connect(ConnectRequest {
                params: request.params.clone(),
                request: request.request.clone(),
                peer: None,
                socket: None,
            });
            match connected.await {
                Ok(conn) => return Ok((live, conn.for_request())),
                Err(error) if is_closed_to(&live, &error) => self.until_gone(&live).await,
                Err(error) => return Err(error.with_actor(live.specifier())),
            }
        }
    }

    /// Calls an action over a connection of its own, which has ended, `onDisconnect`
    /// included, when this resolves. Dropping the future gives the call up.
    pub async fn call_connected(
        &self,
        address: &Address,
        request: &SessionRequest,
        name: String,
        args: Bytes,
        caller: Caller,
        environment: EnvironmentId,
    ) -> RequestOutcome {
        self.call_connected_by(address, request, name, args, (caller, 0), environment).await
    }

    /// [`EmbeddedHost::call_connected`] by a caller that knows the call by a number.
    pub async fn call_connected_by(
        &self,
        address: &Address,
        request: &SessionRequest,
        name: String,
        args: Bytes,
        by: (Caller, u64),
        environment: EnvironmentId,
    ) -> RequestOutcome {
        let (outcome, connection) =
            self.call_over(address, request, name, args, by, environment).await;
        if let Some(connection) = connection {
            end(&connection).await;
        }
        outcome
    }

    /// The same, but the connection that took the call lasts as long as whoever asked keeps
    /// it.
    pub async fn call_over_new(
        &self,
        address: &Address,
        request: &SessionRequest,
        name: String,
        args: Bytes,
        caller: Caller,
        environment: EnvironmentId,
    ) -> (RequestOutcome, Option<RequestConnection>) {
        self.call_over(address, request, name, args, (caller, 0), environment).await
    }

    async fn call_over(
        &self,
        address: &Address,
        request: &SessionRequest,
        name: String,
        args: Bytes,
        (caller, origin): (Caller, u64),
        environment: EnvironmentId,
    ) -> (RequestOutcome, Option<RequestConnection>) {
        let taken_by = Arc::new(OnceLock::new());
        let (result, connection) = loop {
            let connected = self.connect_for_request(address, request, environment).await;
            let (live, connection) = match connected {
                Ok(connected) => connected,
                Err(error) => break (Err(error), None),
            };
            let (reply, answer) = Reply::channel();
            let refused = connection.call(CallRequest {
                name: name.clone(),
                args: args.clone(),
                caller,
                origin,
                taken_by: Some(Arc::clone(&taken_by)),
                reply,
            });
            let refused = match refused {
                Ok(call) => {
                    let mut abandoned = Abandoned { live, call: Some(call) };
                    let result = answer.await;
                    abandoned.call = None;
                    break (result, Some(connection));
                }
                Err(refused) => refused.0,
            };
            end(&connection).await;
            if !is_closed_to(&live, &refused) {
                break (Err(refused), None);
            }
            // It began to end between the hooks and the call.
            self.until_gone(&live).await;
        };
        (RequestOutcome { result, taken_by: taken_by.get().cloned() }, connection)
    }
}

/// Ends the connection of a request. Where the generation ended first it is gone already,
/// and the outcome of the call says so.
async fn end(connection: &RequestConnection) {
    let ended: Result<(), Error> = connection.disconnect("").await;
    drop(ended);
}
