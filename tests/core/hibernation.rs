//! Connections that outlive the sleep of their actor.

use std::sync::Arc;

use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{StateDelta, StopOutcome};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::connections::{Arrival, ConnHandle, Peer};
use greenroom::core::context::ActorContext;
use greenroom::core::schedule::OneShot;
use greenroom::error::{Error, ErrorCode};
use greenroom::store::{SocketId, StoredConnection};

use crate::connections::{Client, bytes, connect, connected, request, take_hook};
use crate::fixture::Fixture;

pub const SOCKET: SocketId = SocketId { gateway: [1; 4], request: [2; 4] };

/// Connects a client whose socket the host has.
pub async fn lasting(
    fixture: &Fixture,
    actor: &ActorContext,
    socket: SocketId,
) -> (Arc<Client>, ConnHandle) {
    let client = Arc::<Client>::default();
    let peer = Arc::clone(&client) as Arc<dyn Peer>;
    fixture.host.sockets.lock().insert(socket, peer);
    let connection = actor.connect(request(&client, Some(socket))).await.unwrap();
    (client, connection)
}

async fn slept(fixture: &Fixture, actor: &ActorContext) {
    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert_eq!(fixture.host.outcomes.lock().pop(), Some(StopOutcome::Slept));
}

pub async fn stored(fixture: &Fixture) -> Vec<StoredConnection> {
    fixture.stored().await.connections
}

pub fn interval() -> ActorConfig {
    ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() }
}

#[tokio::test]
async fn a_socket_that_stays_open_finds_its_connection_again_without_any_hook() {
    for config in [ActorConfig { has_state: true, ..ActorConfig::default() }, interval()] {
        let fixture = Fixture::with(config).await;
        let actor = fixture.started().await;
        let (client, connection) = lasting(&fixture, &actor, SOCKET).await;
        connection.subscribe("x").await.unwrap();
        connection.set_state(bytes("state"));
        connection.acknowledge(1).unwrap();
        slept(&fixture, &actor).await;

        let next = fixture.started().await;
        let again = next.connection_of(SOCKET).unwrap();
        next.broadcast("x", bytes("1"));

        assert_eq!((again.id(), again.state()), (connection.id(), bytes("state")));
        assert_eq!(
            (&again.params()[..], again.subscriptions()),
            (&b"params"[..], vec!["x".into()])
        );
        assert!(again.is_hibernatable());
        assert_eq!(again.arrival(1).unwrap(), Arrival::Duplicate);
        assert_eq!(again.arrival(2).unwrap(), Arrival::Next);
        assert_eq!(client.told(), ["accept", "x 1"]);
        for (hook, times) in [("on_before_connect", 1), ("on_connect", 1), ("on_disconnect", 0)] {
            assert_eq!(fixture.script.count(hook), times, "{hook}");
        }
    }
}

#[tokio::test]
async fn hooks_of_the_start_see_the_connection_and_reach_its_client() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, _) = lasting(&fixture, &actor, SOCKET).await;
    slept(&fixture, &actor).await;
    fixture.script.hold("on_wake");

    let next = fixture.generation();
    let starting = {
        let next = next.clone();
        tokio::spawn(async move { next.start().await })
    };
    fixture.settle().await;
    next.connections()[0].send("x", bytes("1"));
    fixture.script.answer_hook("on_wake");
    starting.await.unwrap().unwrap();

    assert_eq!(client.told(), ["accept", "x 1"]);
}

#[tokio::test]
async fn an_actor_falls_asleep_with_such_a_client_and_stays_awake_for_another() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    lasting(&fixture, &actor, SOCKET).await;
    let (_, other) = connected(&actor).await;

    fixture.advance_ms(60_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    other.closed();
    fixture.advance_ms(30_000).await;

    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn a_sleep_ends_the_other_connections_and_a_destroy_ends_all() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (lasts, _) = lasting(&fixture, &actor, SOCKET).await;
    let (brief, _) = connected(&actor).await;
    slept(&fixture, &actor).await;
    assert_eq!(lasts.told(), ["accept"]);
    assert_eq!(brief.told(), ["accept", "close 1000 actor.stopping"]);
    assert_eq!(stored(&fixture).await.len(), 1);

    let next = fixture.started().await;
    next.stop(StopReason::Destroy);
    fixture.settle().await;

    assert_eq!(lasts.told(), ["accept", "close 1000 actor.destroying"]);
    assert_eq!(stored(&fixture).await, []);
    assert_eq!(fixture.script.count("on_disconnect"), 2);
}

#[tokio::test]
async fn a_socket_that_was_closed_meanwhile_has_its_on_disconnect_in_the_next_generation_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = lasting(&fixture, &actor, SOCKET).await;
    let other = SocketId { request: [3; 4], ..SOCKET };
    lasting(&fixture, &actor, other).await;
    slept(&fixture, &actor).await;
    fixture.host.sockets.lock().remove(&SOCKET);
    fixture.script.hold("on_disconnect");

    let next = fixture.started().await;
    let refused = next.connection_of(SOCKET).unwrap_err();
    assert!(refused.is("connection", "restore_not_found"), "{refused}");
    assert_eq!(next.connections().len(), 1);
    let (gone, reply) = take_hook(&fixture, "on_disconnect");
    assert_eq!(gone.id(), connection.id());
    reply.send(Ok(None));
    slept(&fixture, &next).await;
    fixture.started().await;

    assert_eq!(fixture.script.count("on_disconnect"), 1);
    assert_eq!(client.told(), ["accept"]);
    assert_eq!(stored(&fixture).await.len(), 1);
}

#[tokio::test]
async fn a_socket_that_closes_while_the_actor_starts_has_its_on_disconnect_behind_the_start() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    lasting(&fixture, &actor, SOCKET).await;
    slept(&fixture, &actor).await;
    fixture.script.hold("on_wake");
    let next = fixture.generation();
    let starting = {
        let next = next.clone();
        tokio::spawn(async move { next.start().await })
    };
    fixture.settle().await;

    next.connection_of(SOCKET).unwrap().closed();
    fixture.settle().await;
    assert!(next.connections().is_empty());
    assert_eq!(fixture.script.count("on_disconnect"), 0);
    assert_eq!(stored(&fixture).await.len(), 1);
    fixture.script.answer_hook("on_wake");
    starting.await.unwrap().unwrap();
    next.flushed().await.unwrap();

    assert_eq!(fixture.script.count("on_disconnect"), 1);
    assert_eq!(stored(&fixture).await, []);
}

#[tokio::test]
async fn a_socket_that_closes_behind_the_last_commit_is_the_next_generations() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    slept(&fixture, &actor).await;

    fixture.host.sockets.lock().remove(&SOCKET);
    connection.closed();
    fixture.settle().await;
    assert_eq!(fixture.script.count("on_disconnect"), 0);
    fixture.started().await;

    assert_eq!(fixture.script.count("on_disconnect"), 1);
    assert_eq!(stored(&fixture).await, []);
}

#[tokio::test]
async fn a_client_is_accepted_once_its_connection_is_stored_and_its_removal_is_stored_too() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let (client, connection) = lasting(&fixture, &actor, SOCKET).await;
    assert_eq!(client.told(), ["accept"]);
    assert_eq!(stored(&fixture).await[0].socket, SOCKET);
    connection.closed();
    actor.flushed().await.unwrap();

    assert_eq!(stored(&fixture).await, []);
}

#[tokio::test]
async fn a_rejected_connection_is_never_stored() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_connect");
    let connecting = connect(&actor, &Arc::default(), Some(SOCKET));
    fixture.settle().await;
    let (connection, reply) = take_hook(&fixture, "on_connect");
    connection.set_state(bytes("state"));
    actor.mark_dirty();
    actor.commit_state(vec![StateDelta::ActorState(bytes("s"))]).unwrap();
    actor.flushed().await.unwrap();
    assert_eq!(stored(&fixture).await, []);

    reply.send(Err(Error::new(ErrorCode::new("user", "refused"), "no")));
    connecting.await.unwrap().unwrap_err();
    slept(&fixture, &actor).await;

    assert_eq!(stored(&fixture).await, []);
}

#[tokio::test]
async fn a_changed_connection_state_is_stored_with_the_turn_and_outputs_wait_for_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = lasting(&fixture, &actor, SOCKET).await;

    connection.set_state(bytes("1"));
    connection.send("x", bytes("1"));
    connection.set_state(bytes("2"));
    fixture.settle().await;
    assert_eq!(client.told(), ["accept"]);
    let number = actor.commit_state(vec![StateDelta::ActorState(bytes("s"))]);
    assert!(number.is_some());
    fixture.settle().await;

    assert_eq!(client.told(), ["accept", "x 1"]);
    let record = fixture.stored().await;
    assert_eq!((record.state, record.connections[0].state.clone()), (Some(bytes("s")), bytes("2")));
}

#[tokio::test]
async fn a_changed_connection_state_is_committed_without_the_state_of_the_actor_too() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;

    connection.set_state(bytes("1"));
    assert!(actor.commit_rows().is_some());
    actor.flushed().await.unwrap();

    assert_eq!(stored(&fixture).await[0].state, bytes("1"));
    assert!(actor.commit_rows().is_none());
}

#[tokio::test]
async fn the_number_of_a_message_goes_with_the_next_commit_and_holds_no_output() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = lasting(&fixture, &actor, SOCKET).await;

    connection.acknowledge(7).unwrap();
    connection.send("x", bytes("1"));
    fixture.settle().await;
    assert_eq!(client.told(), ["accept", "x 1"]);
    assert_eq!(stored(&fixture).await[0].server_index, 0);
    connection.set_state(bytes("1"));
    actor.commit_rows().unwrap();
    actor.flushed().await.unwrap();

    assert_eq!(stored(&fixture).await[0].server_index, 7);
}

#[tokio::test]
async fn nothing_is_noted_of_a_message_behind_the_last_commit() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    fixture.script.hold("on_sleep");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    connection.acknowledge(1).unwrap();
    fixture.script.answer_hook("on_sleep");
    fixture.settle().await;
    let late = connection.acknowledge(2).unwrap_err();

    assert!(late.is("actor", "stopping"), "{late}");
    assert_eq!(stored(&fixture).await[0].server_index, 1);
    let (_, brief) = {
        let next = fixture.started().await;
        connected(&next).await
    };
    let refused = brief.acknowledge(1).unwrap_err();
    assert!(refused.is("connection", "not_hibernatable"), "{refused}");
}

#[tokio::test]
async fn with_durability_interval_changes_go_with_the_next_save() {
    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (client, connection) = lasting(&fixture, &actor, SOCKET).await;
    fixture.advance_ms(1_000).await;
    assert_eq!(stored(&fixture).await.len(), 1);

    connection.set_state(bytes("1"));
    connection.send("x", bytes("1"));
    assert_eq!(client.told(), ["accept", "x 1"]);
    fixture.advance_ms(1_000).await;

    assert_eq!(stored(&fixture).await[0].state, bytes("1"));
}

#[tokio::test]
async fn a_change_that_waits_for_the_next_save_delays_no_job() {
    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    fixture.script.hold("action");
    let (action, args) = ("ring".to_owned(), bytes("args"));
    let shot = OneShot { trigger_at: 0, action, args, retry: None, key: None };
    fixture.advance_ms(1_000).await;
    let planned = actor.schedule().after(50.0, shot);
    actor.commit_rows();
    planned.await.unwrap();

    connection.set_state(bytes("1"));
    assert_eq!(actor.dirty_connections().len(), 1);
    fixture.advance_ms(50).await;

    assert_eq!(fixture.script.waiting("action"), 1);
    // What goes at once anyway takes the change along.
    assert_eq!(stored(&fixture).await[0].state, bytes("1"));
}

#[tokio::test]
async fn a_client_survives_the_break_of_a_generation_with_what_was_durable() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (client, connection) = lasting(&fixture, &actor, SOCKET).await;
    connection.subscribe("x").await.unwrap();
    actor.flushed().await.unwrap();
    connection.set_state(bytes("lost"));
    connection.send("x", bytes("lost"));

    actor.break_generation(Error::new(ErrorCode::new("storage", "full"), "the disk is full"));
    fixture.settle().await;
    let next = fixture.started().await;
    next.broadcast("x", bytes("1"));

    assert_eq!(client.told(), ["accept", "x 1"]);
    assert_eq!(next.connection_of(SOCKET).unwrap().state(), bytes(""));
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_save_that_failed_and_is_tried_again_carries_what_the_first_one_took() {
    use greenroom::store::faults::CommitFault;

    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (_, kept) = lasting(&fixture, &actor, SOCKET).await;
    let other = SocketId { request: [3; 4], ..SOCKET };
    let (_, gone) = lasting(&fixture, &actor, other).await;
    fixture.advance_ms(1_000).await;
    assert_eq!(stored(&fixture).await.len(), 2);

    kept.set_state(bytes("1"));
    gone.closed();
    fixture.faults.fail_commits(1, CommitFault::Full);
    fixture.advance_ms(1_000).await;
    assert_eq!(stored(&fixture).await.len(), 2);
    fixture.advance_ms(2_000).await;

    let left = stored(&fixture).await;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].socket, left[0].state.clone()), (SOCKET, bytes("1")));
}
