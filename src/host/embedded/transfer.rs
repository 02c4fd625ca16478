//! Actors as files: out of the host, into it, and all of them at once.

use std::path::PathBuf;

use super::calls::Address;
use super::error::HostError;
use super::{EmbeddedHost, EnvironmentId};
use crate::core::behavior::Reply;
use crate::error::Error;
use crate::ids::{ActorId, ActorKey, ActorName};
use crate::store::{ActorRow, Backup, Existing, NewActor};

impl EmbeddedHost {
    /// Copies an actor into a database file of its own, with everything that it has changed
    /// so far, saved or not. It is not started for it, and goes on meanwhile.
    ///
    /// # Errors
    ///
    /// `actor/not_found`; `storage/exists`, `storage/reserved` and `storage/busy` for the
    /// path; `registry/shut_down`; what else the disk says as `storage/*`.
    pub fn export(
        &self,
        id: ActorId,
        path: PathBuf,
        existing: Existing,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (reply, row) = Reply::channel();
        self.resolve(Address::Id(id), EnvironmentId(0), reply);
        let host = self.arc();
        async move {
            let row = row.await?;
            let live = {
                let state = host.state.lock();
                state.table.by_id(id).and_then(|entry| entry.live().cloned())
            };
            if let Some(live) = live {
                match live.flushed().await {
                    Ok(()) => {}
                    Err(error) if error.group == "storage" => return Err(error),
                    // It ended meanwhile, or nothing of it was stored yet.
                    Err(error) => tracing::debug!(actor_id = %id, %error, "copied as it is stored"),
                }
            }
            Ok(host.store.export(row.number, path, existing).await?)
        }
    }

    /// Makes an actor of the type `name` from a copy of one, under a key that is free. It is
    /// not started, unless something of it is due.
    ///
    /// # Errors
    ///
    /// `actor/already_exists`, with the id in the metadata; `actor/not_registered`;
    /// `storage/not_an_actor`, `storage/corrupt`, `storage/newer_schema`, `storage/changed`
    /// and `storage/reserved` for the file; `registry/shut_down`; what else the disk says as
    /// `storage/*`.
    pub fn import(
        &self,
        path: PathBuf,
        name: ActorName,
        key: ActorKey,
    ) -> impl Future<Output = Result<ActorRow, Error>> + Send + use<> {
        let host = self.arc();
        async move {
            host.admits(Some(&name))?;
            let actor = NewActor {
                id: host.runtime.ids().actor_id(),
                name: name.clone(),
                key: key.clone(),
                input: None,
                created_at_ms: host.runtime.clock().unix_ms(),
            };
            let made = host.store.import(path, actor).await?;
            if !made.created {
                return Err(HostError::AlreadyExists { name, key, id: made.row.id }.into());
            }
            let row = made.row;
            // Without an answer it is woken to look for itself.
            let at = host.store.alarm_of(row.number).await;
            let at = at.unwrap_or(Some(host.runtime.clock().unix_ms()));
            host.alarms_change(|alarms| alarms.imported(row.number, row.id, &row.name, at));
            Ok(row)
        }
    }

    /// Copies all actors into a folder, on which a host can be opened; see
    /// [`SharedStore::backup`](crate::store::SharedStore::backup).
    ///
    /// # Errors
    ///
    /// `storage/not_empty` and `storage/reserved` for the folder; `registry/shut_down`; what
    /// else the disk says as `storage/*`.
    pub fn backup(
        &self,
        folder: PathBuf,
    ) -> impl Future<Output = Result<Backup, Error>> + Send + use<> {
        let host = self.arc();
        async move {
            host.admits(None)?;
            Ok(host.store.backup(folder).await?)
        }
    }

    /// Whether work is let in, for actors of this type.
    fn admits(&self, name: Option<&ActorName>) -> Result<(), Error> {
        let state = self.state.lock();
        match (&state.world.shut_down, name) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(name)) if !state.places.can_run(name) => {
                Err(HostError::NotRegistered { name: name.clone() }.into())
            }
            (None, _) => Ok(()),
        }
    }
}
