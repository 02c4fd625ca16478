//! The contract's `CoreRegistry`, as far as it goes without serving: it takes
//! types of actors until it is shut down.

use std::collections::BTreeMap;

use napi::Env;
use napi_derive::napi;
use parking_lot::Mutex;

use super::error::{invalid_state, thrown};
use super::factory::{FactoryParts, NapiActorFactory};
use super::guard::trip;
use crate::ids::ActorName;

/// The types of actors that one program runs.
#[napi]
pub struct CoreRegistry {
    state: Mutex<State>,
}

enum State {
    Registering(BTreeMap<String, FactoryParts>),
    ShutDown,
}

#[napi]
impl CoreRegistry {
    /// A registry without actors.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "it is made from JavaScript only")]
    pub fn new() -> Self {
        trip();
        Self { state: Mutex::new(State::Registering(BTreeMap::new())) }
    }

    /// Adds a type of actors; a second one of the same name replaces the first.
    /// Throws `napi.invalid_state` once it is shut down.
    #[napi(catch_unwind)]
    pub fn register(
        &self,
        env: &Env,
        name: String,
        factory: &NapiActorFactory,
    ) -> napi::Result<()> {
        trip();
        let name = ActorName::new(name).map_err(|error| thrown(env, error))?;
        let refused = match &mut *self.state.lock() {
            State::Registering(types) => {
                types.insert(name.as_str().to_owned(), factory.parts());
                false
            }
            State::ShutDown => true,
        };
        if refused {
            let reason = "already serving or shut down";
            return Err(thrown(env, invalid_state("core registry", reason)));
        }
        Ok(())
    }

    /// The names that are registered, in order.
    #[napi(catch_unwind)]
    pub fn names(&self) -> Vec<String> {
        trip();
        match &*self.state.lock() {
            State::Registering(types) => types.keys().cloned().collect(),
            State::ShutDown => Vec::new(),
        }
    }

    /// Ends it: true the first time. The JavaScript half makes `shutdown` of it.
    #[napi(catch_unwind)]
    pub fn close(&self) -> bool {
        trip();
        let before = std::mem::replace(&mut *self.state.lock(), State::ShutDown);
        matches!(before, State::Registering(_))
    }
}
