//! Tracked work: regions, futures, and their teardown.

use std::sync::Arc;

use greenroom::core::actor::activity::WorkKind;
use greenroom::core::actor::lifecycle::StopReason;
use tokio::sync::oneshot;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_region_ends_on_drop_and_in_a_panic() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let region = actor.begin_region(WorkKind::KeepAwake);
    assert_eq!(actor.keep_awake_count(), 1);
    drop(region);
    assert_eq!(actor.keep_awake_count(), 0);

    let panicking = actor.clone();
    let task = tokio::spawn(async move {
        let _region = panicking.begin_region(WorkKind::KeepAwake);
        assert_eq!(panicking.keep_awake_count(), 1);
        panic!("boom");
    });
    assert!(task.await.is_err());
    assert_eq!(actor.keep_awake_count(), 0);
}

#[tokio::test]
async fn tracked_work_ends_with_its_future_also_when_that_panics() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    actor.spawn_work(WorkKind::KeepAwake, async {});
    actor.spawn_work(WorkKind::KeepAwake, async { panic!("boom") });
    assert_eq!(actor.keep_awake_count(), 2);
    fixture.settle().await;

    assert_eq!(actor.keep_awake_count(), 0);
    assert!(actor.holds().is_empty());
}

#[tokio::test]
async fn a_tracked_future_holds_nothing_before_it_is_polled() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let mut work = Box::pin(actor.keep_awake(std::future::pending::<()>()));
    assert_eq!(actor.keep_awake_count(), 0);

    assert!(futures::poll!(&mut work).is_pending());
    assert_eq!(actor.keep_awake_count(), 1);
    drop(work);

    assert_eq!(actor.keep_awake_count(), 0);
}

#[tokio::test]
async fn work_that_comes_after_the_teardown_is_dropped_unrun() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    let alive = Arc::new(());
    let (ran, mut was_run) = oneshot::channel::<()>();

    let held = Arc::clone(&alive);
    actor.wait_until(async move {
        let _held = held;
        ran.send(()).unwrap();
    });
    fixture.settle().await;

    assert_eq!(Arc::strong_count(&alive), 1);
    assert!(was_run.try_recv().is_err());
    assert!(actor.holds().is_empty());
}

#[tokio::test]
async fn the_runtimes_own_work_is_joined_and_not_cut_off() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (end, ended) = oneshot::channel::<()>();
    actor.spawn_work(WorkKind::InternalKeepAwake, async move { drop(ended.await) });

    actor.stop(StopReason::Destroy);
    fixture.advance_ms(15_000).await;
    assert!(actor.shutdown_deadline().is_cancelled());
    assert!(fixture.host.outcomes.lock().is_empty(), "it is waited for");
    end.send(()).unwrap();
    fixture.settle().await;

    assert_eq!(fixture.host.outcomes.lock().len(), 1);
}

#[tokio::test]
async fn waiting_for_tracked_work_tells_whether_it_drained_in_time() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    assert!(actor.wait_for_tracked_work().await);

    let (end, ended) = oneshot::channel::<()>();
    actor.wait_until(async move { drop(ended.await) });
    let waiting = actor.clone();
    let drained = tokio::spawn(async move { waiting.wait_for_tracked_work().await });
    fixture.settle().await;
    assert!(!drained.is_finished());
    end.send(()).unwrap();
    assert!(drained.await.unwrap());

    let region = actor.begin_region(WorkKind::WebSocketCallback);
    let waiting = actor.clone();
    let drained = tokio::spawn(async move { waiting.wait_for_tracked_work().await });
    actor.stop(StopReason::Sleep);
    fixture.advance_ms(15_000).await;
    assert!(!drained.await.unwrap());
    drop(region);
}

#[tokio::test]
async fn a_handle_that_is_dropped_leaves_nothing_behind() {
    let fixture = Fixture::new().await;
    let before = Arc::strong_count(&fixture.runtime);
    let actor = fixture.started().await;
    actor.request_save(Default::default());
    actor.wait_until(std::future::pending());
    assert!(Arc::strong_count(&fixture.runtime) > before);

    actor.stop(StopReason::Sleep);
    fixture.advance_ms(15_000).await;
    drop(actor);
    fixture.settle().await;

    assert_eq!(Arc::strong_count(&fixture.runtime), before);
}

#[tokio::test]
async fn many_short_tasks_leave_nothing_to_wait_for() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    for _ in 0..50 {
        actor.spawn_work(WorkKind::RegisteredTask, async {});
    }
    fixture.settle().await;
    assert!(actor.holds().is_empty());
    let (end, ended) = oneshot::channel::<()>();
    actor.spawn_work(WorkKind::RegisteredTask, async move { drop(ended.await) });

    assert_eq!(actor.holds().len(), 1);
    end.send(()).unwrap();
    assert!(actor.wait_for_tracked_work().await);
}
