//! What clients want to hear, over generations that break and rows that are lost.

use greenroom::core::behavior::Reply;
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::error::Result;
use greenroom::host::embedded::sessions::Session;
use greenroom::store::StoreLocation;
use greenroom::store::faults::{CommitFault, Faults};
use greenroom::time::Clock;

use crate::place::{HERE, Place, code, config, counter, get, options, or_create, within};
use crate::sessions::{CONNECTED, call, connected, refusal, sleep};

pub const BOTH: [Durability; 2] = [Durability::Reply, Durability::Interval];

/// Has what starts from then on commit in this way.
pub fn commits(place: &Place, durability: Durability) {
    let config = ActorConfig { durability, ..config() };
    place.host.register(HERE, counter(), place.script.factory(CONNECTED, config));
}

async fn faulty(durability: Durability) -> (Place, Faults) {
    let (clock, faults) = (Clock::manual(1_000_000), Faults::default());
    let mut options = options(StoreLocation::Memory, &clock);
    options.store.faults = faults.clone();
    let place = Place::open_with(options, clock, CONNECTED).await;
    commits(&place, durability);
    (place, faults)
}

/// Asks to hear events of a name, or no more.
pub fn wish(
    session: &Session,
    event: &str,
    wanted: bool,
) -> impl Future<Output = Result<()>> + Send + use<> {
    let (reply, done) = Reply::channel();
    session.subscribe(event.to_owned(), wanted, reply);
    within(done)
}

#[tokio::test]
async fn a_wish_whose_commit_fails_is_the_next_generations_before_what_the_client_says_then() {
    let (place, faults) = faulty(Durability::Reply).await;
    let (client, session) = connected(&place, true).await;
    faults.fail_commits(1, CommitFault::Full);

    let subscribed = wish(&session, "shout", true);
    let behind = call(&session, "shout", "1");
    subscribed.await.unwrap();
    behind.await.unwrap();

    assert_eq!(place.script.contexts().len(), 2);
    assert_eq!(client.told()[2..], ["shout 1"]);
    faults.fail_commits(1, CommitFault::Full);
    let ended = wish(&session, "shout", false);
    let behind = call(&session, "shout", "2");
    ended.await.unwrap();
    behind.await.unwrap();
    assert_eq!(place.script.contexts().len(), 3);
    assert_eq!(client.told()[2..], ["shout 1"]);
}

#[tokio::test]
async fn with_durability_interval_a_wish_whose_commit_fails_is_refused_and_its_generation_lives() {
    let (place, faults) = faulty(Durability::Interval).await;
    let (client, session) = connected(&place, true).await;
    faults.fail_commits(1, CommitFault::Full);

    let subscribed = wish(&session, "shout", true);
    let behind = call(&session, "echo", "x");

    assert_eq!(code(subscribed.await), "storage/full");
    behind.await.unwrap();
    wish(&session, "shout", true).await.unwrap();
    place.script.newest().break_generation(refusal());
    place.call(or_create("a"), "shout", "1").await.unwrap();
    assert_eq!(place.script.contexts().len(), 2);
    assert_eq!(client.told()[2..], ["shout 1"]);
}

#[tokio::test]
async fn a_wish_that_was_answered_outlives_a_generation_that_breaks() {
    for durability in BOTH {
        let (place, _) = faulty(durability).await;
        let (client, session) = connected(&place, true).await;
        wish(&session, "shout", true).await.unwrap();
        wish(&session, "other", true).await.unwrap();
        wish(&session, "other", false).await.unwrap();

        place.script.newest().break_generation(refusal());
        place.call(or_create("a"), "shout", "1").await.unwrap();

        assert_eq!(client.told()[2..], ["shout 1"]);
        assert_eq!(place.script.newest().connections()[0].subscriptions(), ["shout"]);
    }
}

#[tokio::test]
async fn a_client_whose_connection_is_lost_hears_of_it_as_soon_as_its_actor_wakes() {
    for durability in BOTH {
        let (place, _) = faulty(durability).await;
        let (client, session) = connected(&place, true).await;
        lose_connection(&place).await;
        assert_eq!(client.told().len(), 2);

        place.call(get("a"), "echo", "x").await.unwrap();
        place.until(|| client.told().len() == 3).await;

        assert_eq!(client.told()[2], "closed 1011 connection.restore_not_found");
        assert_eq!(code(call(&session, "echo", "x").await), "connection/not_found");
        assert_eq!(place.host.session_count(), 0);
    }
}

#[tokio::test]
async fn a_client_that_went_hears_nothing_of_a_connection_that_is_lost() {
    let (place, _) = faulty(Durability::Reply).await;
    let (client, session) = connected(&place, true).await;
    lose_connection(&place).await;

    let sent = call(&session, "echo", "last words");
    session.close();

    assert_eq!(code(sent.await), "connection/not_found");
    place.until(|| place.host.session_count() == 0).await;
    assert_eq!(client.told().len(), 2);
}

/// What is stored of the connection goes, and the actor sleeps.
async fn lose_connection(place: &Place) {
    let live = place.script.newest();
    live.queue_connection_removal(live.connections()[0].id());
    place.call(get("a"), "set", "x").await.expect("it is stored");
    sleep(place).await;
}
