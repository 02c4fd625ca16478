//! The end of an actor.

use futures::FutureExt;
use futures::future::join_all;
use greenroom::core::actor::lifecycle::Intent;
use greenroom::core::behavior::{Hooks, Reply, StopOutcome};
use greenroom::core::host::Host;
use greenroom::error::Error;
use greenroom::host::embedded::{Address, OpenOptions};
use greenroom::store::StoreLocation;
use greenroom::time::Clock;

use crate::place::{HERE, Place, code, counter, get, key, options, or_create, within};
use crate::script::HOOKS;

#[tokio::test]
async fn a_destroyed_actor_is_gone_and_its_key_is_free() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.call(get("a"), "set", "old").await.unwrap();

    assert!(place.destroy(get("a")).await.unwrap());

    assert_eq!(place.script.count("on_destroy"), 1);
    assert_eq!(code(place.call(get("a"), "echo", "").await), "actor/not_found");
    assert_eq!(code(place.call(Address::Id(id), "echo", "").await), "actor/not_found");
    assert_eq!(place.call(or_create("a"), "get", "").await.unwrap(), "new", "a fresh state");
    assert_ne!(place.resolve(get("a")).await.unwrap().id, id);
}

#[tokio::test]
async fn who_creates_while_an_actor_that_is_known_by_its_id_is_deleted_is_the_creator() {
    let clock = Clock::manual(1_000_000);
    let options = OpenOptions { remembered: 0, ..options(StoreLocation::Memory, &clock) };
    let place = Place::open_with(options, clock, HOOKS).await;
    let old = place.resolve(or_create("a")).await.unwrap().id;
    assert_eq!(place.host.remembered(), 0);
    place.call(Address::Id(old), "echo", "").await.unwrap();
    let destroyed = place.destroy(Address::Id(old));
    while place.script.alive() > 0 {
        tokio::task::yield_now().await;
    }

    let (reply, created) = Reply::channel();
    place.host.create(counter(), key("a"), None, reply);

    let row = within(created).await.unwrap();
    assert_ne!(row.id, old);
    assert!(destroyed.await.unwrap());
}

#[tokio::test]
async fn who_asks_for_an_actor_that_is_being_destroyed_waits_for_the_end() {
    let place = Place::new().await;
    let old = place.running("a").await;
    place.script.hold("on_destroy");
    let destroyed = place.destroy(Address::Id(old));
    place.until(|| place.script.waiting("on_destroy") == 1).await;

    let by_id = place.call(Address::Id(old), "echo", "by id");
    let by_get = place.call(get("a"), "echo", "by get");
    let (reply, row) = Reply::channel();
    place.host.resolve(or_create("a"), HERE, reply);
    let created = place.call(or_create("a"), "echo", "created");
    let by_get_later = place.call(get("a"), "echo", "by get later");
    place.settle().await;
    assert!(place.script.seen("echo by").is_empty() && place.script.count("echo created") == 0);
    assert_eq!(place.script.release("on_destroy"), 1);

    assert!(destroyed.await.unwrap());
    assert_eq!(code(by_id.await), "actor/not_found");
    assert_eq!(code(by_get.await), "actor/not_found");
    let row = within(row).await.unwrap();
    assert_ne!(row.id, old);
    created.await.unwrap();
    by_get_later.await.unwrap();
    assert_eq!(place.script.seen("echo"), ["echo x", "echo created", "echo by get later"]);
    assert_eq!(place.script.overlaps(), 0);
}

#[tokio::test]
async fn creating_while_the_last_one_is_destroyed_waits_and_succeeds() {
    let place = Place::new().await;
    let old = place.running("a").await;
    place.script.hold("on_destroy");
    let destroyed = place.destroy(get("a"));
    place.until(|| place.script.waiting("on_destroy") == 1).await;

    let (reply, created) = Reply::channel();
    place.host.create(counter(), key("a"), None, reply);
    place.script.release("on_destroy");

    assert!(destroyed.await.unwrap());
    assert_ne!(within(created).await.unwrap().id, old);
}

#[tokio::test]
async fn a_sleeping_actor_is_destroyed_without_being_started() {
    let place = Place::new().await;
    let row = place.resolve(or_create("a")).await.unwrap();

    assert!(place.destroy(Address::Id(row.id)).await.unwrap());

    assert!(place.script.log().is_empty());
    assert_eq!(code(place.resolve(get("a")).await), "actor/not_found");
}

#[tokio::test]
async fn there_is_nothing_to_destroy_where_there_is_nobody() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.destroy(get("a")).await.unwrap();

    assert!(!place.destroy(get("a")).await.unwrap());
    assert!(!place.destroy(Address::Id(id)).await.unwrap());
}

#[tokio::test]
async fn destroys_that_meet_join_each_other() {
    let place = Place::new().await;
    let id = place.running("a").await;
    let all = [get("a"), Address::Id(id), get("a")].map(|address| place.destroy(address));

    let answers = join_all(all).await;

    assert!(answers.into_iter().all(|answer| answer.unwrap()));
    assert_eq!(place.script.count("on_destroy"), 1);
}

#[tokio::test]
async fn a_destroy_waits_for_the_start_and_for_the_calls_before_it() {
    let place = Place::new().await;
    place.script.hold("on_wake");
    let before = place.call(or_create("a"), "echo", "before");
    let destroyed = place.destroy(get("a"));
    let after = place.call(get("a"), "echo", "after");
    place.meet("on_wake").await;

    assert_eq!(before.await.unwrap(), "before");
    assert!(destroyed.await.unwrap());
    assert_eq!(code(after.await), "actor/not_found");
    assert_eq!(place.script.count("on_destroy"), 1);
}

#[tokio::test]
async fn a_destroy_follows_a_start_that_fails() {
    let place = Place::new().await;
    place.script.hold("on_wake");
    place.script.fail("on_before_actor_start", Some(greenroom::error::Error::internal("x")));
    let before = place.call(or_create("a"), "echo", "");
    let destroyed = place.destroy(get("a"));
    place.meet("on_wake").await;

    assert_eq!(code(before.await), "core/internal_error");
    assert!(destroyed.await.unwrap());
    assert_eq!(code(place.resolve(get("a")).await), "actor/not_found");
}

#[tokio::test]
async fn an_actor_that_is_past_its_last_save_is_destroyed_when_it_sleeps() {
    let place = Place::with(Hooks { serialize_state: true, ..HOOKS }).await;
    let id = place.running("a").await;
    place.script.hold("serialize");
    let slept = place.sleep(id);
    place.until(|| place.script.waiting("serialize") == 1).await;

    let destroyed = place.destroy(Address::Id(id));
    place.script.release("serialize");

    assert!(destroyed.await.unwrap());
    slept.await.unwrap();
    assert_eq!(code(place.resolve(get("a")).await), "actor/not_found");
}

#[tokio::test]
async fn an_actor_may_destroy_itself_and_is_told_before_anybody_who_waits() {
    let place = Place::new().await;
    let id = place.running("a").await;
    let old = place.script.newest();
    place.script.hold("on_destroy");
    place.call(get("a"), "destroy", "").await.unwrap();
    place.until(|| place.script.waiting("on_destroy") == 1).await;
    let told = old.clone();
    let (reply, joined) = Reply::channel();
    let reply = Reply::new(move |result| {
        let completed = told.wait_for_destroy_completion().now_or_never() == Some(true);
        Reply::send(reply, result.map(|destroyed: bool| (destroyed, completed)));
    });

    place.host.destroy(Address::Id(id), reply);
    place.script.release("on_destroy");

    assert_eq!(within(joined).await.unwrap(), (true, true));
    assert_eq!(code(place.resolve(get("a")).await), "actor/not_found");
}

#[tokio::test]
async fn who_waits_for_the_end_of_an_actor_is_told_when_its_generation_ends_otherwise() {
    let place = Place::new().await;
    place.running("sleeps").await;
    let sleeps = place.script.newest();
    place.running("breaks").await;
    let breaks = place.script.newest();
    assert_eq!(sleeps.wait_for_destroy_completion().now_or_never(), None);

    place.script.hold("on_destroy");
    sleeps.sleep().unwrap();
    breaks.destroy().unwrap();
    breaks.break_generation(Error::internal("boom"));

    assert!(!within(sleeps.wait_for_destroy_completion()).await);
    assert!(!within(breaks.wait_for_destroy_completion()).await);
}

#[tokio::test]
async fn what_an_older_generation_says_never_touches_the_one_that_runs() {
    let place = Place::new().await;
    let id = place.running("a").await;
    let old = place.script.newest();
    place.sleep(id).await.unwrap();
    place.call(get("a"), "set", "mine").await.unwrap();

    place.host.stopped(&old, StopOutcome::Destroyed);
    place.host.stopped(&old, StopOutcome::Slept);
    place.host.intent(&old, Intent::Destroy);
    place.host.intent(&old, Intent::Sleep { error: Some("late".into()) });
    place.settle().await;

    let live = place.host.live(&get("a")).expect("it runs on");
    assert!(live.generation() > old.generation());
    place.call(get("a"), "set", "still mine").await.unwrap();
    assert_eq!(place.call(Address::Id(id), "get", "").await.unwrap(), "still mine");
    assert_eq!(place.script.contexts().len(), 2);
}

#[tokio::test]
async fn a_destroy_while_two_hundred_calls_run_answers_every_one_of_them() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("hold");
    let open: Vec<_> = (0..200).map(|n| place.call(get("a"), "hold", n.to_string())).collect();
    place.until(|| place.script.waiting("hold") == 200).await;

    let destroyed = place.destroy(get("a"));
    let late = place.call(get("a"), "echo", "");
    assert_eq!(place.script.release("hold"), 200);

    assert!(destroyed.await.unwrap());
    for (n, answer) in join_all(open).await.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), n.to_string());
    }
    assert_eq!(code(late.await), "actor/not_found");
}

#[tokio::test]
async fn calls_that_outlast_the_grace_period_of_a_destroy_are_told_so() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("hold");
    let open = place.call(get("a"), "hold", "");

    let destroyed = place.destroy(get("a"));
    place.until(|| place.script.count("abort destroy") == 1).await;
    place.clock.advance(crate::place::config().effective_sleep_grace_period());

    assert!(destroyed.await.unwrap());
    assert_eq!(code(open.await), "actor/stopping");
}
