//! Looking at actors from outside, and ending them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::calls::Address;
use super::entry;
use super::waiter::Want;
use super::{EmbeddedHost, EnvironmentId};
use crate::core::actor::activity::Hold;
use crate::core::actor::callback_timed_out;
use crate::core::behavior::Reply;
use crate::core::config::ActorConfig;
use crate::core::connections::RequestHead;
use crate::error::Error;
use crate::ids::{ActorId, ActorName, Generation};
use crate::store::{ActorNumber, ActorRow, ListFilter, StoreStats};

/// An actor in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its row.
    pub row: ActorRow,
    /// Whether a generation of it lives.
    pub awake: bool,
}

/// What the host knows of one actor.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorReport {
    /// Its row.
    pub row: ActorRow,
    /// The generation that lives; `None` when it sleeps.
    pub generation: Option<Generation>,
    /// Everything that keeps it awake.
    pub holds: Vec<Hold>,
}

impl EmbeddedHost {
    /// The actors that the filter asks for, in the order of their creation. The
    /// number of the last one is the cursor of the next page
    /// ([`ListFilter::after`]).
    ///
    /// # Errors
    ///
    /// `storage/*`.
    pub fn list(
        &self,
        filter: ListFilter,
    ) -> impl Future<Output = Result<Vec<Listed>, Error>> + Send + use<> {
        let rows = self.store.list(filter);
        let host = self.arc();
        async move {
            let rows = rows.await?;
            let state = host.state.lock();
            let listed = |row: ActorRow| {
                let entry = state.table.by_id(row.id);
                let awake = entry.is_some_and(|entry| entry.live().is_some());
                Listed { row, awake }
            };
            Ok(rows.into_iter().map(listed).collect())
        }
    }

    /// The actors of a type, the newest first: at most `limit`, and never more than a
    /// thousand, of those created before `before`.
    ///
    /// # Errors
    ///
    /// `storage/*`.
    pub fn list_newest(
        &self,
        name: ActorName,
        before: Option<ActorNumber>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<ActorRow>, Error>> + Send + use<> {
        let rows = self.store.list_newest(name, before, limit);
        async move { Ok(rows.await?) }
    }

    /// The types of actors that can run, with their settings, by their names.
    pub fn types(&self) -> BTreeMap<ActorName, Arc<ActorConfig>> {
        self.state.lock().places.types()
    }

    /// The settings of a type; `None` if nobody can run it.
    pub fn config(&self, name: &ActorName) -> Option<Arc<ActorConfig>> {
        self.state.lock().places.config(name)
    }

    /// Whether a raw socket of an actor of this type, which came with this request, outlives
    /// sleeps of the actor.
    ///
    /// # Errors
    ///
    /// What the author's choice threw, or `actor/callback_timed_out`.
    pub async fn hibernates_socket(
        &self,
        name: &ActorName,
        request: &RequestHead,
    ) -> Result<bool, Error> {
        let Some(factory) = self.state.lock().places.factory(name) else { return Ok(false) };
        let timeout = factory.config().on_before_connect_timeout;
        tokio::select! {
            biased;
            chosen = factory.hibernates(request) => chosen,
            () = self.runtime.clock().sleep(timeout) => {
                Err(callback_timed_out("can_hibernate_web_socket", timeout))
            }
        }
    }

    /// What the host knows of an actor.
    ///
    /// # Errors
    ///
    /// `actor/not_found`, `registry/shut_down`, `storage/*`.
    pub fn info(
        &self,
        id: ActorId,
    ) -> impl Future<Output = Result<ActorReport, Error>> + Send + use<> {
        let (reply, row) = Reply::channel();
        self.resolve(Address::Id(id), EnvironmentId(0), reply);
        let host = self.arc();
        async move {
            let row = row.await?;
            let live = {
                let state = host.state.lock();
                state.table.by_id(id).and_then(|entry| entry.live().cloned())
            };
            Ok(ActorReport {
                row,
                generation: live.as_ref().map(|live| live.generation()),
                holds: live.map_or_else(Vec::new, |live| live.holds()),
            })
        }
    }

    /// Puts an actor to sleep, and answers when its generation has ended; at once
    /// when it sleeps. Calls submitted before are accepted before.
    ///
    /// Answers `actor/not_found`, `registry/shut_down` or `storage/*`.
    pub fn sleep(&self, id: ActorId, reply: Reply<()>) {
        self.submit(Address::Id(id), EnvironmentId(0), Want::Sleep(reply));
    }

    /// Destroys an actor, and answers when its row is durably gone: `true`, or
    /// `false` when there was none. Calls submitted before are accepted before; a
    /// destroy that meets another one joins it. An actor that sleeps is not
    /// started for it.
    ///
    /// Answers `registry/shut_down`, or `storage/*`: then the actor is still
    /// there, and can be started or destroyed again. Only with
    /// `storage/outcome_unknown` it may be gone all the same.
    pub fn destroy(&self, address: Address, reply: Reply<bool>) {
        let address = match address {
            Address::Key { name, key, .. } => Address::Key { name, key, create: None },
            Address::Id(id) => Address::Id(id),
        };
        self.submit(address, EnvironmentId(0), Want::Destroy(reply));
    }

    /// How many actors do not sleep, by what they are at.
    pub fn busy_by_state(&self) -> BTreeMap<&'static str, usize> {
        let counts = self.state.lock().table.busy();
        entry::BUSY.into_iter().zip(counts).collect()
    }

    /// What the store has done since it was opened.
    pub fn store_stats(&self) -> StoreStats {
        self.store.stats()
    }

    /// How many sleeping actors the host remembers at this moment.
    pub fn remembered(&self) -> usize {
        self.state.lock().table.remembered()
    }
}
