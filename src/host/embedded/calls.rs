//! What callers ask for: rows, and calls of actors.

use std::sync::Arc;

use bytes::Bytes;

use super::error::{HostError, check_input};
use super::table::{Target, Task};
use super::visit::{Visit, try_accept};
use super::waiter::{By, Missing, Waiter, Want};
use super::{EmbeddedHost, EnvironmentId, State};
use crate::core::behavior::Reply;
use crate::core::context::{ActorContext, CallRequest};
use crate::error::Error;
use crate::ids::{ActorId, ActorKey, ActorName};
use crate::store::ActorRow;

/// Which actor is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Whoever has the key.
    Key {
        /// The actor's type.
        name: ActorName,
        /// What tells it from the others of its type.
        key: ActorKey,
        /// Create it if nobody has the key.
        create: Option<Create>,
    },
    /// This one and no later one of the same key.
    Id(ActorId),
}

/// How an actor is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Create {
    /// What its first start is given; at most [`MAX_INPUT_LEN`](crate::ids::MAX_INPUT_LEN).
    pub input: Option<Bytes>,
}

impl EmbeddedHost {
    /// Finds or creates the row of an actor, and starts nothing. While the actor
    /// is being destroyed, whoever creates waits for the end and gets a new one.
    ///
    /// Answers `actor/not_found`, `actor/not_registered` (nobody can run what is
    /// to be created), `actor/invalid_argument` (the input is too large),
    /// `registry/shut_down` or `storage/*`.
    pub fn resolve(&self, address: Address, environment: EnvironmentId, reply: Reply<ActorRow>) {
        self.submit(address, environment, Want::Row(reply));
    }

    /// Creates an actor, and starts nothing.
    ///
    /// Answers `actor/already_exists`, with the id in the metadata, or an error of
    /// [`EmbeddedHost::resolve`].
    pub fn create(
        &self,
        name: ActorName,
        key: ActorKey,
        input: Option<Bytes>,
        reply: Reply<ActorRow>,
    ) {
        let address = Address::Key { name, key, create: Some(Create { input }) };
        // It starts nothing, so no environment is asked for.
        let environment = EnvironmentId(0);
        self.submit(address, environment, Want::Create(reply));
    }

    /// Calls an action, starting the actor if it sleeps. Calls of one thread to
    /// one address are accepted in the order of their submission.
    ///
    /// The request is answered by the actor, or with an error of
    /// [`EmbeddedHost::resolve`] or of its start.
    pub fn call(&self, address: Address, request: CallRequest, environment: EnvironmentId) {
        let Some(live) = self.live(&address) else {
            return self.submit(address, environment, Want::Call(Visit::Call(request)));
        };
        match try_accept(&live, request) {
            Ok(()) => {}
            Err((Some(error), request)) => request.reply.send(Err(error)),
            Err((None, request)) => {
                let (target, by) = split(address);
                let waiter = Waiter { by, environment, want: Want::Call(Visit::Call(request)) };
                self.refused(&live, Some(target), waiter);
            }
        }
    }

    /// The live generation, if a call may go to it past nobody who waits. Costs
    /// one lock and one look into a map. `None` once the host shuts down.
    pub fn live(&self, address: &Address) -> Option<ActorContext> {
        let state = self.state.lock();
        if state.world.shut_down.is_some() {
            return None;
        }
        let entry = match address {
            Address::Key { name, key, .. } => state.table.by_key(name, key)?,
            Address::Id(id) => state.table.by_id(*id)?,
        };
        entry.open_to_calls().cloned()
    }

    /// A generation takes no more calls: the caller waits for the next one. One
    /// that came without a `target` is in the hands of the pump.
    pub(super) fn refused(
        &self,
        live: &ActorContext,
        target: Option<Target>,
        waiter: Waiter<Visit>,
    ) {
        let (id, generation) = (live.actor_id(), live.generation());
        let mut waiter = Some(waiter);
        let mut tasks = Vec::new();
        self.locked(|state| {
            let entry = state.table.change(id, |entry| {
                entry.refused(generation, waiter.take().expect("taken once"));
            });
            match (entry, target) {
                (Some(()), Some(_)) => tasks.push(Task::Pump(id)),
                // The actor is gone: whoever has the key by now serves the call.
                (None, Some(target)) => {
                    let waiter = waiter.take().expect("no entry took it");
                    state.table.route(target, waiter, &mut tasks);
                }
                (_, None) => {}
            }
        });
        self.perform(tasks);
    }

    /// Somebody comes with a wish.
    pub(super) fn submit(&self, address: Address, environment: EnvironmentId, want: Want<Visit>) {
        let input_fits = match &address {
            Address::Key { create: Some(create), .. } => check_input(create.input.as_ref()),
            Address::Key { create: None, .. } | Address::Id(_) => Ok(()),
        };
        let (target, by) = split(address);
        let waiter = Waiter { by, environment, want };
        if let Err(error) = input_fits {
            return waiter.refuse(error);
        }
        let mut tasks = Vec::new();
        self.locked(|state| match admit(state, &target, &waiter) {
            Ok(()) => state.table.route(target, waiter, &mut tasks),
            Err(error) => tasks.push(Task::Refuse(waiter, error)),
        });
        self.perform(tasks);
    }

    /// Answers with a copy of the row.
    pub(super) fn found(reply: Reply<ActorRow>, row: &Arc<ActorRow>) {
        reply.send(Ok(ActorRow::clone(row)));
    }
}

/// Whether the host takes this at all.
fn admit(state: &State, target: &Target, waiter: &Waiter<Visit>) -> Result<(), Error> {
    if let Some(error) = &state.world.shut_down {
        return Err(error.clone());
    }
    // An actor of a type that nobody runs is neither created nor started; one that
    // exists can still be found, put to sleep and destroyed.
    let runs = waiter.by.creates() || waiter.want.starts();
    match target {
        Target::Key(name, _) if runs && !state.places.can_run(name) => {
            Err(HostError::NotRegistered { name: name.clone() }.into())
        }
        Target::Key(..) | Target::Id(_) => Ok(()),
    }
}

fn split(address: Address) -> (Target, By) {
    match address {
        Address::Id(id) => (Target::Id(id), By::Id),
        Address::Key { name, key, create } => {
            let missing = match create {
                Some(Create { input }) => Missing::Create(input),
                None => Missing::Fail,
            };
            (Target::Key(name, key), By::Key(missing))
        }
    }
}
