//! The threads of stores, which know that they are that.

use std::cell::Cell;
use std::thread::JoinHandle;

thread_local! {
    static IS_STORE_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is one.
pub(super) fn is_store_thread() -> bool {
    IS_STORE_THREAD.get()
}

/// Does what a thread of the store would, on this one.
pub(super) fn as_store_thread(work: impl FnOnce()) {
    let before = IS_STORE_THREAD.replace(true);
    work();
    IS_STORE_THREAD.set(before);
}

/// Starts a thread of a store.
pub(super) fn store_thread(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(move || {
        IS_STORE_THREAD.set(true);
        run();
    })
}
