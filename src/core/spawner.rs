//! The only way to begin a task: owned, and guarded against panics.
//!
//! # Invariants
//!
//! 1. A panic in a task is logged and ends that task alone.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Begins tasks on one tokio runtime and keeps count of them.
#[derive(Clone, Debug)]
pub struct Spawner {
    handle: Handle,
    tasks: TaskTracker,
}

impl Spawner {
    /// Begins tasks on the runtime of `handle`.
    pub fn new(handle: Handle) -> Self {
        Self { handle, tasks: TaskTracker::new() }
    }

    /// Begins a task. Where somebody waits for its outcome, use
    /// [`Spawner::spawn_guarded`].
    pub fn spawn(
        &self,
        label: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        self.spawn_guarded(label, future, |_| {})
    }

    /// Begins a task, and tells `panicked` the text of its panic, if any.
    pub fn spawn_guarded(
        &self,
        label: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
        panicked: impl FnOnce(String) + Send + 'static,
    ) -> JoinHandle<()> {
        let guarded = async move {
            if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
                let text = panic_text(panic.as_ref());
                tracing::error!(task = label, panic = text, "task panicked");
                panicked(text);
            }
        };
        self.tasks.spawn_on(guarded, &self.handle)
    }

    /// The runtime that the tasks run on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_its_task_alone_and_is_told() {
        let spawner = Spawner::new(Handle::current());
        let (tell, told) = tokio::sync::oneshot::channel();

        let task =
            spawner.spawn_guarded("t", async { panic!("boom") }, |text| drop(tell.send(text)));

        assert_eq!(told.await.unwrap(), "boom");
        task.await.unwrap();
    }
}
