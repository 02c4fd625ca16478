//! Clients: the hooks of a connection in their order, who is told what and when, and how
//! one is disconnected.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, Reply, StateDelta};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::connections::{
    CloseCode, ConnHandle, ConnHooks, ConnId, ConnectRequest, Event, Peer,
};
use greenroom::core::context::ActorContext;
use greenroom::error::{Error, ErrorCode, Result};
use greenroom::store::SocketId;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::fixture::Fixture;

/// A client that remembers what it was told.
#[derive(Default)]
pub struct Client(Mutex<Vec<String>>);

impl Client {
    pub fn told(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Peer for Client {
    fn accept(&self, _: &ConnId) {
        self.0.lock().push("accept".to_owned());
    }

    fn send(&self, event: &Arc<Event>) {
        self.0.lock().push(format!("{} {}", event.name(), String::from_utf8_lossy(event.args())));
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.0.lock().push(format!("close {} {reason}", code.0));
    }
}

pub fn request(client: &Arc<Client>, socket: Option<SocketId>) -> ConnectRequest {
    ConnectRequest {
        params: Bytes::from_static(b"params"),
        request: None,
        peer: Some(Arc::clone(client) as Arc<dyn Peer>),
        socket,
    }
}

/// Connects in a task of its own, since hooks may be held.
pub fn connect(
    actor: &ActorContext,
    client: &Arc<Client>,
    socket: Option<SocketId>,
) -> JoinHandle<Result<ConnHandle>> {
    let (actor, request) = (actor.clone(), request(client, socket));
    tokio::spawn(async move { actor.connect(request).await })
}

pub async fn connected(actor: &ActorContext) -> (Arc<Client>, ConnHandle) {
    let client = Arc::<Client>::default();
    let connection = actor.connect(request(&client, None)).await.unwrap();
    (client, connection)
}

/// Takes the waiting hook of a connection.
pub fn take_hook(fixture: &Fixture, label: &str) -> (ConnHandle, Reply<Option<Bytes>>) {
    let ActorEvent::Connection { connection, reply, .. } = fixture.script.take(label) else {
        unreachable!("a hook of a connection")
    };
    (connection, reply)
}

pub fn refusal() -> Error {
    Error::new(ErrorCode::new("user", "refused"), "no")
}

pub fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn hooks_seen(fixture: &Fixture) -> Vec<String> {
    let conn = ["on_before_connect", "create_conn_state", "on_connect", "on_disconnect"];
    fixture.script.story().into_iter().filter(|label| conn.contains(&&**label)).collect()
}

#[tokio::test]
async fn a_hook_that_throws_before_the_client_is_visible_leaves_no_trace() {
    for label in ["on_before_connect", "create_conn_state"] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        let (_, other) = connected(&actor).await;
        *fixture.script.fail.lock() = Some((label, refusal()));
        let client = Arc::<Client>::default();

        let refused = actor.connect(request(&client, None)).await.unwrap_err();

        assert!(refused.is("user", "refused"));
        assert_eq!(actor.connections().len(), 1);
        assert_eq!(actor.connections()[0].id(), other.id());
        actor.broadcast("a", bytes("1"));
        fixture.settle().await;
        assert_eq!(client.told(), [""; 0]);
        assert_eq!(fixture.script.count("on_disconnect"), 0);
    }
}

#[tokio::test]
async fn a_client_that_on_connect_rejects_was_told_nothing_and_has_no_on_disconnect() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_connect");
    let client = Arc::<Client>::default();
    let connecting = connect(&actor, &client, None);
    fixture.settle().await;
    let (connection, reply) = take_hook(&fixture, "on_connect");
    assert_eq!(actor.connections().len(), 1);
    connection.send("hello", bytes("1"));

    reply.send(Err(refusal()));
    let refused = connecting.await.unwrap().unwrap_err();
    fixture.settle().await;

    assert!(refused.is("user", "refused"));
    assert_eq!(client.told(), [""; 0]);
    assert!(actor.connections().is_empty());
    assert_eq!(fixture.script.count("on_disconnect"), 0);
}

#[tokio::test]
async fn a_connection_is_seen_from_on_connect_on_and_what_that_sends_comes_first() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let client = Arc::<Client>::default();
    for label in ["on_before_connect", "create_conn_state", "on_connect"] {
        fixture.script.hold(label);
    }
    let connecting = connect(&actor, &client, None);

    fixture.settle().await;
    take_hook(&fixture, "on_before_connect").1.send(Ok(None));
    fixture.settle().await;
    assert!(actor.connections().is_empty());
    take_hook(&fixture, "create_conn_state").1.send(Ok(Some(bytes("state"))));
    fixture.settle().await;
    let (connection, reply) = take_hook(&fixture, "on_connect");
    assert_eq!(actor.connections().len(), 1);
    assert_eq!((connection.state(), &connection.params()[..]), (bytes("state"), &b"params"[..]));
    connection.send("a", bytes("1"));
    connection.send("b", bytes("2"));
    assert_eq!(client.told(), [""; 0]);
    reply.send(Ok(None));
    let connection = connecting.await.unwrap().unwrap();
    connection.send("c", bytes("3"));

    assert_eq!(client.told(), ["accept", "a 1", "b 2", "c 3"]);
}

#[tokio::test]
async fn hooks_that_the_author_did_not_write_are_not_asked_for() {
    let mut fixture = Fixture::new().await;
    fixture.hooks.connections = ConnHooks::NONE;
    let actor = fixture.started().await;

    let (client, connection) = connected(&actor).await;
    connection.subscribe("a").await.unwrap();
    connection.disconnect("bye").await.unwrap();

    assert_eq!(hooks_seen(&fixture), [""; 0]);
    assert_eq!(client.told(), ["accept", "close 1000 bye"]);
}

#[tokio::test]
async fn each_hook_has_a_time_limit_of_its_own() {
    let limits = [
        ("on_before_connect", "onBeforeConnect", 1_000),
        ("create_conn_state", "createConnState", 2_000),
        ("on_connect", "onConnect", 3_000),
    ];
    for (label, name, ms) in limits {
        let config = ActorConfig {
            has_state: true,
            on_before_connect_timeout: std::time::Duration::from_millis(1_000),
            create_conn_state_timeout: std::time::Duration::from_millis(2_000),
            on_connect_timeout: std::time::Duration::from_millis(3_000),
            ..ActorConfig::default()
        };
        let fixture = Fixture::with(config).await;
        let actor = fixture.started().await;
        fixture.script.hold(label);
        let connecting = connect(&actor, &Arc::default(), None);
        fixture.settle().await;

        fixture.advance_ms(ms - 1).await;
        assert!(!connecting.is_finished());
        fixture.advance_ms(1).await;

        let error = connecting.await.unwrap().unwrap_err();
        assert!(error.is("actor", "callback_timed_out"), "{error}");
        let told = serde_json::json!({ "callback_name": name, "duration_ms": ms });
        assert_eq!(error.metadata, Some(told));
        assert!(actor.connections().is_empty());
        // What it answers now is nobody's.
        take_hook(&fixture, label).1.send(Ok(None));
        fixture.settle().await;
        assert!(actor.connections().is_empty());
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_connection_behind() {
    for (label, ends) in [("on_before_connect", 0), ("on_connect", 1)] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        fixture.script.hold(label);
        let connecting = connect(&actor, &Arc::default(), None);
        fixture.settle().await;

        connecting.abort();
        fixture.settle().await;

        assert!(actor.connections().is_empty());
        assert_eq!(fixture.script.count("on_disconnect"), ends, "{label}");
        assert_eq!(actor.holds(), []);
    }
}

#[tokio::test]
async fn an_actor_that_takes_no_work_takes_no_client() {
    let fixture = Fixture::new().await;
    let actor = fixture.generation();

    let early = actor.connect(request(&Arc::default(), None)).await.unwrap_err();
    assert!(early.is("actor", "not_ready"), "{early}");
    actor.start().await.unwrap();
    actor.stop(StopReason::Destroy);
    fixture.settle().await;

    let late = actor.connect(request(&Arc::default(), None)).await.unwrap_err();
    assert!(late.is("actor", "destroying"), "{late}");
}

#[tokio::test]
async fn a_broadcast_reaches_those_who_subscribed_and_a_send_does_not_ask() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (first, a) = connected(&actor).await;
    let (second, b) = connected(&actor).await;
    assert!(a.subscribe("x").await.unwrap());
    assert!(!a.subscribe("x").await.unwrap());

    actor.broadcast("x", bytes("1"));
    b.send("x", bytes("2"));
    assert!(a.unsubscribe("x").unwrap() && !a.unsubscribe("x").unwrap());
    actor.broadcast("x", bytes("3"));

    assert_eq!(first.told(), ["accept", "x 1"]);
    assert_eq!(second.told(), ["accept", "x 2"]);
}

#[tokio::test]
async fn a_subscription_that_the_hook_refuses_is_not_made() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = connected(&actor).await;
    *fixture.script.fail.lock() = Some(("on_before_subscribe", refusal()));

    assert!(connection.subscribe("x").await.unwrap_err().is("user", "refused"));

    actor.broadcast("x", bytes("1"));
    assert_eq!((connection.subscriptions(), client.told()), (vec![], vec!["accept".to_owned()]));
}

#[tokio::test]
async fn an_event_leaves_when_what_was_changed_before_it_is_durable() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = connected(&actor).await;
    connection.subscribe("x").await.unwrap();
    actor.mark_dirty();

    actor.broadcast("x", bytes("1"));
    connection.send("y", bytes("2"));
    fixture.settle().await;
    assert_eq!(client.told(), ["accept"]);
    actor.commit_state(vec![StateDelta::ActorState(bytes("s"))]).unwrap();
    actor.flushed().await.unwrap();

    assert_eq!(client.told(), ["accept", "x 1", "y 2"]);
}

#[tokio::test]
async fn an_event_whose_change_is_lost_is_never_told() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = connected(&actor).await;
    connection.subscribe("x").await.unwrap();
    actor.mark_dirty();
    actor.broadcast("x", bytes("1"));

    actor.break_generation(Error::new(ErrorCode::new("storage", "full"), "the disk is full"));
    fixture.settle().await;

    assert_eq!(client.told(), ["accept", "close 1011 storage.full"]);
    assert_eq!(fixture.script.count("on_disconnect"), 0);
    assert!(actor.connections().is_empty());
}

#[tokio::test]
async fn a_client_is_closed_behind_what_it_was_sent_and_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = connected(&actor).await;
    actor.mark_dirty();
    connection.send("bye", bytes("1"));

    let (first, second) = (connection.disconnect("why"), connection.disconnect("again"));
    fixture.settle().await;
    assert_eq!(client.told(), ["accept"]);
    actor.commit_state(vec![StateDelta::ActorState(bytes("s"))]).unwrap();
    first.await.unwrap();
    second.await.unwrap();
    fixture.settle().await;

    assert_eq!(client.told(), ["accept", "bye 1", "close 1000 why"]);
    assert_eq!(fixture.script.count("on_disconnect"), 1);
}

#[tokio::test]
async fn a_connection_is_gone_in_on_disconnect_and_its_handle_reads_on() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = connected(&actor).await;
    connection.set_state(bytes("state"));
    fixture.script.hold("on_disconnect");

    connection.closed();
    connection.closed();
    fixture.settle().await;
    let (gone, reply) = take_hook(&fixture, "on_disconnect");

    assert!(actor.connections().is_empty());
    assert_eq!((gone.id(), gone.state()), (connection.id(), bytes("state")));
    gone.send("x", bytes("1"));
    reply.send(Ok(None));
    fixture.settle().await;
    // Whose socket is gone is neither told nor closed.
    assert_eq!(client.told(), ["accept"]);
    assert_eq!(fixture.script.count("on_disconnect"), 1);
}

#[tokio::test]
async fn a_client_that_on_connect_ends_hears_what_it_was_sent_and_why() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_connect");
    let client = Arc::<Client>::default();
    let connecting = connect(&actor, &client, None);
    fixture.settle().await;
    let (connection, reply) = take_hook(&fixture, "on_connect");
    connection.send("a", bytes("1"));

    connection.disconnect("full").await.unwrap();
    reply.send(Ok(None));
    let refused = connecting.await.unwrap().unwrap_err();
    fixture.settle().await;

    assert!(refused.is("connection", "not_found"), "{refused}");
    assert_eq!(client.told(), ["accept", "a 1", "close 1000 full"]);
    assert_eq!(fixture.script.count("on_disconnect"), 1);
}

#[tokio::test]
async fn connections_can_be_ended_by_id_by_choice_and_while_going_through_them() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(connected(&actor).await);
    }
    assert!(actor.connection("nobody").is_none());

    let by_id = actor.connection(clients[0].1.id().as_str()).unwrap();
    by_id.disconnect("one").await.unwrap();
    let chosen = clients[1].1.id().clone();
    actor.disconnect_where(|connection| *connection.id() == chosen, "two").await.unwrap();
    for connection in actor.connections() {
        connection.disconnect("rest").await.unwrap();
    }

    let reasons: Vec<_> = clients.iter().map(|(client, _)| client.told()[1].clone()).collect();
    let wanted = ["one", "two", "rest", "rest"].map(|reason| format!("close 1000 {reason}"));
    assert_eq!(reasons, wanted);
    assert!(actor.connections().is_empty());
    assert_eq!(fixture.script.count("on_disconnect"), 4);
}

#[tokio::test]
async fn with_durability_interval_an_event_leaves_at_once() {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    let (client, connection) = connected(&actor).await;
    actor.mark_dirty();

    connection.send("x", bytes("1"));

    assert_eq!(client.told(), ["accept", "x 1"]);
}
