//! One actor as the host sees it: a state machine without I/O, locks or time.
//!
//! Events change the state; [`Entry::step`] then says, one step at a time, what
//! is to be done. Whoever holds the entry's *pump* performs the steps, outside
//! the lock, until there is none.
//!
//! # Invariants
//!
//! 1. At most one generation lives: a start begins only from [`State::Asleep`],
//!    and only its own end leads back there.
//! 2. An event of a generation that is not the living one changes nothing.
//! 3. Waiters are served in the order in which they came. One that a generation
//!    refused goes back to the front, and nothing is started, stopped or deleted
//!    while it is in the hands of the pump.
//! 4. An actor is gone only after its row is durably deleted; until then whoever
//!    asks for it waits.

mod step;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

pub(super) use self::step::{Farewell, Refused, Step, StoreStanding, World};
use super::EnvironmentId;
use super::waiter::{Waiter, Want};
use crate::core::behavior::{Reply, StopOutcome};
use crate::ids::Generation;
use crate::store::ActorRow;

/// A living generation.
pub(super) trait Live: Clone {
    /// Which.
    fn generation(&self) -> Generation;
}

/// One actor as the host sees it.
#[derive(Debug)]
pub(super) struct Entry<L, C> {
    row: Arc<ActorRow>,
    state: State<L>,
    /// In the order in which they came (invariant 3).
    waiting: VecDeque<Waiter<C>>,
    /// Those whose destroy has begun.
    destroyers: Vec<Reply<bool>>,
    /// Those whose sleep has begun.
    sleepers: Vec<Reply<()>>,
    /// Whether somebody performs the steps.
    pumped: bool,
}

/// What an actor is at that does not sleep, for those who count.
pub(super) const BUSY: [&str; 4] = ["starting", "running", "stopping", "destroying"];

/// Where an actor is in its life.
#[derive(Debug)]
enum State<L> {
    /// No generation lives.
    Asleep,
    /// A generation is being made.
    Opening,
    /// A generation runs its start.
    Starting(Run<L>),
    /// A generation takes calls, or decides about them itself.
    Running(Run<L>),
    /// A generation that takes no more calls has not ended yet.
    Closing(Run<L>),
    /// No generation lives; the row is to be deleted.
    Condemned(Option<L>),
    /// The row is being deleted.
    Deleting,
    /// The row is durably gone.
    Gone,
}

/// A generation and where it lives.
#[derive(Clone, Debug)]
struct Run<L> {
    live: L,
    environment: EnvironmentId,
    /// Whether the actor itself asked to be destroyed.
    resigned: bool,
    /// Whether its crash was reported.
    crashed: bool,
}

impl<L: Live, C> Entry<L, C> {
    /// An actor that sleeps.
    pub(super) fn new(row: Arc<ActorRow>) -> Self {
        Self {
            row,
            state: State::Asleep,
            waiting: VecDeque::new(),
            destroyers: Vec::new(),
            sleepers: Vec::new(),
            pumped: false,
        }
    }

    /// The actor's row in the directory.
    pub(super) fn row(&self) -> &Arc<ActorRow> {
        &self.row
    }

    /// The generation that lives, in whatever phase.
    pub(super) fn live(&self) -> Option<&L> {
        self.run().map(|run| &run.live)
    }

    /// The environment of the generation that lives.
    pub(super) fn environment(&self) -> Option<EnvironmentId> {
        self.run().map(|run| run.environment)
    }

    /// The generation to which a call may go at once, past nobody who waits.
    pub(super) fn open_to_calls(&self) -> Option<&L> {
        match &self.state {
            State::Running(run) if self.waiting.is_empty() && !self.pumped => Some(&run.live),
            _ => None,
        }
    }

    /// Whether the end of the actor has begun or waits for its turn. Then only
    /// its outcome can tell whether the row is still there.
    pub(super) fn is_doomed(&self) -> bool {
        match &self.state {
            State::Condemned(_) | State::Deleting | State::Gone => true,
            _ => {
                !self.destroyers.is_empty()
                    || self.run().is_some_and(|run| run.resigned)
                    || self.waiting.iter().any(|waiter| matches!(waiter.want, Want::Destroy(_)))
            }
        }
    }

    /// The generation whose end is to be that of the actor.
    pub(super) fn condemned(&self) -> Option<&L> {
        match &self.state {
            State::Condemned(last) => last.as_ref(),
            _ => None,
        }
    }

    /// Whether nothing lives and nobody waits: the entry may be forgotten.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Asleep) && self.waiting.is_empty() && !self.pumped
    }

    /// What it is at, as a place in [`BUSY`]; `None` while it sleeps or is gone.
    pub(super) fn busy(&self) -> Option<usize> {
        match &self.state {
            State::Asleep | State::Gone => None,
            State::Opening | State::Starting(_) => Some(0),
            State::Running(_) => Some(1),
            State::Closing(_) => Some(2),
            State::Condemned(_) | State::Deleting => Some(3),
        }
    }

    /// Somebody comes.
    pub(super) fn enqueue(&mut self, waiter: Waiter<C>) {
        self.waiting.push_back(waiter);
    }

    /// Takes the pump; `false` when somebody has it, who will see what changed.
    pub(super) fn take_pump(&mut self) -> bool {
        !std::mem::replace(&mut self.pumped, true)
    }

    /// The generation was made, in this environment. `false` when nobody asked
    /// for one: it is to be dropped.
    pub(super) fn opened(&mut self, live: L, environment: EnvironmentId) -> bool {
        if !matches!(self.state, State::Opening) {
            return false;
        }
        self.state = State::Starting(Run { live, environment, resigned: false, crashed: false });
        true
    }

    /// No generation could be made. Those who wait for it are to hear why.
    #[must_use]
    pub(super) fn open_failed(&mut self) -> Vec<Waiter<C>> {
        if !matches!(self.state, State::Opening) {
            return Vec::new();
        }
        self.state = State::Asleep;
        self.take_callers()
    }

    /// The start succeeded.
    pub(super) fn started(&mut self, generation: Generation) {
        if let State::Starting(run) = &self.state
            && run.live.generation() == generation
        {
            self.state = State::Running(run.clone());
        }
    }

    /// The generation refused a call: it takes no more of them. The call goes
    /// back to the front (invariant 3).
    pub(super) fn refused(&mut self, generation: Generation, waiter: Waiter<C>) {
        self.waiting.push_front(waiter);
        if self.is_live(generation) {
            self.close();
        }
    }

    /// The actor asked to be destroyed. `false` when an older generation did.
    pub(super) fn resign(&mut self, generation: Generation) -> bool {
        let Some(run) = self.run_mut(generation) else { return false };
        run.resigned = true;
        self.close();
        true
    }

    /// The actor asked to sleep because it crashed. `true` the first time in a
    /// generation: the crash is to be reported.
    pub(super) fn crash(&mut self, generation: Generation) -> bool {
        self.run_mut(generation).is_some_and(|run| !std::mem::replace(&mut run.crashed, true))
    }

    /// A generation ended; `None` when it was not the living one (invariant 2).
    /// Returns those whose start it was, when it failed; unless `keep_callers`,
    /// for whom another start will do.
    pub(super) fn ended(
        &mut self,
        generation: Generation,
        outcome: &StopOutcome,
        keep_callers: bool,
    ) -> Option<Vec<Waiter<C>>> {
        if !self.is_live(generation) {
            return None;
        }
        let was_starting = matches!(self.state, State::Starting(_));
        let (State::Starting(run) | State::Running(run) | State::Closing(run)) =
            std::mem::replace(&mut self.state, State::Asleep)
        else {
            unreachable!("the living generation is in one of these");
        };
        let is_broken = matches!(outcome, StopOutcome::Broken(_));
        let failed =
            was_starting && matches!(outcome, StopOutcome::StartFailed(_) | StopOutcome::Broken(_));
        let callers = if failed && !keep_callers { self.take_callers() } else { Vec::new() };
        // What a broken generation wanted for itself is void with its memory;
        // what others want of the actor is not.
        if *outcome == StopOutcome::Destroyed
            || !self.destroyers.is_empty()
            || (run.resigned && !is_broken)
        {
            self.state = State::Condemned(Some(run.live));
        }
        Some(callers)
    }

    /// The delete ended. After a failure the actor sleeps and may be started or
    /// destroyed again; everybody who waited for the delete is returned.
    pub(super) fn deleted<E>(&mut self, result: Result<(), E>) -> Option<(Refused<C>, E)> {
        if !matches!(self.state, State::Deleting) {
            return None;
        }
        match result {
            Ok(()) => {
                self.state = State::Gone;
                None
            }
            Err(error) => {
                self.state = State::Asleep;
                Some((self.dismiss_all(), error))
            }
        }
    }

    /// The calls that wait for a start, up to the first destroy: those behind it
    /// wait for another actor, or for nobody.
    fn take_callers(&mut self) -> Vec<Waiter<C>> {
        let before_destroy = self
            .waiting
            .iter()
            .position(|waiter| matches!(waiter.want, Want::Destroy(_)))
            .unwrap_or(self.waiting.len());
        let behind = self.waiting.split_off(before_destroy);
        let (callers, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiter| waiter.want.starts());
        self.waiting = others.into_iter().chain(behind).collect();
        callers
    }

    fn close(&mut self) {
        if let State::Running(run) = &self.state {
            self.state = State::Closing(run.clone());
        }
    }

    fn run(&self) -> Option<&Run<L>> {
        match &self.state {
            State::Starting(run) | State::Running(run) | State::Closing(run) => Some(run),
            _ => None,
        }
    }

    fn run_mut(&mut self, generation: Generation) -> Option<&mut Run<L>> {
        match &mut self.state {
            State::Starting(run) | State::Running(run) | State::Closing(run)
                if run.live.generation() == generation =>
            {
                Some(run)
            }
            _ => None,
        }
    }

    /// Whether it is this generation that lives.
    pub(super) fn is_live(&self, generation: Generation) -> bool {
        self.live().is_some_and(|live| live.generation() == generation)
    }
}
