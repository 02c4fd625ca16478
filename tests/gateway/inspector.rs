//! Dashboards: who is let in, when they are told what, and what a slow one costs.

use bytes::Bytes;
use futures::StreamExt as _;
use greenroom::inspector::{Secret, ToClient, ToServer, Version};
use greenroom::protocol::Encoding;
use greenroom::time::Duration;
use tokio_tungstenite::tungstenite::Message;

use crate::fixture::{Front, QUERY};
use crate::place::{HERE, call, or_create, within};
use crate::socket::Socket;
use crate::sockets::refusal;

/// How long nothing is told after something was.
const PAUSE: Duration = Duration::from_millis(50);

/// How often somebody who looks has asked the author's side for the state.
const ASKED: &str = "\u{4}inspect \0";

/// A dashboard of version 6.
struct Dashboard(Socket);

impl Dashboard {
    async fn open(front: &Front, token: &str) -> Self {
        let uri =
            format!("/gateway/counter/inspector/connect?protocol_version=6&{QUERY}&rvt-key=a");
        let offer = format!("rivet, rivet_inspector_token.{token}");
        Self(Socket::open(front.gateway.address().expect("it listens"), &uri, &offer).await)
    }

    /// Lets it in and reads the greeting.
    async fn greeted(front: &Front) -> Self {
        let mut dashboard = Self::open(front, &token(front).await).await;
        assert!(matches!(dashboard.next().await, ToClient::Init(_)));
        dashboard
    }

    async fn next(&mut self) -> ToClient {
        loop {
            match within(self.0.stream.next()).await.expect("more").expect("a message") {
                Message::Binary(bytes) => {
                    return ToClient::decode(Version::V6, bytes).expect("a message");
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("no frame: {other:?}"),
            }
        }
    }

    async fn tell(&mut self, message: &ToServer) {
        let frame = message.encode(Version::V6).expect("the newest version has it");
        self.0.send(Message::Binary(frame.into())).await;
    }
}

async fn token(front: &Front) -> String {
    set(front, vec![1]).await;
    let secret = Secret::new(front.host().store().secret());
    secret.token(front.script().newest().actor_id())
}

async fn set(front: &Front, state: Vec<u8>) {
    let called = call(front.host(), or_create("a"), HERE, "set", state);
    within(called).await.expect("it is set");
}

fn state(bytes: &'static [u8]) -> ToClient {
    ToClient::StateUpdated { state: Bytes::from_static(bytes) }
}

/// Lets pauses pass until `future` resolves.
async fn while_time_passes<T>(front: &Front, future: impl Future<Output = T>) -> T {
    let passing = async {
        loop {
            front.place.settle().await;
            front.clock().advance(PAUSE);
        }
    };
    tokio::select! { result = future => result, () = passing => unreachable!("it never ends") }
}

#[tokio::test]
async fn a_change_is_told_at_once_and_the_next_one_after_a_pause() {
    let front = Front::new().await;
    let mut dashboard = Dashboard::greeted(&front).await;

    set(&front, vec![2]).await;
    assert_eq!(dashboard.next().await, state(&[2]));
    let asked = front.script().count(ASKED);
    for n in 3..=9 {
        set(&front, vec![n]).await;
    }
    front.place.settle().await;
    assert_eq!(front.script().count(ASKED), asked);

    front.clock().advance(PAUSE);
    assert_eq!(dashboard.next().await, state(&[9]));
    assert_eq!(front.script().count(ASKED), asked + 1);
}

#[tokio::test]
async fn a_patch_is_answered_with_the_state_and_a_state_that_is_the_same_is_not_told_again() {
    let front = Front::new().await;
    let mut dashboard = Dashboard::greeted(&front).await;

    dashboard.tell(&ToServer::PatchState { state: Bytes::from_static(&[7]) }).await;
    assert_eq!(dashboard.next().await, state(&[7]));
    front.place.settle().await;
    front.clock().advance(PAUSE);
    set(&front, vec![7]).await;
    front.place.settle().await;
    front.clock().advance(PAUSE);
    front.place.settle().await;

    dashboard.tell(&ToServer::RpcsList { id: 1 }).await;
    // The answer to a patch may come a second time; nothing else does.
    let mut told = dashboard.next().await;
    if told == state(&[7]) {
        told = dashboard.next().await;
    }
    assert_eq!(told, ToClient::RpcsListResponse { rid: 1, rpcs: Vec::new() });
}

#[tokio::test]
async fn for_one_that_does_not_read_nothing_new_is_looked_up_and_then_it_reads_the_newest() {
    let front = Front::new().await;
    let mut dashboard = Dashboard::greeted(&front).await;
    // Of a different kind each, and more than a socket takes.
    let large = |n| [vec![0x5a, 0, 0x3f, 0xff, 0xfb], vec![n; 0x3f_fffb]].concat();
    let before = front.script().count(ASKED);

    for n in 1..=40 {
        set(&front, large(n)).await;
        front.place.settle().await;
        front.clock().advance(PAUSE);
        front.place.settle().await;
    }

    let asked = front.script().count(ASKED) - before;
    assert!((1..12).contains(&asked), "{asked} looks for one that does not read");
    loop {
        let ToClient::StateUpdated { state } = dashboard.next().await else { panic!("a state") };
        if state[..] == large(40) {
            break;
        }
        front.place.settle().await;
        front.clock().advance(PAUSE);
    }
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_told_when_it_can_and_the_rest_meanwhile() {
    let front = Front::new().await;
    let mut dashboard = Dashboard::greeted(&front).await;
    front.script().fail("look", Some(refusal()));

    set(&front, vec![2]).await;
    let _client = Socket::connected(&front, Encoding::Bare).await;
    let told = while_time_passes(&front, dashboard.next()).await;
    assert!(matches!(told, ToClient::ConnectionsUpdated { .. }), "{told:?}");
    dashboard.tell(&ToServer::PatchState { state: Bytes::from_static(&[3]) }).await;
    front.place.settle().await;

    front.script().fail("look", None);
    let told = while_time_passes(&front, async {
        loop {
            if let ToClient::StateUpdated { state } = dashboard.next().await {
                return state;
            }
        }
    });
    assert_eq!(told.await[..], [3]);
}

#[tokio::test]
async fn a_request_that_meets_the_end_of_a_generation_is_answered_by_the_next_one() {
    let front = Front::new().await;
    let bearer = format!("Bearer {}", token(&front).await);
    front.script().hold("history");
    let uri = format!("/gateway/counter/inspector/summary?{QUERY}&rvt-key=a");
    let headers = [("authorization", bearer.as_str())];
    let asked = front.ask("GET", &uri, &headers, b"");
    let sleeping = async {
        front.place.until(|| front.script().waiting("history") == 1).await;
        let first = front.script().newest();
        within(call(front.host(), or_create("a"), HERE, "sleep", vec![])).await.expect("it sleeps");
        front.place.until(|| first.aborted()).await;
        front.script().release("history");
    };

    let (response, ()) = tokio::join!(asked, sleeping);

    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["state"], 1);
    assert_eq!(front.script().contexts().len(), 2);
}

#[tokio::test]
async fn a_dashboard_that_meets_the_end_of_a_generation_is_told_that_and_nothing_worse() {
    let front = Front::new().await;
    let given = token(&front).await;
    front.script().hold("history");
    let mut dashboard = Dashboard::open(&front, &given).await;
    front.place.until(|| front.script().waiting("history") == 1).await;

    within(call(front.host(), or_create("a"), HERE, "sleep", vec![])).await.expect("it sleeps");
    front.place.until(|| front.script().newest().aborted()).await;
    front.script().release("history");

    assert_eq!(dashboard.0.end().await, (1000, "actor.stopped".to_owned()));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_named_as_that() {
    let front = Front::new().await;
    let bearer = format!("Bearer {}", token(&front).await);
    let uri = format!("/gateway/counter/inspector/state?{QUERY}&rvt-key=a");
    let body = vec![b' '; 20 * 1024 * 1024 + 1];

    let response = front.ask("PATCH", &uri, &[("authorization", &bearer)], &body).await;

    assert_eq!(response.fault(), (413, "guard.invalid_request_body".into()));
}

#[tokio::test]
async fn one_without_the_token_wakes_nobody() {
    let front = Front::new().await;
    let given = token(&front).await;
    within(call(front.host(), or_create("a"), HERE, "sleep", vec![])).await.expect("it sleeps");
    front.place.until(|| front.script().alive() == 0).await;

    let mut refused = Dashboard::open(&front, "wrong").await;
    let (code, reason) = refused.0.end().await;
    assert_eq!((code, reason.split('#').next()), (1008, Some("inspector.unauthorized")));
    let uri = format!("/gateway/counter/inspector/state?{QUERY}&rvt-key=a");
    let response = front.ask("GET", &uri, &[("authorization", "Bearer wrong")], b"").await;
    assert_eq!(response.status, 401);
    assert_eq!(front.script().alive(), 0);

    let mut dashboard = Dashboard::open(&front, &given).await;
    assert!(matches!(dashboard.next().await, ToClient::Init(_)));
    assert_eq!(front.script().alive(), 1);
}

#[tokio::test]
async fn looking_keeps_nobody_awake_and_ends_with_the_generation() {
    let front = Front::new().await;
    front.configure(|config| config.sleep_timeout = Duration::from_secs(5));
    let mut dashboard = Dashboard::greeted(&front).await;
    let actor = front.script().newest();
    assert_eq!(actor.glance().attached, 1);

    front.place.settle().await;
    front.clock().advance(Duration::from_secs(5));

    assert_eq!(dashboard.0.end().await, (1000, "actor.stopped".to_owned()));
    front.place.until(|| front.script().alive() == 0).await;
    front.place.until(|| actor.glance().attached == 0).await;
}
