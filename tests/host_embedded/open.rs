//! One folder, one host.

use std::path::Path;
use std::sync::Arc;

use greenroom::host::embedded::{EmbeddedHost, EnvironmentId, OpenOptions};
use greenroom::store::{SharedStore, StoreLocation, StoreOptions};
use greenroom::time::{Clock, Duration, ManualClock};
use tokio::task::yield_now;

use crate::place::{HERE, Place, THERE, call, code, config, counter, get, options, within};
use crate::script::{HOOKS, Script};

fn at(path: &Path, clock: &ManualClock, environment: EnvironmentId, shared: bool) -> OpenOptions {
    let location = StoreLocation::Folder(path.to_owned());
    OpenOptions { environment, shared, ..options(location, clock) }
}

#[tokio::test]
async fn an_environment_that_opens_its_folder_again_gets_the_same_host() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;

    let again = within(EmbeddedHost::open(at(dir.path(), &place.clock, HERE, false))).await;

    assert!(Arc::ptr_eq(&again.unwrap(), &place.host));
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_folder_is_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(&dir.path().join("data")).await;
    std::os::unix::fs::symlink(dir.path().join("data"), dir.path().join("link")).unwrap();

    let link = at(&dir.path().join("link"), &place.clock, HERE, false);

    assert!(Arc::ptr_eq(&within(EmbeddedHost::open(link)).await.unwrap(), &place.host));
}

#[tokio::test]
async fn openings_at_the_same_time_meet_in_one_host() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);
    let open = || EmbeddedHost::open(at(dir.path(), &clock, HERE, false));

    let (a, b, c) = within(async { tokio::join!(open(), open(), open()) }).await;

    let a = a.unwrap();
    assert!(Arc::ptr_eq(&a, &b.unwrap()) && Arc::ptr_eq(&a, &c.unwrap()));
}

#[tokio::test]
async fn another_thread_is_refused_at_once_and_told_whose_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);
    for (first, second) in [(false, false), (true, false), (false, true)] {
        let host = within(EmbeddedHost::open(at(dir.path(), &clock, HERE, first))).await.unwrap();

        let refused = within(EmbeddedHost::open(at(dir.path(), &clock, THERE, second))).await;

        let error = refused.unwrap_err();
        assert!(error.is("storage", "locked"));
        let metadata = error.metadata.as_ref().unwrap();
        assert_eq!(metadata["owner"], "thread 1 of this process");
        assert_eq!(metadata["pid"], std::process::id());
        within(host.shutdown(Duration::ZERO)).await;
    }
}

#[tokio::test]
async fn threads_that_all_say_so_share_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);
    let first = within(EmbeddedHost::open(at(dir.path(), &clock, HERE, true))).await.unwrap();
    let second = within(EmbeddedHost::open(at(dir.path(), &clock, THERE, true))).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));

    first.environment_gone(HERE);
    assert!(!first.is_shut_down(), "the other one still uses it");
    first.environment_gone(THERE);

    assert!(first.is_shut_down());
}

#[tokio::test]
async fn memory_is_never_shared() {
    let clock = Clock::manual(0);
    let open = || {
        let options = OpenOptions { shared: true, ..options(StoreLocation::Memory, &clock) };
        within(EmbeddedHost::open(options))
    };

    assert!(!Arc::ptr_eq(&open().await.unwrap(), &open().await.unwrap()));
}

#[tokio::test]
async fn an_opening_during_a_shutdown_waits_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;
    place.running("a").await;
    place.call(get("a"), "set", "kept").await.unwrap();
    place.script.hold("on_sleep");
    let ended = place.host.shutdown(Duration::from_secs(60));
    place.until(|| place.script.waiting("on_sleep") == 1).await;

    let opening = EmbeddedHost::open(at(dir.path(), &place.clock, HERE, false));
    place.script.release("on_sleep");
    let again = within(opening).await.unwrap();
    within(ended).await;

    assert!(!Arc::ptr_eq(&again, &place.host));
    let script = Script::default();
    again.register(HERE, counter(), script.factory(HOOKS, config()));
    assert_eq!(call(&again, get("a"), HERE, "get", "").await.unwrap(), "kept");
}

#[tokio::test]
async fn a_host_that_is_dropped_frees_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);
    let host = within(EmbeddedHost::open(at(dir.path(), &clock, HERE, false))).await.unwrap();
    drop(host);

    within(EmbeddedHost::open(at(dir.path(), &clock, THERE, false))).await.unwrap();
}

#[tokio::test]
async fn an_opening_that_nobody_waits_for_blocks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);

    drop(EmbeddedHost::open(at(dir.path(), &clock, HERE, false)));

    let opening = EmbeddedHost::open(at(dir.path(), &clock, HERE, false));
    within(advancing(&clock, opening)).await.unwrap();
}

/// Stands for another process: it takes the lock without this library's map.
fn other_process(path: &Path, clock: &ManualClock) -> Arc<SharedStore> {
    let location = StoreLocation::Folder(path.to_owned());
    SharedStore::open(location, StoreOptions::new(clock.clock())).expect("it is free")
}

/// Moves the clock as soon as somebody waits for it, until `opening` ends.
async fn advancing<T>(clock: &ManualClock, opening: impl Future<Output = T>) -> T {
    tokio::pin!(opening);
    loop {
        tokio::select! {
            biased;
            opened = &mut opening => return opened,
            () = yield_now() => {
                if let Some(next) = clock.next_deadline() {
                    clock.advance(next.since(clock.clock().now()));
                }
            }
        }
    }
}

#[tokio::test]
async fn a_folder_of_another_process_is_refused_after_ten_seconds_with_its_pid() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);
    let _other = other_process(dir.path(), &clock);

    let opening = EmbeddedHost::open(at(dir.path(), &clock, HERE, false));
    let error = within(advancing(&clock, opening)).await.unwrap_err();

    assert!(error.is("storage", "locked"));
    assert_eq!(error.metadata.as_ref().unwrap()["pid"], std::process::id());
    assert_eq!(clock.clock().unix_ms(), 10_000);
}

#[tokio::test]
async fn a_folder_that_another_process_frees_in_time_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(0);
    let other = other_process(dir.path(), &clock);
    let opening = EmbeddedHost::open(at(dir.path(), &clock, HERE, false));
    tokio::pin!(opening);
    // It has been refused once when it waits for the clock.
    while clock.next_deadline().is_none() {
        tokio::select! {
            biased;
            opened = &mut opening => panic!("{opened:?}"),
            () = yield_now() => {}
        }
    }

    within(other.close()).await;

    within(advancing(&clock, opening)).await.unwrap();
    assert!(clock.clock().unix_ms() < 10_000);
}

#[tokio::test]
async fn a_folder_that_cannot_be_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let clock = Clock::manual(0);

    let error = within(EmbeddedHost::open(at(&file, &clock, HERE, false))).await.unwrap_err();

    assert!(error.is("storage", "io"), "{error}");
    assert!(error.message.contains("file"), "{error}");
    let refused_again = within(EmbeddedHost::open(at(&file, &clock, HERE, false))).await;
    assert_eq!(code(refused_again.map(drop)), "storage/io");
}
