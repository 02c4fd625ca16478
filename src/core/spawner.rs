//! The only way to begin a task: owned, and guarded against panics.
//!
//! # Invariants
//!
//! 1. A panic in a task is logged and ends that task alone.
//! 2. Where tasks run only when somebody lets them, that one is told whenever one has
//!    something to do: after it has, so that whoever looks then finds it.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Begins tasks on one tokio runtime and keeps count of them.
#[derive(Clone)]
pub struct Spawner {
    handle: Handle,
    tasks: TaskTracker,
    stirred: Option<Stirred>,
}

/// Called when a task has something to do (invariant 2). Must not block.
type Stirred = Arc<dyn Fn() + Send + Sync>;

impl Spawner {
    /// Begins tasks on the runtime of `handle`.
    pub fn new(handle: Handle) -> Self {
        Self { handle, tasks: TaskTracker::new(), stirred: None }
    }

    /// Begins tasks on a runtime that runs only when somebody lets it, who is told by
    /// `stirred` when a task has something to do.
    pub fn watched(handle: Handle, stirred: Stirred) -> Self {
        Self { stirred: Some(stirred), ..Self::new(handle) }
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
        // No `async` block, which has room for the future twice.
        let guarded = AssertUnwindSafe(future).catch_unwind().map(move |outcome| {
            if let Err(panic) = outcome {
                let text = panic_text(panic.as_ref());
                tracing::error!(task = label, panic = text, "task panicked");
                panicked(text);
            }
        });
        let Some(stirred) = &self.stirred else {
            return self.tasks.spawn_on(guarded, &self.handle);
        };
        let watched =
            Watched { task: Box::pin(guarded), stirred: Arc::clone(stirred), waker: None };
        let task = self.tasks.spawn_on(watched, &self.handle);
        stirred();
        task
    }

    /// Says that a task has something to do of which its waker knows nothing: it was
    /// aborted.
    pub fn stir(&self) {
        if let Some(stirred) = &self.stirred {
            stirred();
        }
    }

    /// The runtime that the tasks run on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl From<Handle> for Spawner {
    fn from(handle: Handle) -> Self {
        Self::new(handle)
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// A task whose wakers also tell who lets it run.
struct Watched<F> {
    task: F,
    stirred: Stirred,
    /// Kept while the task is polled with the same waker.
    waker: Option<(Waker, Waker)>,
}

impl<F: Future + Unpin> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let (_, told) = match &mut this.waker {
            Some(known) if known.0.will_wake(cx.waker()) => known,
            unknown => {
                let waker = cx.waker().clone();
                let telling = Telling { waker: waker.clone(), stirred: Arc::clone(&this.stirred) };
                unknown.insert((waker, Waker::from(Arc::new(telling))))
            }
        };
        Pin::new(&mut this.task).poll(&mut Context::from_waker(told))
    }
}

struct Telling {
    waker: Waker,
    stirred: Stirred,
}

impl Wake for Telling {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.waker.wake_by_ref();
        (self.stirred)();
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn who_lets_tasks_run_is_told_of_each_that_begins_or_is_woken() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&told);
        let stirred = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let spawner = Spawner::watched(runtime.handle().clone(), stirred);
        let (tell, heard) = tokio::sync::oneshot::channel::<u8>();
        let so_far = || told.load(Ordering::SeqCst);

        let task = spawner.spawn("t", async move { assert_eq!(heard.await, Ok(7)) });
        assert_eq!(so_far(), 1);
        runtime.block_on(tokio::task::yield_now());
        assert_eq!((so_far(), task.is_finished()), (1, false));
        tell.send(7).unwrap();
        assert_eq!((so_far(), task.is_finished()), (2, false));
        runtime.block_on(task).unwrap();
        spawner.stir();

        assert_eq!(so_far(), 3);
    }

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
