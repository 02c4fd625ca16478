//! What somebody wants of a generation that lives: that it takes a call, or to meet it.

use super::table::Waiter;
use super::waiter::{Refusable, Want};
use super::{Address, EmbeddedHost, EnvironmentId};
use crate::core::behavior::Reply;
use crate::core::context::{ActorContext, Admission, CallRequest};
use crate::error::{Error, Result};
use crate::ids::ActorId;

/// What somebody wants of a generation that lives.
#[derive(Debug)]
pub(super) enum Visit {
    /// That it takes a call.
    Call(CallRequest),
    /// To be told which it is.
    Meet(Reply<ActorContext>),
}

impl Refusable for Visit {
    fn refuse(self, error: Error) {
        match self {
            Self::Call(request) => request.reply.send(Err(error)),
            Self::Meet(reply) => reply.send(Err(error)),
        }
    }
}

impl EmbeddedHost {
    /// Tells of the generation that lives, and starts one if none does. It may be on its
    /// way to sleep.
    ///
    /// Answers as [`EmbeddedHost::call`] where that is not answered by the actor.
    pub(super) fn meet(
        &self,
        address: Address,
        environment: EnvironmentId,
        reply: Reply<ActorContext>,
    ) {
        if let Some(live) = self.live(&address) {
            return reply.send(Ok(live));
        }
        self.submit(address, environment, Want::Call(Visit::Meet(reply)));
    }

    /// The generation that lives and takes clients; one is started if none does.
    ///
    /// # Errors
    ///
    /// Those of [`EmbeddedHost::call`] where that is not answered by the actor.
    pub async fn visit(
        &self,
        address: &Address,
        environment: EnvironmentId,
    ) -> Result<ActorContext> {
        self.meet_open(address, environment).await
    }

    /// [`EmbeddedHost::meet`], but a generation that takes clients. A client that one
    /// refuses because it ends waits for the next one.
    pub(super) async fn meet_open(
        &self,
        address: &Address,
        environment: EnvironmentId,
    ) -> Result<ActorContext> {
        loop {
            let (reply, met) = Reply::channel();
            self.meet(address.clone(), environment, reply);
            let live = met.await?;
            if !live.aborted() {
                return Ok(live);
            }
            self.until_gone(&live).await;
        }
    }

    /// Resolves when a generation lives no more.
    pub async fn until_gone(&self, live: &ActorContext) {
        loop {
            let mut departure = std::pin::pin!(self.departures.notified());
            // Listened for before the look, so that no end is missed.
            departure.as_mut().enable();
            if !self.lives(live) {
                return;
            }
            departure.await;
        }
    }

    /// The generation that lives, in whatever phase, and whoever waits for it.
    pub(super) fn living(&self, actor: ActorId) -> Option<ActorContext> {
        self.state.lock().table.by_id(actor)?.live().cloned()
    }

    /// Whether it is this generation that lives.
    pub(super) fn lives(&self, live: &ActorContext) -> bool {
        let state = self.state.lock();
        let entry = state.table.by_id(live.actor_id());
        entry.is_some_and(|entry| entry.is_live(live.generation()))
    }

    /// Offers a visit to a generation, which is in the hands of the pump.
    pub(super) fn offer(&self, live: &ActorContext, waiter: Waiter) {
        let Waiter { by, environment, want } = waiter;
        let request = match want {
            Want::Call(Visit::Call(request)) => request,
            Want::Call(Visit::Meet(reply)) => return reply.send(Ok(live.clone())),
            want => {
                // The entry offers visits only.
                return Waiter { by, environment, want }.refuse(Error::internal("not a visit"));
            }
        };
        if let Err((error, request)) = try_accept(live, request) {
            match error {
                Some(error) => request.reply.send(Err(error)),
                None => {
                    let want = Want::Call(Visit::Call(request));
                    self.refused(live, None, Waiter { by, environment, want });
                }
            }
        }
    }
}

/// Offers a call to a generation. Handed back with the error that answers it, or without
/// one when another generation is to take it.
pub(super) fn try_accept(
    live: &ActorContext,
    request: CallRequest,
) -> std::result::Result<(), (Option<Error>, CallRequest)> {
    let Err(refused) = live.accept(request) else { return Ok(()) };
    let (error, request) = *refused;
    let is_final = live.admission() == Admission::Open;
    Err((is_final.then_some(error), request))
}
