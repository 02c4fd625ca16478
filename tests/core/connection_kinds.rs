//! Clients within the process and clients elsewhere: who is which, what each is told, and
//! what becomes of the parameters that they pass.

use std::sync::Arc;

use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::connections::{Audience, ConnectRequest, Peer, RequestHead};
use greenroom::store::SocketId;

use crate::connections::{Client, bytes, connect, connected, request, take_hook};
use crate::fixture::Fixture;

const ELSEWHERE: SocketId = SocketId { gateway: [1; 4], request: [1; 4] };
const HERE: SocketId = SocketId { gateway: [1; 4], request: [2; 4] };

fn from_elsewhere(client: &Arc<Client>, socket: Option<SocketId>) -> ConnectRequest {
    let head = RequestHead {
        method: "GET".to_owned(),
        path: "/connect".to_owned(),
        headers: vec![("x-own".to_owned(), "1".to_owned())],
    };
    ConnectRequest { request: Some(Arc::new(head)), ..request(client, socket) }
}

#[tokio::test]
async fn an_event_reaches_the_clients_of_the_kind_that_it_is_encoded_for() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (here, local) = connected(&actor).await;
    let elsewhere = Arc::<Client>::default();
    let remote = actor.connect(from_elsewhere(&elsewhere, None)).await.unwrap();
    assert_eq!(actor.audience("x"), Audience::default());
    local.subscribe("x").await.unwrap();
    assert_eq!(actor.audience("x"), Audience { local: true, remote: false });
    remote.subscribe("x").await.unwrap();

    assert_eq!(actor.audience("x"), Audience { local: true, remote: true });
    actor.broadcast_to(false, "x", bytes("ours"));
    actor.broadcast_to(true, "x", bytes("theirs"));
    actor.broadcast("x", bytes("all"));

    assert_eq!((local.is_remote(), remote.is_remote()), (false, true));
    assert_eq!(here.told(), ["accept", "x ours", "x all"]);
    assert_eq!(elsewhere.told(), ["accept", "x theirs", "x all"]);
}

#[tokio::test]
async fn a_client_is_of_the_same_kind_after_a_sleep() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    for (socket, is_remote) in [(ELSEWHERE, true), (HERE, false)] {
        let client = Arc::<Client>::default();
        let peer = Arc::clone(&client) as Arc<dyn Peer>;
        fixture.host.sockets.lock().insert(socket, peer);
        let made = if is_remote {
            from_elsewhere(&client, Some(socket))
        } else {
            request(&client, Some(socket))
        };
        actor.connect(made).await.unwrap();
    }
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    let next = fixture.started().await;
    let (remote, local) =
        (next.connection_of(ELSEWHERE).unwrap(), next.connection_of(HERE).unwrap());

    assert_eq!((remote.is_remote(), local.is_remote()), (true, false));
    assert_eq!(remote.request().map(|head| &head.path[..]), Some("/connect"));
    assert_eq!(local.request(), None);
}

#[tokio::test]
async fn what_on_before_connect_makes_of_the_parameters_takes_their_place_and_is_stored() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let client = Arc::<Client>::default();
    let peer = Arc::clone(&client) as Arc<dyn Peer>;
    fixture.host.sockets.lock().insert(HERE, peer);
    fixture.script.hold("on_before_connect");
    fixture.script.hold("create_conn_state");
    let connecting = connect(&actor, &client, Some(HERE));
    fixture.settle().await;

    let (connection, reply) = take_hook(&fixture, "on_before_connect");
    assert_eq!(&connection.params()[..], b"params");
    reply.send(Ok(Some(bytes("checked"))));
    fixture.settle().await;
    let (connection, reply) = take_hook(&fixture, "create_conn_state");
    assert_eq!(&connection.params()[..], b"checked");
    reply.send(Ok(None));
    connecting.await.unwrap().unwrap();
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    let next = fixture.started().await;

    assert_eq!(&next.connection_of(HERE).unwrap().params()[..], b"checked");
}

#[tokio::test]
async fn a_handle_says_whether_its_connection_is_there() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = connected(&actor).await;
    assert!(connection.is_visible());

    connection.disconnect("").await.unwrap();

    assert!(!connection.is_visible());
}
