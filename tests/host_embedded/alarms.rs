//! Sleeping actors that are woken when what they have to do is due.

use bytes::Bytes;
use futures::future::join_all;
use greenroom::core::schedule::{EverySpec, OneShot, Retry};
use greenroom::error::{Error, ErrorCode};
use greenroom::ids::ActorId;
use greenroom::store::StoreLocation;
use greenroom::time::{Clock, Duration};

use crate::place::{HERE, Place, config, counter, options, or_create, within};
use crate::script::HOOKS;

/// When the clock of a place begins.
const T: i64 = 1_000_000;

/// Has an actor echo `what` at a moment.
async fn ring_at(place: &Place, trigger_at: i64, what: &'static str) {
    let actor = place.script.newest();
    let args = Bytes::from_static(what.as_bytes());
    let shot = OneShot { trigger_at, action: "echo".to_owned(), args, retry: None, key: None };
    let made = actor.schedule().at(shot);
    actor.commit_rows();
    within(made).await.expect("the store has room");
}

/// An actor that sleeps until a moment, at which it echoes `what`.
async fn sleeping(place: &Place, key: &str, trigger_at: i64, what: &'static str) -> ActorId {
    let id = place.running(key).await;
    ring_at(place, trigger_at, what).await;
    place.sleep(id).await.expect("it sleeps");
    id
}

/// Advances the clock, stopping and settling at each deadline on the way.
async fn advance_ms(place: &Place, ms: u64) {
    place.settle().await;
    let mut left = Some(Duration::from_millis(ms));
    while let Some(limit) = left {
        left = place.clock.step(limit);
        place.settle().await;
    }
}

#[tokio::test]
async fn a_sleeping_actor_is_woken_for_its_alarm_and_not_before() {
    let place = Place::new().await;
    sleeping(&place, "a", T + 5_000, "ring").await;

    advance_ms(&place, 4_999).await;
    assert_eq!(place.script.alive(), 0);
    advance_ms(&place, 1).await;

    assert_eq!(place.script.count("echo ring"), 1);
    advance_ms(&place, 120_000).await;
    assert_eq!((place.script.count("echo ring"), place.script.alive()), (1, 0));
    assert_eq!(place.script.contexts().len(), 2, "one start for the call, one for the alarm");
}

#[tokio::test]
async fn of_several_the_earlier_is_woken_first_whoever_slept_last() {
    let place = Place::new().await;
    sleeping(&place, "late", T + 9_000, "late").await;
    sleeping(&place, "early", T + 3_000, "early").await;

    advance_ms(&place, 3_000).await;
    assert_eq!((place.script.count("echo early"), place.script.count("echo late")), (1, 0));
    advance_ms(&place, 6_000).await;

    assert_eq!(place.script.count("echo late"), 1);
}

#[tokio::test]
async fn what_was_due_while_the_process_was_down_fires_with_nobody_calling() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;
    sleeping(&place, "a", T + 5_000, "ring").await;
    within(place.host.shutdown(Duration::from_secs(5))).await;
    drop(place);

    let clock = Clock::manual(T + 86_400_000);
    let options = options(StoreLocation::Folder(dir.path().to_owned()), &clock);
    let place = Place::open_with(options, clock, HOOKS).await;

    place.until(|| place.script.count("echo ring") == 1).await;
}

#[tokio::test]
async fn an_alarm_waits_until_somebody_can_run_its_type() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;
    sleeping(&place, "a", T + 5_000, "ring").await;
    within(place.host.shutdown(Duration::from_secs(5))).await;
    let clock = Clock::manual(T + 6_000);
    let options = options(StoreLocation::Folder(dir.path().to_owned()), &clock);
    let host = within(greenroom::host::embedded::EmbeddedHost::open(options)).await.unwrap();
    let place = Place { clock, host, script: Default::default() };
    advance_ms(&place, 10_000).await;
    assert_eq!(place.script.alive(), 0);

    place.host.register(HERE, counter(), place.script.factory(HOOKS, config()));

    place.until(|| place.script.count("echo ring") == 1).await;
}

#[tokio::test]
async fn an_actor_that_cannot_start_is_tried_again_and_does_not_spin() {
    let place = Place::new().await;
    sleeping(&place, "a", T + 5_000, "ring").await;
    let broken = Error::new(ErrorCode::new("user", "broken"), "not today");
    place.script.fail("on_wake", Some(broken));

    advance_ms(&place, 5_500).await;
    assert_eq!((place.script.count("on_wake"), place.script.alive()), (2, 0));
    place.script.fail("on_wake", None);
    advance_ms(&place, 3_000).await;

    assert_eq!(place.script.count("echo ring"), 1);
}

#[tokio::test]
async fn what_is_due_while_an_actor_falls_asleep_wakes_it_again() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.script.hold("on_sleep");
    let slept = place.sleep(id);
    place.until(|| place.script.waiting("on_sleep") == 1).await;
    ring_at(&place, T + 10, "ring").await;
    advance_ms(&place, 100).await;
    assert_eq!(place.script.count("echo ring"), 0);

    place.script.release("on_sleep");
    slept.await.unwrap();

    place.until(|| place.script.count("echo ring") == 1).await;
    assert_eq!(place.script.overlaps(), 0);
}

#[tokio::test]
async fn a_generation_that_breaks_leaves_its_alarm_to_the_host() {
    let place = Place::new().await;
    place.running("a").await;
    ring_at(&place, T + 5_000, "ring").await;

    place.script.newest().break_generation(Error::internal("a crash"));
    advance_ms(&place, 5_000).await;

    assert_eq!(place.script.count("echo ring"), 1);
}

/// An actor in the middle of the first of two attempts of a scheduled action.
async fn in_an_attempt(place: &Place) -> ActorId {
    let id = place.running("a").await;
    place.script.hold("hold");
    let actor = place.script.newest();
    let made = actor.schedule().at(OneShot {
        trigger_at: T + 5_000,
        action: "hold".to_owned(),
        args: Bytes::new(),
        retry: Some(Retry { max_attempts: 2, initial_ms: Some(100), max_ms: None }),
        key: None,
    });
    actor.commit_rows();
    within(made).await.expect("the store has room");
    advance_ms(place, 5_000).await;
    assert_eq!(place.script.count("hold"), 1);
    id
}

#[tokio::test]
async fn an_attempt_that_a_crash_ended_is_followed_by_the_next_with_nobody_calling() {
    let place = Place::new().await;
    in_an_attempt(&place).await;

    place.script.newest().break_generation(Error::internal("a crash"));
    advance_ms(&place, 2_000).await;
    place.script.release("hold");
    advance_ms(&place, 600_000).await;

    assert_eq!((place.script.count("hold"), place.script.contexts().len()), (2, 2));
    assert_eq!(place.clock.next_deadline(), None, "it is over");
}

#[tokio::test]
async fn an_attempt_that_outlasts_the_grace_period_is_followed_by_the_next() {
    let place = Place::new().await;
    let id = in_an_attempt(&place).await;

    let slept = place.sleep(id);
    advance_ms(&place, 20_000).await;
    slept.await.unwrap();
    place.script.release("hold");
    advance_ms(&place, 600_000).await;

    assert_eq!((place.script.count("hold"), place.script.contexts().len()), (2, 2));
}

#[tokio::test]
async fn a_destroyed_actor_is_woken_no_more() {
    let place = Place::new().await;
    let id = sleeping(&place, "a", T + 5_000, "ring").await;

    assert!(place.destroy(greenroom::host::embedded::Address::Id(id)).await.unwrap());
    advance_ms(&place, 100_000).await;

    assert_eq!(place.script.count("echo ring"), 0);
    assert_eq!(place.script.alive(), 0);
    assert_eq!(place.clock.next_deadline(), None, "nobody waits to try it again");
}

#[tokio::test]
async fn an_interval_wakes_its_actor_again_and_again() {
    let place = Place::new().await;
    let id = place.running("a").await;
    let actor = place.script.newest();
    let set = actor.schedule().cron_every(EverySpec {
        name: "beat".to_owned(),
        interval_ms: 120_000,
        action: "echo".to_owned(),
        args: Bytes::from_static(b"beat"),
        max_history: None,
        retry: None,
    });
    actor.commit_rows();
    within(set).await.unwrap();
    place.sleep(id).await.unwrap();
    drop(actor);

    advance_ms(&place, 600_000).await;

    assert_eq!(place.script.count("echo beat"), 5);
    assert_eq!(place.script.contexts().len(), 6, "it slept between");
}

#[tokio::test]
async fn more_sleep_than_the_host_looks_ahead_and_all_are_woken_in_order() {
    const ACTORS: usize = 1_300;
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;
    let calls = (0..ACTORS).map(|n| place.call(or_create(&n.to_string()), "echo", "x"));
    within(join_all(calls)).await;
    let made = place.script.contexts().into_iter().enumerate().map(|(n, actor)| {
        // Those that were made last are due first, a hundred at a time.
        let trigger_at = T + 10_000 + i64::try_from((ACTORS - 1 - n) / 100).unwrap();
        let args = Bytes::from_static(b"ring");
        let shot = OneShot { trigger_at, action: "echo".to_owned(), args, retry: None, key: None };
        let made = actor.schedule().at(shot);
        actor.commit_rows();
        made
    });
    assert!(within(join_all(made)).await.iter().all(Result::is_ok));
    within(place.host.shutdown(Duration::from_secs(30))).await;
    drop(place);
    let clock = Clock::manual(T + 1);
    let options = options(StoreLocation::Folder(dir.path().to_owned()), &clock);
    let place = Place::open_with(options, clock, HOOKS).await;

    advance_ms(&place, 9_999).await;
    place.until(|| place.script.count("echo ring") == 100).await;
    advance_ms(&place, 20_000).await;

    place.until(|| place.script.count("echo ring") == ACTORS).await;
}

#[tokio::test]
async fn a_hundred_thousand_sleepers_cost_a_start_next_to_nothing() {
    const ACTORS: i64 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;
    sleeping(&place, "a", T + 5_000, "ring").await;
    within(place.host.shutdown(Duration::from_secs(5))).await;
    drop(place);
    let sqlite = rusqlite::Connection::open(dir.path().join("actors.db")).unwrap();
    sqlite
        .execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
             INSERT INTO directory (id, name, key, place, created_at, alarm, alarm_open, generation)
             SELECT randomblob(16), name, CAST('s' || n || char(0, 0) AS BLOB), 0, 0, alarm + 100000 + n, 0, 0
             FROM n, (SELECT name, alarm FROM directory)",
            [ACTORS - 1],
        )
        .unwrap();
    drop(sqlite);

    let clock = Clock::manual(T + 1);
    let options = options(StoreLocation::Folder(dir.path().to_owned()), &clock);
    let began = Clock::system();
    let place = Place::open_with(options, clock, HOOKS).await;
    place.until(|| place.clock.next_deadline().is_some()).await;
    let took = began.now().since(greenroom::time::Instant::START);
    assert!(took < Duration::from_secs(1), "{took:?}");

    advance_ms(&place, 4_998).await;
    assert!(place.script.contexts().is_empty(), "nobody is started before its time");
    advance_ms(&place, 1).await;
    place.until(|| place.script.count("echo ring") == 1).await;
}
