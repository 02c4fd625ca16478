//! States of connections in a state transaction: they come back when it is rolled back.

use std::sync::Arc;

use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::{StateDelta, StopOutcome};
use greenroom::core::config::ActorConfig;
use greenroom::core::context::ActorContext;
use greenroom::core::transaction::TransactionOwner;
use greenroom::store::SocketId;
use greenroom::time::Duration;

use crate::connection_saves::state_of;
use crate::connections::{Client, bytes, connect, connected};
use crate::fixture::Fixture;
use crate::hibernation::{SOCKET, interval, lasting, stored};

const TIMEOUT: Duration = Duration::from_secs(5);

async fn open(actor: &ActorContext) -> TransactionOwner {
    let (owner, opened) = actor.begin_state_transaction(TIMEOUT);
    opened.await.unwrap();
    owner
}

#[tokio::test]
async fn a_rollback_gives_connections_the_states_back_that_they_had() {
    for end in ["rollback", "drop", "expiry", "refusal"] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
        let (_, brief) = connected(&actor).await;
        connection.set_state(bytes("before"));
        actor.commit_rows().unwrap();
        actor.flushed().await.unwrap();
        let owner = open(&actor).await;

        connection.set_state(bytes("within"));
        assert!(actor.commit_rows().is_none(), "nothing is committed while it is open");
        match end {
            "rollback" => owner.roll_back().await,
            "drop" => drop(owner),
            "expiry" => {
                let ended = owner.transaction().ended();
                fixture.clock.advance(TIMEOUT);
                ended.await.unwrap_err();
            }
            _ => {
                let deltas = vec![StateDelta::ActorState(bytes("s")), state_of(&brief, "1")];
                let refused = owner.commit_deltas(deltas, true).err().expect("refused");
                assert!(refused.is("connection", "not_hibernatable"), "{refused}");
            }
        }
        actor.begun_durable().await.unwrap();

        assert_eq!(connection.state(), bytes("before"), "{end}");
        let record = fixture.stored().await;
        assert_eq!((record.state, record.connections[0].state.clone()), (None, bytes("before")));
        actor.commit_rows();
        actor.flushed().await.unwrap();
        assert_eq!(stored(&fixture).await[0].state, bytes("before"), "{end}");
    }
}

#[tokio::test]
async fn a_commit_stores_them_with_everything_else_of_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, set) = lasting(&fixture, &actor, SOCKET).await;
    let other = SocketId { request: [3; 4], ..SOCKET };
    let (_, handed_over) = lasting(&fixture, &actor, other).await;
    let owner = open(&actor).await;

    set.set_state(bytes("1"));
    let deltas = vec![StateDelta::ActorState(bytes("s")), state_of(&handed_over, "2")];
    let (_, durable) = owner.commit_deltas(deltas, true).unwrap();
    durable.await.unwrap();

    let record = fixture.stored().await;
    assert_eq!(record.state, Some(bytes("s")));
    let state = |socket| {
        let of_socket = record.connections.iter().find(|stored| stored.socket == socket);
        of_socket.unwrap().state.clone()
    };
    assert_eq!((state(SOCKET), state(other)), (bytes("1"), bytes("2")));
    assert_eq!(handed_over.state(), bytes("2"));
}

#[tokio::test]
async fn one_that_is_open_at_the_end_of_the_generation_leaves_nothing_of_them() {
    for config in [interval(), ActorConfig::default()] {
        let fixture = Fixture::with(config).await;
        let actor = fixture.started().await;
        let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
        connection.set_state(bytes("before"));
        actor.commit_rows().unwrap();
        // Longer than the grace period, so that this ends it.
        let (owner, opened) = actor.begin_state_transaction(Duration::from_secs(600));
        opened.await.unwrap();
        connection.set_state(bytes("within"));

        actor.stop(StopReason::Sleep);
        fixture.advance(Duration::from_secs(60)).await;
        assert_eq!(fixture.host.outcomes.lock().pop(), Some(StopOutcome::Slept));
        drop(owner);

        assert_eq!(stored(&fixture).await[0].state, bytes("before"));
    }
}

#[tokio::test]
async fn a_client_that_comes_while_one_is_open_is_accepted_when_it_has_ended() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let owner = open(&actor).await;
    let client = Arc::<Client>::default();
    let connecting = connect(&actor, &client, Some(SOCKET));
    fixture.settle().await;
    assert_eq!(client.told(), [""; 0]);

    owner.roll_back().await;
    let connection = connecting.await.unwrap().unwrap();

    assert_eq!(client.told(), ["accept"]);
    assert_eq!(stored(&fixture).await[0].id, connection.id().as_str());
    connection.acknowledge(1).unwrap();
}

#[tokio::test]
async fn a_socket_that_closes_while_one_is_open_runs_on_disconnect_in_this_generation() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    let owner = open(&actor).await;

    connection.acknowledge(1).unwrap();
    connection.closed();
    fixture.settle().await;
    assert_eq!(fixture.script.count("on_disconnect"), 1);
    owner.roll_back().await;
    fixture.settle().await;

    assert!(stored(&fixture).await.is_empty());
    assert!(actor.connections().is_empty());
}
