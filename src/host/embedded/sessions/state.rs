//! A session as a state machine without I/O (see the parent module for its picture).

use std::collections::VecDeque;

use super::message::{Farewell, Message, over, overloaded};
use super::{MAX_WAITING, MAX_WAITING_BYTES};
use crate::core::connections::{ConnHandle, ConnId};
use crate::core::context::ActorContext;
use crate::error::Error;
use crate::ids::{ActorId, Generation};

/// The connection in one generation.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    pub(super) conn: ConnHandle,
    pub(super) live: ActorContext,
}

/// Where a session stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// The hooks run, or a generation is waited for.
    Connecting,
    /// This connection takes what the client sends.
    Joined(Joined),
    /// Its generation is on its way to its end and takes nothing more.
    Leaving(Joined),
    /// No generation has the connection, which is stored.
    Away,
    /// A generation that starts has found the connection.
    Restoring(ActorContext),
    /// It is over.
    Ended,
}

/// What is to be done next, after the unlock.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing; the pump is given back.
    Rest,
    /// Give the connection the message.
    Give(Joined, Message),
    /// Tell the connection that the client has gone.
    Part(Joined, Farewell),
    /// Wake the actor.
    Wake(ActorId),
    /// The client has gone, and no generation knows it.
    Forget(Farewell),
}

/// Everything under the lock of a session.
#[derive(Debug)]
pub(super) struct State {
    stage: Stage,
    /// Set by the first generation that is met.
    pub(super) actor: Option<ActorId>,
    /// Set by the acceptance.
    pub(super) connection: Option<ConnId>,
    waiting: VecDeque<Message>,
    waiting_bytes: usize,
    /// Somebody performs the steps, so that messages keep their order.
    pumped: bool,
    /// The actor is being woken.
    waking: bool,
    /// The client has gone: [`Message::Gone`] is the last that waits.
    gone: bool,
    /// The number of the message that was taken last.
    taken: u16,
    /// There was one: the number comes to 0 again.
    has_taken: bool,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Connecting,
            actor: None,
            connection: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            pumped: false,
            waking: false,
            gone: false,
            taken: 0,
            has_taken: false,
        }
    }

    /// Numbers a message that was taken.
    pub(super) fn note_taken(&mut self) -> u16 {
        self.has_taken = true;
        self.taken = self.taken.wrapping_add(1);
        self.taken
    }

    /// The number of the message that was taken last, if there was one.
    pub(super) fn last_taken(&self) -> Option<u16> {
        self.has_taken.then_some(self.taken)
    }

    pub(super) fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self.stage, Stage::Connecting)
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// The client went itself, after it had a connection.
    pub(super) fn has_gone(&self) -> bool {
        self.gone
    }

    /// Takes a message in. Handed back with why it is not.
    pub(super) fn submit(&mut self, message: Message) -> Result<(), (Error, Message)> {
        if self.is_ended() || self.gone {
            return Err((over(self.connection.as_ref()), message));
        }
        let bytes = self.waiting_bytes + message.weight();
        let is_full = self.waiting.len() >= MAX_WAITING || bytes > MAX_WAITING_BYTES;
        // One alone may be of any size.
        if is_full && !self.waiting.is_empty() {
            return Err((overloaded(), message));
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back(message);
        Ok(())
    }

    /// The client goes. What is left to do at once, where it has no connection yet.
    pub(super) fn go(&mut self) -> Option<Farewell> {
        if self.is_ended() || self.gone {
            return None;
        }
        if self.is_connecting() {
            return self.end();
        }
        self.gone = true;
        self.waiting.push_back(Message::Gone);
        None
    }

    /// Ends it. `None` when it is over already.
    pub(super) fn end(&mut self) -> Option<Farewell> {
        if self.is_ended() {
            return None;
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        self.waiting_bytes = 0;
        Some(Farewell {
            actor: self.actor,
            connection: self.connection.clone(),
            waiting: std::mem::take(&mut self.waiting).into(),
            _stage: Some(stage),
        })
    }

    /// What the holder of the pump does next; `mine` says that the caller holds it.
    pub(super) fn step(&mut self, mine: bool) -> Step {
        if self.pumped && !mine {
            return Step::Rest;
        }
        let step = self.next();
        self.pumped = !matches!(step, Step::Rest);
        if self.waiting.is_empty() {
            // What a crowd needed is given back: most sessions are quiet.
            self.waiting = VecDeque::new();
        }
        step
    }

    fn next(&mut self) -> Step {
        let Some(front) = self.waiting.front() else { return Step::Rest };
        let is_last = matches!(front, Message::Gone);
        match &self.stage {
            Stage::Joined(joined) if !is_last => {
                let joined = joined.clone();
                let Some(message) = self.waiting.pop_front() else { return Step::Rest };
                self.waiting_bytes -= message.weight();
                Step::Give(joined, message)
            }
            Stage::Joined(joined) | Stage::Leaving(joined) if is_last => {
                let joined = joined.clone();
                self.end().map_or(Step::Rest, |farewell| Step::Part(joined, farewell))
            }
            Stage::Away if is_last => self.end().map_or(Step::Rest, Step::Forget),
            Stage::Away if !self.waking => match self.actor {
                Some(actor) => {
                    self.waking = true;
                    Step::Wake(actor)
                }
                None => Step::Rest,
            },
            _ => Step::Rest,
        }
    }

    /// A message was not taken by `joined`: it is the first again of those of the client,
    /// and the generation takes nothing more. Handed back when the session is over.
    pub(super) fn give_back(&mut self, joined: &Joined, message: Message) -> Option<Message> {
        if self.is_ended() {
            return Some(message);
        }
        let is_here = match std::mem::replace(&mut self.stage, Stage::Away) {
            Stage::Joined(is) if is.live.same_generation(&joined.live) => {
                self.stage = Stage::Leaving(is);
                true
            }
            other => {
                self.stage = other;
                false
            }
        };
        if matches!(message, Message::Reopen) && !is_here {
            // The next generation is told anew, or has been.
            return None;
        }
        self.waiting_bytes += message.weight();
        put_back(&mut self.waiting, message);
        None
    }

    /// A generation has the connection: from its hooks, or found again. `false`, and no
    /// change, when something else came before. With `reopens` it is told of that first, if
    /// there is anything to it: where no generation has taken a message, none has had a
    /// connection to speak of.
    pub(super) fn join(&mut self, joined: Joined, reopens: bool) -> bool {
        let may = match &self.stage {
            Stage::Connecting | Stage::Away => true,
            Stage::Restoring(live) => live.same_generation(&joined.live),
            Stage::Joined(_) | Stage::Leaving(_) | Stage::Ended => false,
        };
        if may {
            self.stage = Stage::Joined(joined);
            self.waking = false;
            if reopens && self.has_taken {
                self.waiting.push_front(Message::Reopen);
            }
        }
        may
    }

    /// A generation that starts has found the stored connection; returns what is to be
    /// dropped after the unlock. `None`: nobody is there any more.
    pub(super) fn restore(&mut self, live: &ActorContext) -> Option<Stage> {
        let is_alone = matches!(self.waiting.front(), Some(Message::Gone));
        if self.is_ended() || is_alone || self.connection.is_none() {
            return None;
        }
        Some(std::mem::replace(&mut self.stage, Stage::Restoring(live.clone())))
    }

    /// The hooks have ended well, but their generation is over: the connection is stored.
    pub(super) fn outlive(&mut self) {
        if self.is_connecting() {
            self.stage = Stage::Away;
        }
    }

    /// A generation is over; returns what is to be dropped after the unlock.
    pub(super) fn parted(&mut self, generation: Generation) -> Option<Stage> {
        let was_in = match &self.stage {
            Stage::Joined(joined) | Stage::Leaving(joined) => joined.live.generation(),
            Stage::Restoring(live) => live.generation(),
            Stage::Connecting | Stage::Away | Stage::Ended => return None,
        };
        if was_in != generation {
            return None;
        }
        // The next one is told anew, and nobody is woken for that.
        if matches!(self.waiting.front(), Some(Message::Reopen)) {
            self.waiting.pop_front();
        }
        Some(std::mem::replace(&mut self.stage, Stage::Away))
    }

    /// A generation has started. Whether the session is to look for its connection there:
    /// also where the start did not find it, so that the client hears that it is lost.
    pub(super) fn looks_in(&mut self, live: &ActorContext) -> bool {
        if matches!(self.stage, Stage::Away) {
            self.stage = Stage::Restoring(live.clone());
        }
        matches!(&self.stage, Stage::Restoring(is) if is.same_generation(live))
    }

    /// The actor was woken. Whether the session is still away, so that it has to look for
    /// its connection itself.
    pub(super) fn woken(&mut self, live: &ActorContext) -> bool {
        self.waking = false;
        let is_away = matches!(self.stage, Stage::Away);
        if is_away {
            self.stage = Stage::Restoring(live.clone());
        }
        is_away
    }

    /// The actor could not be woken: those who wait are to hear why.
    pub(super) fn not_woken(&mut self) -> Vec<Message> {
        self.waking = false;
        if !matches!(self.stage, Stage::Away) {
            return Vec::new();
        }
        self.waiting_bytes = 0;
        let mut waiting: Vec<_> = std::mem::take(&mut self.waiting).into();
        // It is the last, if it is there.
        self.waiting = waiting.pop_if(|last| matches!(last, Message::Gone)).into_iter().collect();
        waiting
    }
}

/// Puts a message in front of those of the client, but behind what a generation is told of
/// its own.
fn put_back(waiting: &mut VecDeque<Message>, message: Message) {
    let is_told = matches!(waiting.front(), Some(Message::Reopen));
    waiting.insert(usize::from(is_told), message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::behavior::Reply;

    fn said(event: &str) -> Message {
        Message::Subscribe { event: event.to_owned(), wanted: true, reply: Reply::new(drop) }
    }

    #[test]
    fn a_message_that_is_given_back_stays_behind_what_the_generation_is_told_first() {
        for told in [false, true] {
            let mut waiting = VecDeque::from_iter(told.then_some(Message::Reopen));
            waiting.push_back(said("second"));

            put_back(&mut waiting, said("first"));

            let order: Vec<_> = waiting
                .iter()
                .map(|message| match message {
                    Message::Subscribe { event, .. } => event.as_str(),
                    _ => "told",
                })
                .collect();
            let expected = ["told", "first", "second"];
            assert_eq!(order, expected[usize::from(!told)..]);
        }
    }

    #[test]
    fn the_number_of_the_last_message_is_known_also_where_it_comes_to_0_again() {
        let mut state = State::new();
        assert_eq!(state.last_taken(), None);

        for _ in 0..=u16::MAX {
            state.note_taken();
        }

        assert_eq!(state.last_taken(), Some(0));
    }
}
