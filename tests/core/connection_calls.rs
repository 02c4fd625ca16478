//! Calls over a connection, and connections of a single request.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{ActorEvent, Caller, Reply, StopOutcome};
use greenroom::core::connections::{ConnHandle, ConnectRequest};
use greenroom::core::context::{ActorContext, CallRequest};
use greenroom::error::{Error, ErrorCode};
use tokio::sync::oneshot;

use crate::connections::{Client, bytes, connect, connected, take_hook};
use crate::fixture::{Answer, Fixture, call};

/// An action that a client calls.
fn action(name: &str) -> (CallRequest, Answer) {
    let (answer, answered) = oneshot::channel();
    let request = CallRequest {
        name: name.to_owned(),
        args: bytes("args"),
        caller: Caller::Client,
        origin: 0,
        taken_by: None,
        reply: Reply::new(move |result| drop(answer.send(result))),
    };
    (request, answered)
}

fn refused(connection: &ConnHandle) -> Error {
    let (request, _) = action("echo");
    let (error, request) = *connection.call(request).unwrap_err();
    assert_eq!(request.name, "echo");
    error
}

/// Ends the held action over its connection; returns that.
fn end_action(fixture: &Fixture, actor: &ActorContext) -> Option<ConnHandle> {
    let ActorEvent::Action { call, connection, .. } = fixture.script.take("action") else {
        unreachable!("an action")
    };
    actor.begin_call(call);
    actor.finish_call(call, Ok(bytes("done")));
    connection
}

async fn alone(actor: &ActorContext) -> ConnHandle {
    let request = ConnectRequest { params: Bytes::new(), request: None, peer: None, socket: None };
    actor.connect(request).await.unwrap()
}

#[tokio::test]
async fn an_action_knows_the_connection_that_calls_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = connected(&actor).await;
    connected(&actor).await;
    fixture.script.hold("action");

    let (request, mut answer) = action("echo");
    connection.call(request).unwrap();
    let by = end_action(&fixture, &actor).expect("it came over a connection");
    assert_eq!(by.id(), connection.id());
    assert_eq!(answer.try_recv().unwrap().unwrap(), bytes("done"));

    let mut answer = call(&actor, "echo");
    assert!(end_action(&fixture, &actor).is_none());
    assert!(answer.try_recv().unwrap().is_ok());
}

#[tokio::test]
async fn nothing_is_called_over_a_connection_that_is_gone_or_not_accepted() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, gone) = connected(&actor).await;
    gone.disconnect("done").await.unwrap();
    fixture.script.hold("on_connect");
    let client = Arc::<Client>::default();
    let connecting = connect(&actor, &client, None);
    fixture.settle().await;
    let (opening, reply) = take_hook(&fixture, "on_connect");

    for connection in [&gone, &opening] {
        let error = refused(connection);
        assert!(error.is("connection", "not_found"), "{error}");
    }
    assert_eq!(fixture.script.count("action"), 0);

    reply.send(Ok(None));
    let connection = connecting.await.unwrap().unwrap();
    let (request, mut answer) = action("echo");
    connection.call(request).unwrap();
    assert_eq!(answer.try_recv().unwrap().unwrap(), bytes("args"));
    actor.break_generation(Error::new(ErrorCode::new("storage", "full"), "the disk is full"));
    fixture.settle().await;
    assert!(refused(&connection).is("storage", "full"));
}

#[tokio::test]
async fn a_call_that_runs_outlives_its_connection() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = connected(&actor).await;
    connection.set_state(bytes("kept"));
    fixture.script.hold("action");
    let (request, mut answer) = action("slow");
    connection.call(request).unwrap();

    connection.closed();
    fixture.settle().await;
    let by = end_action(&fixture, &actor).expect("it came over a connection");

    assert_eq!(by.state(), bytes("kept"));
    assert!(answer.try_recv().unwrap().is_ok());
    assert!(actor.connections().is_empty());
}

#[tokio::test]
async fn the_connection_of_a_request_ends_with_it_also_when_that_is_given_up() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("action");

    for given_up in [false, true] {
        let connection = alone(&actor).await.for_request();
        let (request, answer) = action("echo");
        connection.call(request).unwrap();
        assert_eq!(actor.connections().len(), 1);
        if given_up {
            drop((connection, answer));
            end_action(&fixture, &actor);
        } else {
            end_action(&fixture, &actor);
            drop(connection);
        }
        fixture.settle().await;
        assert!(actor.connections().is_empty());
    }

    let hooks = ["on_before_connect", "create_conn_state", "on_connect", "on_disconnect"];
    assert_eq!(hooks.map(|label| fixture.script.count(label)), [2; 4]);
    assert_eq!(fixture.script.count("on_wake"), 1);
    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn a_broadcast_during_on_connect_reaches_a_client_only_once_it_is_accepted() {
    for rejects in [true, false] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        fixture.script.hold("on_connect");
        let client = Arc::<Client>::default();
        let connecting = connect(&actor, &client, None);
        fixture.settle().await;
        let (connection, reply) = take_hook(&fixture, "on_connect");

        connection.send("first", bytes("1"));
        connection.subscribe("x").await.unwrap();
        actor.broadcast("x", bytes("2"));
        connection.send("last", bytes("3"));
        fixture.settle().await;
        assert_eq!(client.told(), [""; 0]);
        let refusal = Error::new(ErrorCode::new("user", "refused"), "no");
        reply.send(if rejects { Err(refusal) } else { Ok(None) });
        let outcome = connecting.await.unwrap();
        actor.broadcast("x", bytes("4"));
        fixture.settle().await;

        assert_eq!(outcome.is_err(), rejects);
        let told = client.told();
        if rejects {
            assert_eq!(told, [""; 0]);
        } else {
            assert_eq!(told, ["accept", "first 1", "x 2", "last 3", "x 4"]);
        }
    }
}
