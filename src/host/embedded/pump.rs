//! Doing what table and entries say, outside the lock.
//!
//! Whoever holds an entry's pump performs its steps one after the other. Nobody
//! else does meanwhile, so callers are accepted in their order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::entry::{Refused, Step};
use super::error::HostError;
use super::table::{Look, Seen, Target, Task};
use super::visit::Visit;
use super::{EmbeddedHost, EnvironmentId};
use crate::core::actor::lifecycle::StopReason;
use crate::core::behavior::BehaviorFactory;
use crate::core::context::{ActorContext, ActorParts};
use crate::core::host::Host;
use crate::core::identity::Identity;
use crate::core::spawner::panic_text;
use crate::error::Error;
use crate::ids::ActorId;
use crate::store::{ActorNumber, ActorRow, ActorStoreRef, NewActor, StoreError};

impl EmbeddedHost {
    /// Does the tasks, in order.
    pub(super) fn perform(&self, tasks: Vec<Task>) {
        for task in tasks {
            match task {
                Task::Pump(id) => self.pump(id),
                Task::Look(look) => self.look(look),
                Task::Found(reply, row) => Self::found(reply, &row),
                Task::Exists(reply, row) => reply.send(Err(exists(&row))),
                Task::Destroyed(reply, existed) => reply.send(Ok(existed)),
                Task::Refuse(waiter, error) => waiter.refuse(error),
            }
        }
    }

    /// Performs the steps of an entry until there is none, unless somebody does.
    pub(super) fn pump(&self, id: ActorId) {
        let is_mine = self.locked(|state| state.table.change(id, |entry| entry.take_pump()));
        if is_mine != Some(true) {
            return;
        }
        loop {
            let mut tasks = Vec::new();
            let step = self.locked(|state| {
                let step = state.table.step(id, &state.world)?;
                let row = state.table.by_id(id)?.row().clone();
                match step {
                    Step::Vanish(farewell) => {
                        state.table.bury(id, farewell, &mut tasks);
                        None
                    }
                    Step::Rest => None,
                    step => Some((step, row)),
                }
            });
            let Some((step, row)) = step else { return self.perform(tasks) };
            // A reply that panics must not keep the pump for ever.
            let taken = AssertUnwindSafe(|| self.take_step(step, &row));
            if let Err(panic) = catch_unwind(taken) {
                tracing::error!(actor_id = %id, panic = panic_text(panic.as_ref()), "a step panicked");
            }
        }
    }

    fn take_step(&self, step: Step<ActorContext, Visit>, row: &Arc<ActorRow>) {
        match step {
            Step::Open(wish) => self.open_generation(row, wish),
            Step::Accept(live, waiter) => self.offer(&live, waiter),
            Step::Sleep(live) => live.stop(StopReason::Sleep),
            // One that is falling asleep ends as that, and is deleted then.
            Step::Destroy(live) if live.aborted() => {}
            Step::Destroy(live) => live.stop(StopReason::Destroy),
            Step::Delete(last) => self.delete(row, last),
            Step::Found(reply) => Self::found(reply, row),
            Step::Exists(reply) => reply.send(Err(exists(row))),
            Step::Woken(reply) => reply.send(Ok(())),
            Step::Slept(replies) => replies.into_iter().for_each(|reply| reply.send(Ok(()))),
            Step::Refuse(refused, error) => refuse(refused, &error),
            Step::Rest | Step::Vanish(_) => {}
        }
    }

    /// Makes a generation and begins its start.
    fn open_generation(&self, row: &Arc<ActorRow>, wish: EnvironmentId) {
        let place = self.locked(|state| state.places.choose(&row.name, wish));
        let (environment, factory) = match place {
            Ok(place) => place,
            Err(error) => return self.open_failed(row.id, &error.into()),
        };
        let generation = self.store.open_generation(row.number);
        let identity = Identity {
            id: row.id,
            number: row.number,
            name: row.name.clone(),
            key: row.key.clone(),
            region: self.region.clone(),
            generation,
        };
        let by = Arc::clone(&factory);
        let live = match catch_unwind(AssertUnwindSafe(|| self.attach(identity, factory))) {
            Ok(live) => live,
            Err(panic) => {
                self.store.revoke(row.number, generation);
                let text = panic_text(panic.as_ref());
                tracing::error!(actor_id = %row.id, panic = text, "a factory panicked");
                let error = Error::internal(format_args!("panic: {text}"));
                return self.open_failed(row.id, &error);
            }
        };
        // Known before it starts, so that its first word finds its entry.
        let (is_wanted, has_place, is_shut, is_outdated) = self.locked(|state| {
            let opened =
                state.table.change(row.id, |entry| entry.opened(live.clone(), environment));
            (
                opened == Some(true),
                state.places.has(environment),
                state.world.shut_down.is_some(),
                state.places.is_outdated(environment, &row.name, &by),
            )
        });
        if !is_wanted {
            self.store.revoke(row.number, generation);
            return live.break_generation(HostError::ShutDown.into());
        }
        self.begin_start(&live);
        if !has_place {
            live.break_generation(HostError::EnvironmentGone { environment }.into());
        } else if is_shut {
            live.stop(StopReason::Sleep);
        } else if is_outdated {
            live.evict();
        }
    }

    fn place_of(&self, number: ActorNumber) -> ActorStoreRef {
        let place = self.store.actor(number);
        match &self.mishaps {
            Some(mishaps) => mishaps.around(place),
            None => place,
        }
    }

    fn attach(&self, identity: Identity, factory: Arc<dyn BehaviorFactory>) -> ActorContext {
        ActorContext::new(ActorParts {
            store: self.place_of(identity.number),
            identity,
            factory,
            host: self.arc() as Arc<dyn Host>,
            runtime: Arc::clone(&self.runtime),
        })
    }

    fn begin_start(&self, live: &ActorContext) {
        let (host, starting, panicked) = (self.arc(), live.clone(), live.clone());
        let start = async move {
            // A failed start has told the host so.
            if starting.start().await.is_ok() {
                host.started(&starting);
            }
        };
        self.runtime.spawner().spawn_guarded("actor start", start, move |text| {
            panicked.break_generation(Error::internal(format_args!("panic: {text}")));
        });
    }

    fn open_failed(&self, id: ActorId, error: &Error) {
        let callers = self.locked(|state| state.table.change(id, |entry| entry.open_failed()));
        for caller in callers.into_iter().flatten() {
            caller.refuse(error.clone());
        }
    }

    /// Deletes a row, tells the generation that did the destroying, then the rest.
    fn delete(&self, row: &Arc<ActorRow>, last: Option<ActorContext>) {
        let (host, panicked, id, number) = (self.arc(), self.arc(), row.id, row.number);
        let answer = self.store.destroy(number);
        let delete = async move {
            let result = answer.await;
            if result.is_ok() {
                // One that slept is destroyed without a generation that would say so.
                host.alarms_change(|alarms| alarms.destroyed(number));
                host.sessions.destroyed(id);
            }
            if let Some(last) = &last {
                last.mark_destruction(result.is_ok());
            }
            host.deleted(id, result.map(drop).map_err(Error::from));
        };
        self.runtime.spawner().spawn_guarded("delete", delete, move |text| {
            panicked.deleted(id, Err(Error::internal(format_args!("panic: {text}"))));
        });
    }

    fn deleted(&self, id: ActorId, result: Result<(), Error>) {
        let refused = self.locked(|state| {
            let refused = state.table.change(id, |entry| entry.deleted(result)).flatten();
            // With some errors the row may be gone all the same.
            if refused.is_some() {
                state.table.doubt(id);
            }
            refused
        });
        if let Some((refused, error)) = refused {
            tracing::error!(actor_id = %id, %error, "an actor could not be destroyed");
            refuse(refused, &error);
        }
        self.pump(id);
    }

    /// Asks the directory.
    fn look(&self, look: Look) {
        let Look { target, ticket, create } = look;
        let answer = self.ask(&target, create);
        let (host, panicked, again) = (self.arc(), self.arc(), target.clone());
        let asked = async move { host.looked_up(target, ticket, answer.await) };
        self.runtime.spawner().spawn_guarded("directory look-up", asked, move |text| {
            let error = Error::internal(format_args!("panic: {text}"));
            panicked.looked_up(again, ticket, Err(error));
        });
    }

    fn ask(
        &self,
        target: &Target,
        create: Option<Option<bytes::Bytes>>,
    ) -> impl Future<Output = Result<Seen, Error>> + Send + use<> {
        use futures::future::Either;

        // The question is in the store's queue before this returns, so that the
        // order of questions is that of their callers.
        let found = match (target, create) {
            (Target::Id(id), _) => Either::Left(self.store.find_by_id(*id)),
            (Target::Key(name, key), None) => Either::Left(self.store.find(name, key)),
            (Target::Key(name, key), Some(input)) => Either::Right(self.store.create(NewActor {
                id: self.runtime.ids().actor_id(),
                name: name.clone(),
                key: key.clone(),
                input,
                created_at_ms: self.runtime.clock().unix_ms(),
            })),
        };
        async move {
            let seen: Result<_, StoreError> = match found {
                Either::Left(found) => {
                    found.await.map(|row| row.map_or(Seen::Nobody, Seen::Existing))
                }
                Either::Right(created) => created.await.map(|made| match made.created {
                    true => Seen::Created(made.row),
                    false => Seen::Existing(made.row),
                }),
            };
            seen.map_err(Error::from)
        }
    }

    fn looked_up(&self, target: Target, ticket: u64, answer: Result<Seen, Error>) {
        let mut tasks = Vec::new();
        self.locked(|state| state.table.looked_up(target, ticket, answer, &mut tasks));
        self.perform(tasks);
    }
}

fn exists(row: &ActorRow) -> Error {
    let (name, key) = (row.name.clone(), row.key.clone());
    HostError::AlreadyExists { name, key, id: row.id }.into()
}

/// Answers everybody with the error.
pub(super) fn refuse(refused: Refused<Visit>, error: &Error) {
    for reply in refused.destroyers {
        reply.send(Err(error.clone()));
    }
    for waiter in refused.waiters {
        waiter.refuse(error.clone());
    }
}
