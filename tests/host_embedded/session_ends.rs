//! How sessions end, and what is left of them.

use greenroom::time::Duration;

use crate::place::{Place, code, get, or_create, within};
use crate::sessions::{CONNECTED, call, connect, connected, sleep};

#[tokio::test]
async fn a_client_that_goes_while_it_connects_leaves_nothing() {
    let place = Place::with(CONNECTED).await;
    place.script.hold("on_connect");
    let (client, session) = connect(&place, or_create("a"), true);
    place.until(|| place.script.waiting("on_connect") == 1).await;

    drop(session);
    place.until(|| place.script.count("on_disconnect") == 1).await;

    place.script.release("on_connect");
    place.settle().await;
    assert_eq!(client.told(), [""; 0]);
    assert_eq!(place.script.newest().connections().len(), 0);
    assert_eq!(place.host.session_count(), 0);
}

#[tokio::test]
async fn a_client_that_goes_while_the_actor_sleeps_wakes_nobody_and_ends_in_the_next_generation() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    let (_other, stays) = connected(&place, true).await;
    sleep(&place).await;

    session.close();
    place.settle().await;
    assert_eq!((place.script.alive(), place.script.count("on_disconnect")), (0, 0));
    call(&stays, "echo", "x").await.unwrap();
    place.until(|| place.script.count("on_disconnect") == 1).await;

    sleep(&place).await;
    call(&stays, "echo", "y").await.unwrap();
    place.settle().await;
    assert_eq!(place.script.count("on_disconnect"), 1);
    assert_eq!(place.script.newest().connections().len(), 1);
    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
    assert_eq!(place.host.session_count(), 1);
}

#[tokio::test]
async fn a_client_that_goes_while_the_actor_wakes_ends_in_that_generation() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    sleep(&place).await;
    place.script.hold("on_wake");
    let woken = place.call(get("a"), "echo", "x");
    place.until(|| place.script.waiting("on_wake") == 1).await;

    drop(session);
    place.script.release("on_wake");
    woken.await.unwrap();
    place.until(|| place.script.count("on_disconnect") == 1).await;

    assert_eq!(place.script.newest().connections().len(), 0);
    assert_eq!(place.host.session_count(), 0);
}

#[tokio::test]
async fn what_a_client_sent_before_it_went_is_still_taken() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    sleep(&place).await;

    let sent = call(&session, "echo", "last words");
    drop(session);
    sent.await.unwrap();
    place.until(|| place.script.count("on_disconnect") == 1).await;

    assert_eq!(place.script.seen("echo"), ["echo last words"]);
    assert_eq!(place.host.session_count(), 0);
}

#[tokio::test]
async fn one_that_does_not_outlive_a_sleep_is_closed_by_it() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, false).await;

    sleep(&place).await;

    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}", "closed 1000 actor.stopping"]);
    assert_eq!(code(call(&session, "echo", "x").await), "connection/not_found");
    assert_eq!(place.script.count("on_disconnect"), 1);
}

#[tokio::test]
async fn the_author_and_the_end_of_the_actor_close_sessions() {
    let place = Place::with(CONNECTED).await;
    let (left, session) = connected(&place, true).await;
    call(&session, "leave", "").await.unwrap();
    place.until(|| left.told().len() == 3).await;
    assert_eq!(left.told()[2], "closed 1000 left");
    assert_eq!(code(call(&session, "echo", "x").await), "connection/not_found");

    let (lives, _a) = connected(&place, true).await;
    assert!(place.destroy(get("a")).await.unwrap());
    assert_eq!(lives.told()[2], "closed 1000 actor.destroying");

    let (sleeps, _b) = connected(&place, true).await;
    sleep(&place).await;
    assert!(place.destroy(get("a")).await.unwrap());
    place.until(|| sleeps.told().len() == 3).await;
    assert_eq!(sleeps.told()[2], "closed 1000 actor.destroying");
    assert_eq!(place.host.session_count(), 0);
}

#[tokio::test]
async fn the_end_of_the_host_closes_sessions() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    sleep(&place).await;

    within(place.host.shutdown(Duration::from_secs(1))).await;

    assert_eq!(client.told()[2], "closed 1011 registry.shut_down");
    assert_eq!(code(call(&session, "echo", "x").await), "connection/not_found");
}
