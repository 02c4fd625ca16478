//! Actors as files: out of a store, into a store, and all of them at once.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::backup::{self, Backup};
use super::connection::Database;
use super::folder::is_reserved;
use super::job::{Created, Reply};
use super::shared::{SharedStore, received, store_thread};
use super::target::{Existing, Target};
use super::{ActorNumber, NewActor, StoreError};

impl SharedStore {
    /// Copies an actor to `path`, a database file of its own that holds one moment of it.
    /// The actor goes on meanwhile. The copy is there whole and durable, or not at all.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] for an actor that is gone; [`StoreError::Exists`] for a file
    /// that is there and not to be replaced; [`StoreError::Reserved`] for a path of this
    /// store; [`StoreError::Busy`] while another copy is made at `path`; else what the disk
    /// said.
    pub fn export(
        &self,
        number: ActorNumber,
        path: PathBuf,
        existing: Existing,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let (answer, answered) = oneshot::channel();
        let files = Arc::clone(&self.shared.files);
        let store = Arc::clone(&self.shared.database);
        self.on_pool(answered, move || {
            let done = move |result: Result<Option<i64>, StoreError>| {
                drop(answer.send(result.map(drop)));
            };
            match refuse_reserved(&store, &path).and_then(|()| Target::new(path, existing)) {
                Ok(target) => files.export(number, target, Reply::new(Box::new(done))),
                Err(error) => done(Err(error)),
            }
        })
    }

    /// Makes an actor from a copy of one, durably: everything is that one's but the id, the
    /// name, the key and the moment of creation, which `actor` says; its input is not used.
    /// What the actor had begun and not finished, such as a schedule that was due, is found
    /// as after a crash. Returns what has the name and key, if anything has.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotAnActor`], [`StoreError::Corrupt`], [`StoreError::NewerSchema`] and
    /// [`StoreError::Changed`] for the file; [`StoreError::Reserved`] for a path of this
    /// store; else what the disk said. Only with [`StoreError::OutcomeUnknown`] the actor
    /// may exist all the same.
    pub fn import(
        &self,
        path: PathBuf,
        actor: NewActor,
    ) -> BoxFuture<'static, Result<Created, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let files = Arc::clone(&self.shared.files);
        let store = Arc::clone(&self.shared.database);
        self.on_pool(answered, move || {
            let imported = refuse_reserved(&store, &path).and_then(|()| files.import(&path, actor));
            drop(answer.send(imported));
        })
    }

    /// Copies everything into a folder, which is made or must be empty, while work goes on.
    /// A store opens on the copy. Each actor is there as of one moment, and with everything
    /// that was durable when this was called; those that are destroyed meanwhile may be
    /// missing, and so are those that come meanwhile. How far it is, is logged.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotEmpty`]; [`StoreError::Reserved`] for a folder within this store's
    /// own; else what the disk said, or what is wrong with the file of an actor. Nothing is
    /// left in the folder then.
    pub fn backup(&self, folder: PathBuf) -> BoxFuture<'static, Result<Backup, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let made = refuse_reserved(&shared.database, &folder)
                .and_then(|()| backup::make(&shared, &folder));
            drop(answer.send(made));
        };
        // A thread of its own: it waits for the others, which must not wait for it.
        match store_thread("greenroom-backup".to_owned(), run) {
            Ok(_) => received(answered),
            Err(error) => {
                let (path, reason) = (self.shared.database.label(), format!("no thread: {error}"));
                async move { Err(StoreError::Io { path, reason }) }.boxed()
            }
        }
    }

    fn on_pool<T: Send + 'static>(
        &self,
        answered: oneshot::Receiver<Result<T, StoreError>>,
        run: impl FnOnce() + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        match self.shared.files.on_pool(run) {
            Ok(()) => received(answered),
            Err(error) => async move { Err(error) }.boxed(),
        }
    }
}

fn refuse_reserved(store: &Database, path: &std::path::Path) -> Result<(), StoreError> {
    match store {
        Database::File(own) if own.parent().is_some_and(|folder| is_reserved(folder, path)) => {
            Err(StoreError::Reserved { path: path.display().to_string() })
        }
        _ => Ok(()),
    }
}
