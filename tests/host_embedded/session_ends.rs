//! How sessions end, and what is left of them.

use std::sync::Arc;

use greenroom::core::connections::{ConnId, Event};
use greenroom::error::ActorSpecifier;
use greenroom::host::embedded::Address;
use greenroom::host::embedded::sessions::{Session, SessionClient, SessionEnd};
use greenroom::time::Duration;
use parking_lot::Mutex;

use crate::place::{HERE, Place, code, get, or_create, within};
use crate::sessions::{CONNECTED, call, connect, connected, request, sleep};

/// A client that goes as soon as it hears that it is accepted.
#[derive(Default)]
struct Fleeting(Mutex<Option<Session>>);

impl SessionClient for Fleeting {
    fn accepted(&self, _: &ConnId, _: &ActorSpecifier) {
        self.0.lock().take().expect("it is accepted once, behind its making").close();
    }

    fn event(&self, _: &Arc<Event>) {}

    fn ended(&self, end: SessionEnd) {
        panic!("it went itself: {end:?}");
    }
}

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
async fn a_client_that_goes_while_its_acceptance_is_told_leaves_nothing() {
    for hibernatable in [false, true] {
        let place = Place::with(CONNECTED).await;
        let client = Arc::<Fleeting>::default();
        let told = Arc::clone(&client) as Arc<dyn SessionClient>;
        // Held, so that the client has its session before it is accepted.
        place.script.hold("on_connect");
        let session = place.host.connect(or_create("a"), request(hibernatable), HERE, told);
        *client.0.lock() = Some(session);
        place.until(|| place.script.waiting("on_connect") == 1).await;

        place.script.release("on_connect");
        place.until(|| place.script.count("on_disconnect") == 1).await;

        assert_eq!(place.script.newest().connections().len(), 0);
        assert_eq!(place.host.session_count(), 0);
        place.clock.advance(Duration::from_secs(60));
        place.settle().await;
        assert_eq!(place.script.alive(), 0);
    }
}

#[tokio::test]
async fn a_client_whose_messages_do_not_follow_on_what_is_stored_is_closed_and_leaves_nothing() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    place.script.newest().connections()[0].acknowledge(10).unwrap();
    sleep(&place).await;

    let refused = call(&session, "echo", "x");
    place.until(|| client.told().len() == 3).await;

    assert_eq!(code(refused.await), "connection/not_found");
    assert_eq!(client.told()[2], "closed 1008 ws.message_index_skip");
    place.until(|| place.script.count("on_disconnect") == 1).await;
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

#[tokio::test]
async fn a_client_that_connects_while_its_actor_is_destroyed_is_the_next_actors_or_hears_why() {
    for hibernatable in [false, true] {
        let place = Place::with(CONNECTED).await;
        let id = place.running("a").await;
        place.script.hold("on_before_connect");
        let (early, first) = connect(&place, or_create("a"), hibernatable);
        place.until(|| place.script.waiting("on_before_connect") == 1).await;
        place.script.hold("on_destroy");
        let destroyed = place.destroy(get("a"));
        place.until(|| place.script.waiting("on_destroy") == 1).await;
        let (late, second) = connect(&place, or_create("a"), hibernatable);
        // Behind one that may make the next actor, and so its as well.
        place.settle().await;
        let (third, follows) = connect(&place, get("a"), hibernatable);
        let (lost, _fourth) = connect(&place, Address::Id(id), hibernatable);
        place.settle().await;

        place.script.release("on_before_connect");
        place.script.release("on_destroy");
        assert!(destroyed.await.unwrap());

        let next = [(&early, &first), (&late, &second), (&third, &follows)];
        for (client, session) in next {
            call(session, "echo", "x").await.unwrap();
            assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
        }
        place.until(|| !lost.told().is_empty()).await;
        assert_eq!(lost.told(), ["refused actor/not_found"]);
        assert_ne!(place.resolve(get("a")).await.unwrap().id, id);
        assert_eq!(place.script.newest().connections().len(), next.len());
    }
}
