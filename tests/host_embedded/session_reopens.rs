//! What a generation that finds a connection again is told of that.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::connections::{ConnId, Event};
use greenroom::error::ActorSpecifier;
use greenroom::host::embedded::sessions::{Session, SessionClient, SessionEnd};

use crate::place::{HERE, Place, or_create};
use crate::sessions::{CONNECTED, call, refusal, request, sleep};

/// A client whose generations are told.
struct Reopens;

impl SessionClient for Reopens {
    fn accepted(&self, _: &ConnId, _: &ActorSpecifier) {}

    fn event(&self, _: &Arc<Event>) {}

    fn ended(&self, end: SessionEnd) {
        panic!("nobody ended it: {end:?}");
    }

    fn reopening(&self) -> Option<(&'static str, Bytes)> {
        Some(("echo", Bytes::from_static(b"again")))
    }
}

async fn reopening(place: &Place) -> Session {
    let session = place.host.connect(or_create("a"), request(true), HERE, Arc::new(Reopens));
    place.until(|| session.connection().is_some()).await;
    place.settle().await;
    session
}

#[tokio::test]
async fn a_generation_is_told_of_a_connection_before_what_the_client_says() {
    let place = Place::with(CONNECTED).await;
    let session = reopening(&place).await;
    call(&session, "echo", "1").await.unwrap();

    sleep(&place).await;
    call(&session, "echo", "2").await.unwrap();
    // What is said over one that broke is the next one's, behind that.
    place.script.newest().break_generation(refusal());
    call(&session, "echo", "3").await.unwrap();

    let seen = ["echo 1", "echo again", "echo 2", "echo again", "echo 3"];
    assert_eq!(place.script.seen("echo"), seen);
}

#[tokio::test]
async fn one_whose_first_message_no_generation_has_taken_is_told_that_message_alone() {
    let place = Place::with(CONNECTED).await;
    let session = reopening(&place).await;

    place.script.newest().break_generation(refusal());
    call(&session, "echo", "1").await.unwrap();
    assert_eq!(place.script.seen("echo"), ["echo 1"]);

    sleep(&place).await;
    call(&session, "echo", "2").await.unwrap();
    assert_eq!(place.script.seen("echo"), ["echo 1", "echo again", "echo 2"]);
}
