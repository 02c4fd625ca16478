//! The author's side of actors whose code is JavaScript: every event becomes a
//! job of the environment that registered them.
//!
//! # Invariants
//!
//! 1. Events keep their order, since the hub does.
//! 2. An event for an environment that is gone breaks the generation, which
//!    answers everything that is open: nothing waits for JavaScript that is no more.
//! 3. The context that is kept for invariant 2 goes with the last event, so
//!    that the generation and its behavior do not keep each other alive.
//! 4. JavaScript hears of the end of a registration after the last start by it:
//!    whoever makes a generation holds the factory until that is queued.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::application::ask;
use super::connections::request_json;
use super::env::next_number;
use super::error::environment_gone;
use super::factory::FactoryParts;
use super::hub::Hub;
use super::job::{Job, OverAction, Whom};
use super::{cancel, origin};
use crate::core::behavior::{
    ActorEvent, Behavior, BehaviorFactory, CallId, Hooks, Reply, call_given_up,
};
use crate::core::config::ActorConfig;
use crate::core::connections::RequestHead;
use crate::core::context::ActorContext;
use crate::error::Result;

/// One type of actors, as an environment registered it.
pub(super) struct NodeFactory {
    hub: Arc<Hub>,
    /// The number under which JavaScript keeps the author's functions.
    factory: u64,
    config: Arc<ActorConfig>,
    hooks: Hooks,
    /// Whether it is asked of each raw socket whether that outlives a sleep.
    chooses: bool,
}

impl NodeFactory {
    /// A type whose functions `hub`'s environment keeps.
    pub(super) fn new(hub: Arc<Hub>, parts: FactoryParts) -> Self {
        let FactoryParts { factory, config, hooks, chooses } = parts;
        Self { hub, factory, config, hooks, chooses }
    }
}

impl BehaviorFactory for NodeFactory {
    fn config(&self) -> &Arc<ActorConfig> {
        &self.config
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn attach(&self, context: ActorContext) -> Arc<dyn Behavior> {
        let actor = next_number();
        let start = Job::Start { actor, factory: self.factory, context: context.clone() };
        // Refused by a hub that is dead; the first event finds out (invariant 2).
        drop(self.hub.push(start));
        Arc::new(NodeBehavior {
            hub: Arc::clone(&self.hub),
            actor,
            context: Mutex::new(Some(context)),
        })
    }

    fn hibernates(&self, request: &RequestHead) -> BoxFuture<'static, Result<bool>> {
        if !self.chooses {
            return std::future::ready(Ok(self.config.can_hibernate_websocket)).boxed();
        }
        let (reply, answered) = Reply::channel();
        let question = Bytes::from(request_json(request));
        let waits = ask(&self.hub, Whom::Factory(self.factory), question, reply);
        let chosen = async move {
            let answer = answered.await?;
            drop(waits);
            Ok(answer.first() == Some(&1))
        };
        chosen.boxed()
    }
}

impl Drop for NodeFactory {
    fn drop(&mut self) {
        // Refused by a hub that is dead: its JavaScript keeps nothing any more.
        drop(self.hub.push(Job::Forgotten { factory: self.factory }));
    }
}

/// One generation.
struct NodeBehavior {
    hub: Arc<Hub>,
    actor: u64,
    /// Emptied by the last event (invariant 3).
    context: Mutex<Option<ActorContext>>,
}

impl Behavior for NodeBehavior {
    fn deliver(&self, event: ActorEvent) {
        let last = matches!(event, ActorEvent::Stopped(_));
        let call = match &event {
            ActorEvent::Action { call, origin, .. } => Some((*call, *origin)),
            _ => None,
        };
        if let Some((call, origin)) = call
            && self.skip_given_up(call, origin)
        {
            return;
        }
        let job = self.job(event);
        if let Err(refused) = self.hub.push(job) {
            refused.refuse();
            let context = self.context.lock().take();
            if let (Some(context), false) = (context, last) {
                context.break_generation(environment_gone());
            }
        } else if last {
            let context = self.context.lock().take();
            drop(context);
        } else if let Some((call, origin)) = call {
            self.delivered(call, origin);
        }
    }

    fn number(&self) -> u64 {
        self.actor
    }
}

impl NodeBehavior {
    /// Ends a call that its caller has given up already, without running it.
    fn skip_given_up(&self, call: CallId, origin: u64) -> bool {
        if !cancel::is_watching() || !cancel::is_given_up(origin) {
            return false;
        }
        let context = self.context.lock().clone();
        if let Some(context) = context {
            context.finish_call(call, Err(call_given_up()));
        }
        true
    }

    /// Tells a caller that may give up where its call is.
    fn delivered(&self, call: CallId, origin: u64) {
        if !cancel::is_watching() {
            return;
        }
        let context = self.context.lock().clone();
        if let Some(context) = context {
            cancel::delivered(origin, &context, call);
        }
    }

    /// What JavaScript is to do.
    fn job(&self, event: ActorEvent) -> Job {
        let actor = self.actor;
        match event {
            ActorEvent::Hook { hook, reply } => Job::Hook { actor, hook, reply },
            ActorEvent::Connection { hook, connection, reply } => {
                Job::Connection { actor, hook, connection, reply }
            }
            ActorEvent::Run { reply } => Job::Run { actor, reply },
            ActorEvent::Action { call, name, args, fire: Some(fire), .. } => {
                Job::Fired { actor, call, name, args, fire: Box::new(fire) }
            }
            ActorEvent::Action { call, name, args, caller, origin, connection, fire: None } => {
                let origin = origin::ticket_within(self.hub.environment(), origin);
                match connection {
                    None => Job::Action { actor, call, name, args, caller, origin },
                    Some(connection) => {
                        let action = Box::new(OverAction { call, name, args, caller, origin });
                        Job::Over { actor, connection, action }
                    }
                }
            }
            ActorEvent::BeginHeld { call } => Job::Begin { actor, call },
            ActorEvent::CancelCall { call, timed_out, error } => {
                Job::Cancel { actor, call, timed_out, error }
            }
            ActorEvent::SerializeState { reason, reply } => Job::Serialize { actor, reason, reply },
            ActorEvent::Committed { number, result } => Job::Committed { actor, number, result },
            ActorEvent::Abort(reason) => Job::Abort { actor, reason },
            ActorEvent::DeadlineReached => Job::Deadline { actor },
            ActorEvent::Stopped(outcome) => Job::Stopped { actor, outcome },
        }
    }
}
