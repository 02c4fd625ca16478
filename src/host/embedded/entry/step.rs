//! What is to be done for an actor next.

use std::collections::VecDeque;

use super::super::EnvironmentId;
use super::super::waiter::{By, Waiter, Want};
use super::{Entry, Live, State};
use crate::core::behavior::Reply;
use crate::error::Error;
use crate::store::ActorRow;

/// What is to be done next.
#[derive(Debug)]
pub(in super::super) enum Step<L, C> {
    /// Nothing; the pump is given back.
    Rest,
    /// Make a generation, then say [`Entry::opened`] or [`Entry::open_failed`].
    Open(EnvironmentId),
    /// Offer the call to the generation; if it refuses, say [`Entry::refused`].
    Accept(L, Waiter<C>),
    /// Ask the generation to sleep.
    Sleep(L),
    /// Ask the generation to destroy itself.
    Destroy(L),
    /// Delete the row, tell the generation that did the destroying, if any, then
    /// say [`Entry::deleted`].
    Delete(Option<L>),
    /// Answer with the row.
    Found(Reply<ActorRow>),
    /// Answer that the actor exists already.
    Exists(Reply<ActorRow>),
    /// Answer that the actor lives.
    Woken(Reply<()>),
    /// Answer that the actor sleeps.
    Slept(Vec<Reply<()>>),
    /// Answer with the error.
    Refuse(Refused<C>, Error),
    /// Forget the entry; see [`Entry::step`] for what becomes of the waiters.
    Vanish(Farewell<C>),
}

/// Those who are to hear an error.
#[derive(Debug)]
pub(in super::super) struct Refused<C> {
    /// Their destroy had begun.
    pub(in super::super) destroyers: Vec<Reply<bool>>,
    /// They still waited.
    pub(in super::super) waiters: Vec<Waiter<C>>,
}

/// What is left of an actor that is gone.
#[derive(Debug)]
pub(in super::super) struct Farewell<C> {
    /// They hear `true`.
    pub(in super::super) destroyers: Vec<Reply<bool>>,
    /// They meant this actor and no later one: `actor/not_found`.
    pub(in super::super) orphans: Vec<Waiter<C>>,
    /// They meant whoever has the key, and the first of them creates it.
    pub(in super::super) heirs: Vec<Waiter<C>>,
}

/// What the surroundings allow.
#[derive(Clone, Debug)]
pub(in super::super) struct World {
    /// Whether starts and deletes may begin.
    pub(in super::super) store: StoreStanding,
    /// Why no new work is taken, once the host shuts down.
    pub(in super::super) shut_down: Option<Error>,
}

/// Whether the store can be worked with.
#[derive(Clone, Debug)]
pub(in super::super) enum StoreStanding {
    /// It can.
    Open,
    /// Not before it is open again.
    Paused,
    /// It failed for good.
    Down(Error),
}

impl<L: Live, C> Entry<L, C> {
    /// What the holder of the pump does next. Gives the pump back with
    /// [`Step::Rest`] and [`Step::Vanish`].
    pub(in super::super) fn step(&mut self, world: &World) -> Step<L, C> {
        if matches!(self.state, State::Gone) {
            return Step::Vanish(self.farewell());
        }
        if !self.sleepers.is_empty() && self.live().is_none() {
            return Step::Slept(std::mem::take(&mut self.sleepers));
        }
        if let Some(error) = &world.shut_down
            && !self.waiting.is_empty()
        {
            return Step::Refuse(self.dismiss_waiting(), error.clone());
        }
        let step = match &self.state {
            State::Asleep => self.step_asleep(world),
            State::Running(run) => {
                let live = run.live.clone();
                self.step_running(live)
            }
            State::Condemned(_) => self.step_condemned(world),
            State::Opening | State::Starting(_) | State::Closing(_) => None,
            State::Deleting | State::Gone => None,
        };
        step.unwrap_or_else(|| {
            self.pumped = false;
            // What a crowd of callers needed is given back: most actors are called rarely.
            if self.waiting.is_empty() {
                self.waiting = VecDeque::new();
            }
            Step::Rest
        })
    }

    fn step_asleep(&mut self, world: &World) -> Option<Step<L, C>> {
        let front = self.waiting.front()?;
        if front.want.starts() || matches!(front.want, Want::Destroy(_)) {
            match &world.store {
                StoreStanding::Open => {}
                StoreStanding::Paused => return None,
                StoreStanding::Down(error) => {
                    return Some(Step::Refuse(self.dismiss_waiting(), error.clone()));
                }
            }
        }
        let environment = front.environment;
        if front.want.starts() {
            self.state = State::Opening;
            return Some(Step::Open(environment));
        }
        match self.waiting.pop_front()?.want {
            Want::Destroy(reply) => {
                self.destroyers.push(reply);
                self.state = State::Condemned(None);
                self.step_condemned(world)
            }
            Want::Sleep(reply) => Some(Step::Slept(vec![reply])),
            Want::Row(reply) => Some(Step::Found(reply)),
            Want::Create(reply) => Some(Step::Exists(reply)),
            Want::Call(_) | Want::Wake(_) => unreachable!("a start has begun above"),
        }
    }

    fn step_running(&mut self, live: L) -> Option<Step<L, C>> {
        let Waiter { by, environment, want } = self.waiting.pop_front()?;
        Some(match want {
            Want::Call(call) => {
                Step::Accept(live, Waiter { by, environment, want: Want::Call(call) })
            }
            Want::Wake(reply) => Step::Woken(reply),
            Want::Row(reply) => Step::Found(reply),
            Want::Create(reply) => Step::Exists(reply),
            Want::Sleep(reply) => {
                // It stays running: a generation takes calls while it falls asleep.
                self.sleepers.push(reply);
                Step::Sleep(live)
            }
            Want::Destroy(reply) => {
                self.destroyers.push(reply);
                self.close();
                Step::Destroy(live)
            }
        })
    }

    fn step_condemned(&mut self, world: &World) -> Option<Step<L, C>> {
        match &world.store {
            StoreStanding::Paused => None,
            StoreStanding::Down(error) => {
                self.state = State::Asleep;
                Some(Step::Refuse(self.dismiss_all(), error.clone()))
            }
            StoreStanding::Open => {
                let State::Condemned(last) = std::mem::replace(&mut self.state, State::Deleting)
                else {
                    unreachable!("asked in this state only");
                };
                Some(Step::Delete(last))
            }
        }
    }

    pub(super) fn dismiss_waiting(&mut self) -> Refused<C> {
        Refused { destroyers: Vec::new(), waiters: self.waiting.drain(..).collect() }
    }

    pub(super) fn dismiss_all(&mut self) -> Refused<C> {
        Refused { destroyers: std::mem::take(&mut self.destroyers), ..self.dismiss_waiting() }
    }

    fn farewell(&mut self) -> Farewell<C> {
        self.pumped = false;
        let mut farewell = Farewell {
            destroyers: std::mem::take(&mut self.destroyers),
            orphans: Vec::new(),
            heirs: Vec::new(),
        };
        for waiter in std::mem::take(&mut self.waiting) {
            let creates = waiter.by.creates() || matches!(waiter.want, Want::Create(_));
            let inherits = creates || !farewell.heirs.is_empty();
            match (waiter.by.clone(), waiter.want) {
                (By::Key(missing), want) if inherits => farewell.heirs.push(Waiter {
                    by: By::Key(missing),
                    environment: waiter.environment,
                    want,
                }),
                (_, Want::Destroy(reply)) => farewell.destroyers.push(reply),
                (by, want) => {
                    farewell.orphans.push(Waiter { by, environment: waiter.environment, want });
                }
            }
        }
        farewell
    }
}
