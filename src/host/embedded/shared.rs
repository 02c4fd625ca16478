//! Which folders this process has open, so that each has one host.
//!
//! # Invariants
//!
//! 1. A path has at most one host, or one opening, or one closing at a time.
//! 2. A host is here until its store is closed: whoever wants the folder of one
//!    that shuts down waits for it.
//!
//! A second copy of this library in the process has a map of its own; the lock
//! file of the folder stands between the two.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{EmbeddedHost, EnvironmentId};
use crate::error::Result;
use crate::store::StoreError;

/// The folders that are open, by their real paths.
static FOLDERS: LazyLock<Mutex<HashMap<PathBuf, Folder>>> = LazyLock::new(Mutex::default);

enum Folder {
    /// Somebody opens it. The receivers end when that is over.
    Opening(watch::Receiver<()>),
    /// It is open, unless the host was dropped.
    Open(Weak<EmbeddedHost>),
}

/// What became of the wish to open a folder.
pub(super) enum Claimed {
    /// It is open, and the environment has joined.
    Open(Arc<EmbeddedHost>),
    /// It is to be opened.
    Mine(Claim),
}

/// The duty to open a folder. Dropped unfulfilled, it lets the next one try.
pub(super) struct Claim {
    path: PathBuf,
    /// Ends the waiting of the others when it is dropped.
    _done: watch::Sender<()>,
    fulfilled: bool,
}

/// What one look at the map says.
enum Look {
    Claimed(Claim),
    Opening(watch::Receiver<()>),
    Open(Arc<EmbeddedHost>),
}

/// Joins the host of a folder, or takes on to open it.
///
/// # Errors
///
/// [`StoreError::Locked`] when another environment has it and one of the two does
/// not share.
pub(super) async fn claim(
    path: &Path,
    environment: EnvironmentId,
    shared: bool,
) -> Result<Claimed> {
    loop {
        let host = match look(path) {
            Look::Claimed(claim) => return Ok(Claimed::Mine(claim)),
            Look::Opening(mut done) => {
                // It ends by the drop of the sender, which is an error here.
                drop(done.changed().await);
                continue;
            }
            Look::Open(host) => host,
        };
        if host.is_shut_down() {
            host.until_ended().await;
            continue;
        }
        let may_join = host.is_used_by(environment) || (shared && host.shared);
        if !may_join {
            return Err(in_use(path, &host).into());
        }
        // It may have begun to shut down since: then its end is waited for.
        if host.join(environment) {
            return Ok(Claimed::Open(host));
        }
    }
}

fn look(path: &Path) -> Look {
    let mut folders = FOLDERS.lock();
    match folders.get(path) {
        Some(Folder::Opening(done)) => return Look::Opening(done.clone()),
        Some(Folder::Open(host)) => {
            if let Some(host) = host.upgrade() {
                return Look::Open(host);
            }
        }
        None => {}
    }
    let (done, opening) = watch::channel(());
    folders.insert(path.to_owned(), Folder::Opening(opening));
    Look::Claimed(Claim { path: path.to_owned(), _done: done, fulfilled: false })
}

fn in_use(path: &Path, host: &EmbeddedHost) -> StoreError {
    let owner = match host.owner() {
        Some(environment) => format!("thread {environment} of this process"),
        None => "this process".to_owned(),
    };
    StoreError::Locked { path: path.display().to_string(), owner, pid: Some(std::process::id()) }
}

impl Claim {
    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder is open.
    pub(super) fn fulfil(mut self, host: &Arc<EmbeddedHost>) {
        self.fulfilled = true;
        FOLDERS.lock().insert(self.path.clone(), Folder::Open(Arc::downgrade(host)));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.fulfilled {
            FOLDERS.lock().remove(&self.path);
        }
    }
}

/// The host's store is closed: the folder may be opened again.
pub(super) fn forget(host: &EmbeddedHost) {
    FOLDERS.lock().retain(|_, folder| match folder {
        Folder::Open(open) => !std::ptr::eq(open.as_ptr(), host),
        Folder::Opening(_) => true,
    });
}

impl Drop for EmbeddedHost {
    fn drop(&mut self) {
        forget(self);
        self.alarm_changed.notify_one();
    }
}
