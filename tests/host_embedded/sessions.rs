//! Clients that stay while their actor sleeps and wakes.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::behavior::{Caller, Hooks, Reply};
use greenroom::core::connections::{ConnHooks, ConnId, Event};
use greenroom::core::context::CallRequest;
use greenroom::error::{ActorSpecifier, Error, ErrorCode, Result};
use greenroom::host::embedded::Address;
use greenroom::host::embedded::sessions::{
    MAX_WAITING, Session, SessionClient, SessionEnd, SessionRequest,
};
use greenroom::time::Duration;
use parking_lot::Mutex;

use crate::place::{HERE, Place, code, counter, get, or_create, within};
use crate::script::HOOKS;

/// A client that remembers what it was told.
#[derive(Default)]
pub struct Client(Mutex<Vec<String>>);

impl Client {
    pub fn told(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn tell(&self, what: String) {
        self.0.lock().push(what);
    }
}

impl SessionClient for Client {
    fn accepted(&self, _: &ConnId, _: &ActorSpecifier) {
        self.tell("accepted".to_owned());
    }

    fn event(&self, event: &Arc<Event>) {
        self.tell(format!("{} {}", event.name(), String::from_utf8_lossy(event.args())));
    }

    fn ended(&self, end: SessionEnd) {
        self.tell(match end {
            SessionEnd::Refused(error) => format!("refused {}/{}", error.group, error.code),
            SessionEnd::Closed { code, reason } => format!("closed {} {reason}", code.0),
        });
    }
}

pub const CONNECTED: Hooks =
    Hooks { connections: ConnHooks { before_subscribe: false, ..ConnHooks::ALL }, ..HOOKS };

pub fn request(hibernatable: bool) -> SessionRequest {
    SessionRequest { params: Bytes::from_static(b"p"), request: None, hibernatable }
}

pub fn connect(place: &Place, address: Address, hibernatable: bool) -> (Arc<Client>, Session) {
    let client = Arc::<Client>::default();
    let told = Arc::clone(&client) as Arc<dyn SessionClient>;
    let session = place.host.connect(address, request(hibernatable), HERE, told);
    (client, session)
}

/// A client that is accepted.
pub async fn connected(place: &Place, hibernatable: bool) -> (Arc<Client>, Session) {
    let (client, session) = connect(place, or_create("a"), hibernatable);
    place.until(|| session.connection().is_some()).await;
    place.settle().await;
    (client, session)
}

pub fn call(
    session: &Session,
    name: &str,
    args: &'static str,
) -> impl Future<Output = Result<Bytes>> + Send + use<> {
    let (reply, answer) = Reply::channel();
    session.call(message(name, args, reply));
    within(answer)
}

fn message(name: &str, args: &'static str, reply: Reply<Bytes>) -> CallRequest {
    CallRequest {
        name: name.to_owned(),
        args: Bytes::from_static(args.as_bytes()),
        caller: Caller::Client,
        origin: 0,
        taken_by: None,
        reply,
    }
}

async fn subscribe(session: &Session, event: &str) -> Result<()> {
    let (reply, done) = Reply::channel();
    session.subscribe(event.to_owned(), true, reply);
    within(done).await
}

pub async fn sleep(place: &Place) {
    let id = place.resolve(get("a")).await.expect("it is there").id;
    place.sleep(id).await.expect("it is there");
}

pub fn refusal() -> Error {
    Error::new(ErrorCode::new("user", "no"), "no")
}

#[tokio::test]
async fn a_client_hears_of_its_acceptance_first_and_its_calls_know_its_connection() {
    for hibernatable in [false, true] {
        let place = Place::with(CONNECTED).await;
        let (client, session) = connected(&place, hibernatable).await;

        let who = call(&session, "who", "").await.unwrap();

        assert_eq!(who, session.connection().unwrap().as_str());
        assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
        for hook in ["on_before_connect", "create_conn_state", "on_connect"] {
            assert_eq!(place.script.count(hook), 1, "{hook}");
        }
    }
}

#[tokio::test]
async fn a_client_that_a_hook_refuses_is_told_why_and_so_are_its_calls() {
    for hook in ["on_before_connect", "create_conn_state", "on_connect"] {
        let place = Place::with(CONNECTED).await;
        place.script.hold(hook);
        let (client, session) = connect(&place, or_create("a"), true);
        let waiting = call(&session, "echo", "x");
        place.until(|| place.script.waiting(hook) == 1).await;

        assert_eq!(place.script.fail_waiting(hook, &refusal()), 1);
        place.until(|| !client.told().is_empty()).await;

        assert_eq!(client.told(), ["refused user/no"]);
        assert_eq!(code(waiting.await), "actor/aborted");
        assert_eq!(code(call(&session, "echo", "x").await), "actor/aborted");
        assert_eq!(place.script.count("on_disconnect"), 0);
        assert_eq!(place.host.session_count(), 0);
    }
}

#[tokio::test]
async fn an_actor_that_is_not_there_refuses_its_clients() {
    let place = Place::new().await;

    let (client, _session) = connect(&place, get("nobody"), true);
    place.until(|| !client.told().is_empty()).await;

    assert_eq!(client.told(), ["refused actor/not_found"]);
}

#[tokio::test]
async fn a_message_wakes_the_actor_which_finds_the_connection_without_any_hook() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    subscribe(&session, "shout").await.unwrap();
    sleep(&place).await;
    assert_eq!(place.script.alive(), 0);

    let who = call(&session, "who", "").await.unwrap();
    call(&session, "shout", "x").await.unwrap();

    assert_eq!(who, session.connection().unwrap().as_str());
    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}", "shout x"]);
    assert_eq!(place.script.newest().connections()[0].state(), "mine");
    for (hook, times) in [("on_wake", 2), ("on_connect", 1), ("on_disconnect", 0)] {
        assert_eq!(place.script.count(hook), times, "{hook}");
    }
}

#[tokio::test]
async fn one_that_somebody_else_woke_sends_events_to_those_who_stayed() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    subscribe(&session, "shout").await.unwrap();
    sleep(&place).await;

    place.call(get("a"), "shout", "x").await.unwrap();

    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}", "shout x"]);
}

#[tokio::test]
async fn what_comes_while_the_actor_falls_asleep_is_the_next_generations_in_order() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    let before = call(&session, "echo", "0");
    place.script.hold("on_sleep");
    let id = place.resolve(get("a")).await.unwrap().id;
    let slept = place.sleep(id);
    place.until(|| place.script.waiting("on_sleep") == 1).await;

    let answers: Vec<_> = ["1", "2", "3"].map(|n| call(&session, "echo", n)).into();
    place.settle().await;
    assert_eq!(place.script.seen("echo"), ["echo 0"]);
    assert_eq!(session.waiting(), 3);
    place.script.release("on_sleep");
    slept.await.unwrap();

    assert_eq!(before.await.unwrap(), "0");
    for (answer, sent) in answers.into_iter().zip(["1", "2", "3"]) {
        assert_eq!(answer.await.unwrap(), sent);
    }
    assert_eq!(place.script.seen("echo"), ["echo 0", "echo 1", "echo 2", "echo 3"]);
    assert_eq!((place.script.count("on_sleep"), place.script.count("on_wake")), (1, 2));
    assert_eq!(session.waiting(), 0);
}

#[tokio::test]
async fn what_comes_while_the_actor_wakes_is_taken_once_and_in_order() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    sleep(&place).await;
    place.script.hold("on_wake");

    let first = call(&session, "echo", "1");
    place.until(|| place.script.waiting("on_wake") == 1).await;
    let second = call(&session, "echo", "2");
    let subscribed = subscribe(&session, "shout");
    let third = call(&session, "shout", "x");
    place.script.release("on_wake");

    assert_eq!(first.await.unwrap(), "1");
    assert_eq!(second.await.unwrap(), "2");
    subscribed.await.unwrap();
    third.await.unwrap();
    assert_eq!(place.script.seen("echo"), ["echo 1", "echo 2"]);
}

#[tokio::test]
async fn the_number_of_the_last_message_outlives_sleeps_and_a_generation_that_breaks() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    call(&session, "echo", "1").await.unwrap();
    sleep(&place).await;
    call(&session, "echo", "2").await.unwrap();
    place.script.newest().break_generation(refusal());
    place.settle().await;

    call(&session, "echo", "3").await.unwrap();

    let connection = place.script.newest().connections().remove(0);
    assert_eq!(connection.arrival(3).unwrap(), greenroom::core::connections::Arrival::Duplicate);
    assert_eq!(connection.arrival(4).unwrap(), greenroom::core::connections::Arrival::Next);
    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
    assert_eq!(place.script.seen("echo"), ["echo 1", "echo 2", "echo 3"]);
}

#[tokio::test]
async fn a_call_that_a_broken_generation_took_is_answered_by_it_and_not_run_again() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    place.script.hold("hold");
    let held = call(&session, "hold", "x");
    place.until(|| place.script.waiting("hold") == 1).await;

    place.script.newest().break_generation(refusal());

    assert_eq!(code(held.await), "user/no");
    call(&session, "echo", "y").await.unwrap();
    assert_eq!(place.script.count("hold x"), 1);
}

#[tokio::test]
async fn a_start_that_fails_is_told_to_those_who_wait_and_the_session_goes_on() {
    let place = Place::with(CONNECTED).await;
    let (client, session) = connected(&place, true).await;
    sleep(&place).await;
    place.script.fail("on_wake", Some(refusal()));

    assert_eq!(code(call(&session, "echo", "x").await), "user/no");
    place.script.fail("on_wake", None);

    call(&session, "echo", "y").await.unwrap();
    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
    assert_eq!(place.script.seen("echo"), ["echo y"]);
}

#[tokio::test]
async fn a_session_that_outlives_a_sleep_does_not_keep_its_actor_awake_and_another_does() {
    for (hibernatable, alive) in [(true, 0), (false, 1)] {
        let place = Place::with(CONNECTED).await;
        let (client, session) = connected(&place, hibernatable).await;

        place.clock.advance(Duration::from_secs(60));
        place.settle().await;

        assert_eq!(place.script.alive(), alive);
        assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
        drop(session);
    }
}

#[tokio::test]
async fn a_client_that_comes_while_the_actor_falls_asleep_is_the_next_generations() {
    for hibernatable in [false, true] {
        let place = Place::with(CONNECTED).await;
        let id = place.running("a").await;
        place.script.hold("on_sleep");
        let slept = place.sleep(id);
        place.until(|| place.script.waiting("on_sleep") == 1).await;

        let (client, session) = connect(&place, or_create("a"), hibernatable);
        place.settle().await;
        assert_eq!(client.told(), [""; 0]);
        place.script.release("on_sleep");
        slept.await.unwrap();
        call(&session, "echo", "x").await.unwrap();

        assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}"]);
        assert_eq!(place.script.count("on_wake"), 2);
    }
}

#[tokio::test]
async fn only_so_much_waits_for_an_actor() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    sleep(&place).await;
    place.script.hold("on_wake");

    let waiting: Vec<_> = (0..MAX_WAITING).map(|_| call(&session, "echo", "x")).collect();
    assert_eq!(code(call(&session, "echo", "more").await), "actor/overloaded");
    place.until(|| place.script.waiting("on_wake") == 1).await;
    place.script.release("on_wake");

    for answer in waiting {
        answer.await.unwrap();
    }
    call(&session, "echo", "y").await.unwrap();
}

#[tokio::test]
async fn a_call_is_given_up_wherever_it_is() {
    let place = Place::with(CONNECTED).await;
    let (_client, session) = connected(&place, true).await;
    place.script.hold("hold");
    let (reply, held) = Reply::channel();
    let ticket = session.call_with_ticket(message("hold", "x", reply));
    place.until(|| place.script.waiting("hold") == 1).await;
    ticket.cancel();
    assert_eq!(code(within(held).await), "actor/aborted");
    place.script.release("hold");

    sleep(&place).await;
    place.script.hold("on_wake");
    let (reply, waiting) = Reply::channel();
    let ticket = session.call_with_ticket(message("echo", "never", reply));
    ticket.cancel();
    place.meet("on_wake").await;

    assert_eq!(code(within(waiting).await), "actor/aborted");
    call(&session, "echo", "y").await.unwrap();
    assert_eq!(place.script.seen("echo"), ["echo y"]);
}

#[tokio::test]
async fn a_subscription_is_refused_by_its_hook_and_what_is_behind_waits_for_that() {
    let place = Place::with(Hooks { connections: ConnHooks::ALL, ..HOOKS }).await;
    let (client, session) = connected(&place, true).await;
    place.script.hold("on_before_subscribe");
    let subscribed = subscribe(&session, "shout");
    let mut subscribed = std::pin::pin!(subscribed);
    assert!(futures::poll!(subscribed.as_mut()).is_pending());
    let behind = call(&session, "shout", "x");
    place.until(|| place.script.waiting("on_before_subscribe") == 1).await;
    assert_eq!(place.script.count("shout x"), 0);

    place.script.release("on_before_subscribe");
    subscribed.await.unwrap();
    behind.await.unwrap();
    place.script.fail("on_before_subscribe", Some(refusal()));

    assert_eq!(code(subscribe(&session, "other").await), "user/no");
    assert_eq!(client.told(), ["accepted", "hello \u{fffd}\u{1}", "shout x"]);
}

#[tokio::test]
async fn a_call_with_a_connection_of_its_own_runs_all_hooks_and_leaves_none() {
    let place = Place::with(CONNECTED).await;

    let outcome = within(place.host.call_connected(
        &or_create("a"),
        &request(false),
        "who".to_owned(),
        Bytes::new(),
        Caller::Client,
        HERE,
    ))
    .await;

    assert!(!outcome.result.unwrap().is_empty());
    assert_eq!(outcome.taken_by.unwrap().key.as_deref(), Some("a"));
    for hook in ["on_before_connect", "create_conn_state", "on_connect", "on_disconnect"] {
        assert_eq!(place.script.count(hook), 1, "{hook}");
    }
    assert_eq!(place.script.newest().connections().len(), 0);
    assert_eq!(counter(), *place.script.newest().name());
}
