//! Many threads at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use greenroom::core::behavior::Reply;
use greenroom::host::embedded::Address;
use greenroom::time::Duration;

use crate::place::{HERE, Place, call, config, counter, get, or_create, within};
use crate::script::HOOKS;

const THREADS: usize = 8;
const CALLS: usize = 25;

/// Has eight threads do this 25 times each, and waits for all the answers.
async fn crowd<F: Future<Output = ()> + Send + 'static>(
    place: &Arc<Place>,
    act: impl Fn(&Place, usize, usize) -> F + Send + Sync + 'static,
) {
    let act = Arc::new(act);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (place, act) = (Arc::clone(place), Arc::clone(&act));
            std::thread::spawn(move || {
                (0..CALLS).map(|n| act(&place, thread, n)).collect::<Vec<_>>()
            })
        })
        .collect();
    let answers: Vec<_> =
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    within(join_all(answers)).await;
}

/// For each thread, the numbers of its calls were accepted in their order.
fn assert_in_order(place: &Place) {
    for thread in 0..THREADS {
        let prefix = format!("echo {thread}:");
        let numbers: Vec<usize> = place
            .script
            .seen(&prefix)
            .iter()
            .map(|seen| seen[prefix.len()..].parse().expect("a number"))
            .collect();
        assert!(numbers.is_sorted(), "thread {thread}: {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_callers_share_one_row_and_one_start() {
    let place = Arc::new(Place::new().await);

    crowd(&place, |place, thread, n| {
        let answer = place.call(or_create("a"), "echo", format!("{thread}:{n}"));
        async move { assert!(answer.await.is_ok()) }
    })
    .await;

    assert_eq!(place.script.contexts().len(), 1);
    assert_eq!(place.script.seen("echo").len(), THREADS * CALLS);
    assert_in_order(&place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sleeps_between_two_hundred_calls_lose_and_reorder_none() {
    let place = Arc::new(Place::new().await);
    let id = place.running("a").await;

    crowd(&place, move |place, thread, n| {
        let slept = (n % 5 == thread % 5).then(|| place.sleep(id));
        let answer = place.call(Address::Id(id), "echo", format!("{thread}:{n}"));
        async move {
            assert!(answer.await.is_ok());
            if let Some(slept) = slept {
                assert!(slept.await.is_ok());
            }
        }
    })
    .await;

    assert_eq!(place.script.seen("echo").len(), THREADS * CALLS + 1);
    assert_eq!(place.script.overlaps(), 0);
    assert_in_order(&place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_between_two_hundred_calls_lose_and_reorder_none() {
    let place = Arc::new(Place::new().await);
    place.running("a").await;

    crowd(&place, move |place, thread, n| {
        if n % 5 == thread % 5 {
            place.host.reload(HERE, counter(), place.script.factory(HOOKS, config()));
        }
        let answer = place.call(get("a"), "echo", format!("{thread}:{n}"));
        async move { assert!(answer.await.is_ok()) }
    })
    .await;

    assert_eq!(place.script.seen("echo").len(), THREADS * CALLS + 1);
    assert_eq!(place.script.overlaps(), 0);
    assert_in_order(&place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_among_destroys_and_sleeps_answer_everybody() {
    let place = Arc::new(Place::new().await);
    let id = place.running("a").await;

    crowd(&place, move |place, thread, n| {
        if n % 5 == thread % 5 {
            place.host.reload(HERE, counter(), place.script.factory(HOOKS, config()));
        }
        let destroys = (n % 7 == thread % 7).then(|| place.destroy(get("a")));
        let slept = (n % 4 == thread % 4).then(|| place.sleep(id));
        let answer = place.call(or_create("a"), "echo", format!("{thread}:{n}"));
        async move {
            if let Err(error) = answer.await {
                assert!(error.is("actor", "stopping"), "{error}");
            }
            if let Some(destroys) = destroys {
                destroys.await.unwrap();
            }
            if let Some(slept) = slept {
                drop(slept.await);
            }
        }
    })
    .await;

    assert_eq!(place.script.overlaps(), 0);
    assert_in_order(&place);
    place.host.reload(HERE, counter(), place.script.factory(HOOKS, config()));
    within(place.host.shutdown(Duration::from_secs(5))).await;
    assert_eq!(place.script.alive(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destroys_among_two_hundred_callers_leave_one_life_at_a_time() {
    let place = Arc::new(Place::new().await);
    let destroyed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&destroyed);

    crowd(&place, move |place, thread, n| {
        let destroys = (n % 6 == thread % 6).then(|| place.destroy(get("a")));
        let answer = place.call(or_create("a"), "echo", format!("{thread}:{n}"));
        let count = Arc::clone(&count);
        async move {
            // Accepted just before its actor was destroyed, or served: never lost.
            if let Err(error) = answer.await {
                assert!(error.is("actor", "stopping"), "{error}");
            }
            if let Some(destroys) = destroys {
                count.fetch_add(usize::from(destroys.await.unwrap()), Ordering::Relaxed);
            }
        }
    })
    .await;

    assert!(destroyed.load(Ordering::Relaxed) > 0);
    assert_eq!(place.script.overlaps(), 0);
    assert_in_order(&place);
    let row = place.resolve(or_create("a")).await.unwrap();
    let log = place.script.log();
    let ended = log.iter().filter(|seen| seen.what == "on_destroy");
    assert!(ended.clone().all(|seen| seen.actor != row.id), "nobody returns from the dead");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handle_by_id_of_a_destroyed_actor_never_reaches_a_later_one() {
    let place = Arc::new(Place::new().await);
    let old = place.running("a").await;

    let host = Arc::clone(&place.host);
    crowd(&place, move |place, thread, n| {
        let destroys = (thread == 0 && n == 3).then(|| place.destroy(get("a")));
        let by_id = call(&host, Address::Id(old), HERE, "echo", format!("{thread}:{n}"));
        let by_key = place.call(or_create("a"), "get", "");
        async move {
            if let Err(error) = by_id.await {
                let known = error.is("actor", "not_found") || error.is("actor", "stopping");
                assert!(known, "{error}");
            }
            drop(by_key.await);
            if let Some(destroys) = destroys {
                assert!(destroys.await.unwrap());
            }
        }
    })
    .await;

    let (reply, gone) = Reply::channel();
    place.host.resolve(Address::Id(old), HERE, reply);
    assert!(within(gone).await.unwrap_err().is("actor", "not_found"));
    let reached = place.script.log();
    assert!(reached.iter().filter(|s| s.what.starts_with("echo")).all(|s| s.actor == old));
}
