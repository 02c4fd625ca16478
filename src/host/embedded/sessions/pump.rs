//! Giving a generation what the client sends, in its order.

use std::sync::Arc;

use futures::FutureExt;

use super::message::{Message, Ticket};
use super::state::{Joined, Step};
use super::{SessionEnd, Shared};
use crate::core::behavior::{Caller, Reply, call_given_up};
use crate::core::connections::{Arrival, CloseCode, ConnectionError};
use crate::core::context::{ActorContext, Admission, CallRequest};
use crate::error::{Error, Result};
use crate::host::embedded::Address;
use crate::ids::ActorId;
use crate::protocol::Close;

/// What became of a message that was given to a connection.
enum Given {
    /// It was taken, or answered.
    Taken,
    /// The next generation is to take it.
    Back(Message),
    /// It is being taken, and the pump is held until then.
    Pending,
}

impl Shared {
    /// The client sends something.
    pub(super) fn submit(self: &Arc<Self>, message: Message) {
        let refused = self.state.lock().submit(message);
        match refused {
            Ok(()) => self.pump(false),
            Err((error, message)) => message.refuse(error),
        }
    }

    /// The client goes.
    pub(super) fn go(self: &Arc<Self>) {
        let farewell = self.state.lock().go();
        match farewell {
            Some(farewell) => {
                self.gave_up.cancel();
                self.bid(farewell);
            }
            None => self.pump(false),
        }
    }

    /// Performs the steps until there is none, unless somebody does. `mine` says that the
    /// caller holds the pump.
    pub(super) fn pump(self: &Arc<Self>, mut mine: bool) {
        loop {
            let step = self.state.lock().step(mine);
            mine = true;
            match step {
                Step::Rest => return,
                Step::Give(joined, message) => match self.give(&joined, message) {
                    Given::Taken => {}
                    Given::Pending => return,
                    Given::Back(message) => {
                        let left = self.state.lock().give_back(&joined, message);
                        if let Some(message) = left {
                            message.refuse(super::message::over(Some(joined.conn.id())));
                        }
                    }
                },
                Step::Part(joined, farewell) => {
                    // First, so that a generation that starts meanwhile finds nobody.
                    self.bid(farewell);
                    joined.conn.closed();
                }
                Step::Forget(farewell) => self.bid(farewell),
                Step::Wake(actor) => self.wake(actor),
            }
        }
    }

    fn give(self: &Arc<Self>, joined: &Joined, message: Message) -> Given {
        if self.socket.is_some() && joined.live.aborted() {
            return Given::Back(message);
        }
        match message {
            Message::Call { request, ticket } => self.give_call(joined, request, ticket),
            Message::Subscribe { event, wanted, reply } => {
                self.give_subscription(joined, event, wanted, reply)
            }
            Message::Reopen => self.reopen(joined),
            Message::Gone => Given::Taken,
        }
    }

    fn give_call(
        &self,
        joined: &Joined,
        request: CallRequest,
        ticket: Option<Arc<Ticket>>,
    ) -> Given {
        if ticket.as_ref().is_some_and(|ticket| ticket.is_void()) {
            self.note_taken(joined);
            request.reply.send(Err(call_given_up()));
            return Given::Taken;
        }
        match joined.conn.call(request) {
            Ok(call) => {
                self.note_taken(joined);
                if let Some(ticket) = ticket {
                    ticket.taken(&joined.live, call);
                }
                Given::Taken
            }
            Err(refused) => {
                let (error, request) = *refused;
                if self.socket.is_none() {
                    // Its connection ends with the generation.
                    request.reply.send(Err(error));
                    return Given::Taken;
                }
                Given::Back(Message::Call { request, ticket })
            }
        }
    }

    /// Tells a generation that has found the connection again.
    fn reopen(self: &Arc<Self>, joined: &Joined) -> Given {
        let Some((name, args)) = self.client.reopening() else { return Given::Taken };
        let session = Arc::clone(self);
        let request = CallRequest {
            name: name.to_owned(),
            args,
            caller: Caller::Client,
            origin: 0,
            taken_by: None,
            reply: Reply::new(move |result| session.client.reopened(result)),
        };
        match joined.conn.call(request) {
            Ok(_) => Given::Taken,
            Err(_) => Given::Back(Message::Reopen),
        }
    }

    fn give_subscription(
        self: &Arc<Self>,
        joined: &Joined,
        event: String,
        wanted: bool,
        reply: Reply<()>,
    ) -> Given {
        let (Joined { conn, live }, is_stored) = (joined.clone(), self.socket.is_some());
        let mut subscribing = Box::pin(async move {
            let changed = async {
                if wanted {
                    conn.subscribe(&event).await?
                } else {
                    conn.unsubscribe(&event)?
                };
                if is_stored {
                    // What comes next is given when no crash can undo this any more: what
                    // was undone is given again, and has to come before it (invariant 1).
                    // That an output may leave does not say so with durability `interval`.
                    live.flushed().await?;
                }
                Ok(())
            };
            let changed = changed.await;
            (Message::Subscribe { event, wanted, reply }, changed)
        });
        let Some(host) = self.host.upgrade() else { return Given::Taken };
        let first = {
            // The timer of a hook belongs to the runtime, and this may be any thread.
            let _entered = host.runtime.spawner().handle().enter();
            (&mut subscribing).now_or_never()
        };
        // Without a hook and a commit it has happened by then.
        if let Some((message, changed)) = first {
            return self.subscribed(joined, message, changed);
        }
        let (session, joined) = (Arc::clone(self), joined.clone());
        host.runtime.spawner().spawn("subscription", async move {
            let (message, changed) = subscribing.await;
            if let Given::Back(message) = session.subscribed(&joined, message, changed) {
                let left = session.state.lock().give_back(&joined, message);
                if let Some(message) = left {
                    message.refuse(super::message::over(Some(joined.conn.id())));
                }
            }
            session.pump(true);
        });
        Given::Pending
    }

    fn subscribed(&self, joined: &Joined, message: Message, changed: Result<()>) -> Given {
        if changed.is_err() && self.socket.is_some() && !self.takes_work(&joined.live) {
            // Cut off by the end of the generation: to ask for it again does no harm.
            return Given::Back(message);
        }
        self.note_taken(joined);
        match (message, changed) {
            // Nothing can undo it by now, nor is anything of it left to wait for.
            (Message::Subscribe { reply, .. }, Ok(())) if self.socket.is_some() => {
                reply.send(Ok(()));
            }
            (Message::Subscribe { reply, .. }, Ok(())) => joined.live.output_may_leave(reply),
            (message, Err(error)) => message.refuse(error),
            (_, Ok(())) => {}
        }
        Given::Taken
    }

    fn takes_work(&self, live: &ActorContext) -> bool {
        let is_open = !live.aborted() && live.admission() == Admission::Open;
        is_open && self.host.upgrade().is_some_and(|host| host.lives(live))
    }

    /// Numbers a message that was taken.
    fn note_taken(&self, joined: &Joined) {
        if self.socket.is_none() {
            return;
        }
        let number = self.state.lock().note_taken();
        // Refused behind the last save alone: then it is noted in the next generation
        // (invariant 3).
        drop(joined.conn.acknowledge(number));
    }

    fn wake(self: &Arc<Self>, actor: ActorId) {
        let Some(host) = self.host.upgrade() else { return };
        let session = Arc::clone(self);
        let reply = Reply::new(move |met: Result<ActorContext>| match met {
            Ok(live) => session.woken(&live),
            Err(error) => session.not_woken(error),
        });
        host.meet(Address::Id(actor), self.environment, reply);
    }

    /// The actor lives. Mostly the session is joined by then.
    pub(super) fn woken(self: &Arc<Self>, live: &ActorContext) {
        let is_away = self.state.lock().woken(live);
        if is_away {
            self.rejoin(live);
        }
        self.pump(false);
    }

    fn not_woken(self: &Arc<Self>, error: Error) {
        let waiting = self.state.lock().not_woken();
        for message in waiting {
            message.refuse(error.clone());
        }
        if error.is("actor", "not_found") || error.is("registry", "shut_down") {
            self.end(closed_by(&error));
        }
        self.pump(false);
    }

    /// Finds the connection in a generation that has started, and goes on there.
    pub(super) fn rejoin(self: &Arc<Self>, live: &ActorContext) {
        let Some(socket) = self.socket else { return };
        let found = live.connection_of(socket).and_then(|conn| {
            let taken = self.state.lock().last_taken();
            if let Some(taken) = taken {
                // Of a generation that broke the number may be older (invariant 3).
                conn.acknowledge(taken)?;
            }
            Ok((conn.arrival(taken.unwrap_or_default().wrapping_add(1))?, conn))
        });
        match found {
            Ok((Arrival::Next, conn)) => {
                let reopens = self.client.reopening().is_some();
                self.joined(Joined { conn, live: live.clone() }, reopens);
            }
            Ok((Arrival::Duplicate | Arrival::Skipped, conn)) => {
                // First, so that a generation that starts meanwhile finds nobody.
                self.end(SessionEnd::Closed {
                    code: CloseCode::POLICY,
                    reason: "ws.message_index_skip".to_owned(),
                });
                conn.closed();
            }
            // It ends already: the next one is waited for.
            Err(_) if !self.takes_work(live) => {
                if self.host.upgrade().is_some_and(|host| !host.lives(live)) {
                    self.parted(live);
                }
            }
            Err(_) => self.end(closed_by(&ConnectionError::RestoreNotFound { socket }.into())),
        }
    }

    /// Goes on over a connection.
    pub(super) fn joined(self: &Arc<Self>, joined: Joined, reopens: bool) {
        let Joined { conn, live } = joined.clone();
        let (is_joined, is_ended) = {
            let mut state = self.state.lock();
            (state.join(joined, reopens), state.is_ended())
        };
        if !is_joined {
            if is_ended {
                // Whoever ended it knew of no connection yet, and nobody else holds this one.
                conn.closed();
            }
            return;
        }
        // Its end may have been told before there was anybody to tell.
        if self.socket.is_some() && self.host.upgrade().is_some_and(|host| !host.lives(&live)) {
            self.parted(&live);
        }
    }

    /// A generation is over.
    pub(super) fn parted(self: &Arc<Self>, live: &ActorContext) {
        let left = self.state.lock().parted(live.generation());
        if left.is_some() {
            drop(left);
            self.pump(false);
        }
    }
}

/// The end of a session by an error.
pub(super) fn closed_by(error: &Error) -> SessionEnd {
    let Close { code, reason } = Close::failed(error);
    SessionEnd::Closed { code: CloseCode(code), reason }
}
