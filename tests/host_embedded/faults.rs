//! A store that fails under the host.

use greenroom::core::behavior::Hooks;
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::host::embedded::Address;
use greenroom::store::StoreLocation;
use greenroom::store::faults::{CommitFault, Faults};
use greenroom::time::Clock;

use crate::place::{HERE, Place, code, config, counter, get, options, or_create, within};
use crate::script::HOOKS;

pub async fn faulty(hooks: Hooks) -> (Place, Faults) {
    let dir = tempfile::tempdir().expect("a folder");
    let clock = Clock::manual(1_000_000);
    let faults = Faults::default();
    // The folder outlives its directory entry; nothing is looked up by name again
    // but the database at a reopening.
    let location = StoreLocation::Folder(dir.keep());
    let mut options = options(location, &clock);
    options.store.faults = faults.clone();
    (Place::open_with(options, clock, hooks).await, faults)
}

#[tokio::test]
async fn a_destroy_that_the_directory_refuses_is_told_and_can_be_repeated() {
    let (place, faults) = faulty(HOOKS).await;
    let id = place.running("a").await;
    place.call(get("a"), "set", "kept").await.unwrap();
    place.sleep(id).await.unwrap();
    faults.fail_commits(1, CommitFault::Full);

    let destroyed = place.destroy(get("a"));
    let joined = place.destroy(Address::Id(id));
    let waiting = place.call(or_create("a"), "get", "");

    assert_eq!(code(destroyed.await), "storage/full");
    assert_eq!(code(joined.await), "storage/full");
    assert_eq!(code(waiting.await), "storage/full");
    assert_eq!(place.call(get("a"), "get", "").await.unwrap(), "kept");
    assert!(place.destroy(get("a")).await.unwrap());
    assert_eq!(code(place.resolve(get("a")).await), "actor/not_found");
}

#[tokio::test]
async fn a_generation_whose_row_could_not_be_deleted_was_not_the_end_of_its_actor() {
    let (place, faults) = faulty(HOOKS).await;
    place.running("a").await;
    let last = place.script.newest();
    place.script.hold("on_destroy");
    let destroyed = place.destroy(get("a"));
    place.until(|| place.script.waiting("on_destroy") == 1).await;
    faults.fail_commits(1, CommitFault::Full);

    place.script.release("on_destroy");

    assert_eq!(code(destroyed.await), "storage/full");
    assert!(!within(last.wait_for_destroy_completion()).await);
}

#[tokio::test]
async fn a_generation_that_ends_after_its_store_was_not_the_end_of_its_actor() {
    let (place, faults) = faulty(HOOKS).await;
    place.running("a").await;
    let last = place.script.newest();
    place.running("b").await;
    place.script.hold("on_destroy");
    let destroyed = place.destroy(get("a"));
    place.until(|| place.script.waiting("on_destroy") == 1).await;
    faults.fail_reopens(100);
    faults.fail_commits(1, CommitFault::SyncFailed { kept: false });
    assert_eq!(code(place.call(get("b"), "set", "x").await), "storage/outcome_unknown");
    assert_eq!(code(place.call(get("b"), "get", "").await), "storage/down");

    place.script.release("on_destroy");

    assert_eq!(code(destroyed.await), "storage/down");
    assert!(!within(last.wait_for_destroy_completion()).await);
}

#[tokio::test]
async fn a_creation_that_fails_is_told_and_can_be_repeated() {
    let (place, faults) = faulty(HOOKS).await;
    faults.fail_commits(1, CommitFault::Full);

    let refused = place.resolve(or_create("a")).await;

    assert_eq!(code(refused), "storage/full");
    place.resolve(or_create("a")).await.unwrap();
}

#[tokio::test]
async fn after_an_unknown_outcome_the_actor_starts_from_what_recovery_found() {
    for kept in [true, false] {
        let (place, faults) = faulty(HOOKS).await;
        place.running("a").await;
        place.running("b").await;
        place.call(get("a"), "set", "before").await.unwrap();
        let broken = place.host.live(&get("a")).unwrap().generation();
        faults.fail_commits(1, CommitFault::SyncFailed { kept });

        let unknown = place.call(get("a"), "set", "after").await;
        let state = place.call(get("a"), "get", "").await.unwrap();

        assert_eq!(code(unknown), "storage/outcome_unknown");
        assert_eq!(state, if kept { "after" } else { "before" });
        assert!(place.script.newest().generation() > broken);
        place.call(get("b"), "set", "unharmed").await.unwrap();
        assert_eq!(place.script.overlaps(), 0);
    }
}

/// With durability `interval` a generation outlives a commit that failed for
/// certain, but not one that may have happened.
#[tokio::test]
async fn a_generation_that_the_store_revoked_does_not_live_on() {
    let (place, faults) = faulty(HOOKS).await;
    let interval = ActorConfig { durability: Durability::Interval, ..config() };
    place.host.register(HERE, counter(), place.script.factory(HOOKS, interval));
    place.running("a").await;
    let revoked = place.script.newest();
    faults.fail_commits(1, CommitFault::SyncFailed { kept: false });

    place.call(get("a"), "set", "lost").await.unwrap();
    place.until(|| place.script.alive() == 0).await;

    assert_eq!(place.call(get("a"), "get", "").await.unwrap(), "new", "what create_state makes");
    assert!(place.script.newest().generation() > revoked.generation());
    assert_eq!(place.script.overlaps(), 0);
}

#[tokio::test]
async fn a_store_that_is_down_refuses_starts_with_its_error() {
    let (place, faults) = faulty(HOOKS).await;
    place.running("a").await;
    place.resolve(or_create("b")).await.unwrap();
    faults.fail_reopens(100);
    faults.fail_commits(1, CommitFault::SyncFailed { kept: false });

    let unknown = place.call(get("a"), "set", "x").await;
    assert_eq!(code(unknown), "storage/outcome_unknown");

    assert_eq!(code(place.call(get("a"), "get", "").await), "storage/down");
    assert_eq!(code(place.call(get("b"), "get", "").await), "storage/down");
    assert_eq!(code(place.destroy(get("b")).await), "storage/down");
}

#[tokio::test]
async fn after_a_destroy_of_unknown_outcome_whoever_has_the_key_is_served() {
    for kept in [true, false] {
        let (place, faults) = faulty(HOOKS).await;
        let id = place.running("a").await;
        place.call(get("a"), "set", "kept").await.unwrap();
        place.sleep(id).await.unwrap();
        faults.fail_commits(1, CommitFault::SyncFailed { kept });

        let destroyed = place.destroy(get("a")).await;
        assert_eq!(code(destroyed), "storage/outcome_unknown");

        let state = place.call(or_create("a"), "get", "").await.unwrap();
        assert_eq!(state, if kept { "new" } else { "kept" }, "kept: {kept}");
    }
}
