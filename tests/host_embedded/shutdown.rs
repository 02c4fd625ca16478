//! The end of a host.

use futures::future::join_all;
use greenroom::host::embedded::ShutdownReport;
use greenroom::time::Duration;

use crate::place::{Place, code, counter, get, key, or_create, within};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn every_actor_goes_to_sleep_and_is_counted() {
    let place = Place::new().await;
    for key in ["a", "b", "c"] {
        place.running(key).await;
    }

    let report = within(place.host.shutdown(MINUTE)).await;

    assert_eq!(report, ShutdownReport { drained: 3, not_drained: Vec::new() });
    assert_eq!(place.script.count("on_sleep"), 3);
    assert_eq!(place.script.alive(), 0);
}

#[tokio::test]
async fn nothing_is_taken_after_it() {
    let place = Place::new().await;
    let id = place.running("a").await;
    within(place.host.shutdown(MINUTE)).await;

    assert_eq!(code(place.call(get("a"), "echo", "").await), "registry/shut_down");
    assert_eq!(code(place.resolve(or_create("b")).await), "registry/shut_down");
    assert_eq!(code(place.destroy(get("a")).await), "registry/shut_down");
    assert_eq!(code(place.sleep(id).await), "registry/shut_down");
}

#[tokio::test]
async fn an_actor_that_still_falls_asleep_takes_no_more_calls() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("on_sleep");
    let report = place.host.shutdown(MINUTE);
    place.until(|| place.script.waiting("on_sleep") == 1).await;

    assert!(place.host.live(&get("a")).is_none());
    assert_eq!(code(place.call(get("a"), "echo", "").await), "registry/shut_down");

    place.script.release("on_sleep");
    within(report).await;
}

#[tokio::test]
async fn those_who_wait_are_told_and_what_runs_may_finish() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("hold");
    let running = place.call(get("a"), "hold", "done");
    place.script.hold("on_wake");
    let waiting: Vec<_> = (0..3).map(|_| place.call(or_create("b"), "echo", "")).collect();
    place.until(|| place.script.waiting("on_wake") == 1).await;

    let report = place.host.shutdown(MINUTE);
    for answer in join_all(waiting).await {
        assert_eq!(code(answer), "registry/shut_down");
    }
    place.script.release("hold");
    place.script.release("on_wake");

    assert_eq!(running.await.unwrap(), "done");
    let report = within(report).await;
    assert_eq!((report.drained, report.not_drained), (2, Vec::new()));
}

#[tokio::test]
async fn what_does_not_end_in_time_is_broken_and_reported_with_its_holds() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.running("b").await;
    place.script.hold("hold");
    let stuck = place.call(get("a"), "hold", "");
    let report = place.host.shutdown(Duration::from_secs(5));
    place.until(|| place.script.alive() == 1).await;

    place.clock.advance(Duration::from_secs(5));
    let report = within(report).await;

    assert_eq!(report.drained, 1);
    let [left] = &report.not_drained[..] else { panic!("{report:?}") };
    assert_eq!((&left.name, &left.key, left.actor_id), (&counter(), &key("a"), id));
    assert!(left.holds.iter().any(|hold| hold.count == 1), "{:?}", left.holds);
    assert_eq!(code(stuck.await), "registry/shut_down");
    assert_eq!(place.script.alive(), 0);
}

#[tokio::test]
async fn a_start_that_hangs_is_broken_at_the_deadline() {
    let place = Place::new().await;
    place.script.hold("on_wake");
    let waiting = place.call(or_create("a"), "echo", "");
    place.until(|| place.script.waiting("on_wake") == 1).await;
    let report = place.host.shutdown(Duration::from_secs(1));
    assert_eq!(code(waiting.await), "registry/shut_down");
    place.settle().await;

    place.clock.advance(Duration::from_secs(1));
    let report = within(report).await;

    assert_eq!(report.not_drained.len(), 1);
    assert_eq!(place.script.alive(), 0);
}

#[tokio::test]
async fn a_second_shutdown_joins_the_first() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("on_sleep");
    let first = place.host.shutdown(MINUTE);
    let second = place.host.shutdown(Duration::ZERO);
    place.meet("on_sleep").await;

    let (first, second) = (within(first).await, within(second).await);
    let third = within(place.host.shutdown(MINUTE)).await;

    assert_eq!(first, ShutdownReport { drained: 1, not_drained: Vec::new() });
    assert_eq!((&second, &third), (&first, &first));
}

#[tokio::test]
async fn a_shutdown_goes_on_when_nobody_waits_for_it() {
    let place = Place::new().await;
    place.running("a").await;

    drop(place.host.shutdown(MINUTE));

    let report = within(place.host.shutdown(MINUTE)).await;
    assert_eq!(report.drained, 1);
}

#[tokio::test]
async fn who_creates_at_that_moment_hears_what_became_of_it() {
    let place = Place::new().await;
    let (reply, created) = greenroom::core::behavior::Reply::channel();
    place.host.create(counter(), key("a"), None, reply);

    let report = place.host.shutdown(MINUTE);

    assert_eq!(within(created).await.unwrap().key, key("a"));
    within(report).await;
}

#[tokio::test]
async fn a_destroy_that_has_begun_is_carried_out() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("on_destroy");
    let destroyed = place.destroy(get("a"));
    place.until(|| place.script.waiting("on_destroy") == 1).await;

    let report = place.host.shutdown(MINUTE);
    place.script.release("on_destroy");

    assert!(destroyed.await.unwrap());
    assert_eq!(within(report).await.not_drained, []);
}
