//! What the author's side hands over of connections with a save.

use greenroom::core::behavior::{ActorEvent, StateDelta};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::connections::ConnHandle;
use greenroom::store::{SocketId, StoredConnection};

use crate::connections::{bytes, connected};
use crate::fixture::Fixture;
use crate::hibernation::{SOCKET, interval, lasting, stored};

const OTHER: SocketId = SocketId { request: [3; 4], ..SOCKET };

pub fn state_of(connection: &ConnHandle, state: &'static str) -> StateDelta {
    StateDelta::ConnectionState { id: connection.id().clone(), state: bytes(state) }
}

fn removal_of(connection: &ConnHandle) -> StateDelta {
    StateDelta::ConnectionRemoved { id: connection.id().clone() }
}

fn ids(stored: &[StoredConnection]) -> Vec<&str> {
    stored.iter().map(|stored| &*stored.id).collect()
}

#[tokio::test]
async fn the_state_of_a_connection_is_stored_with_that_of_the_actor_or_not_at_all() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    connection.set_state(bytes("older"));

    let deltas = vec![state_of(&connection, "1"), StateDelta::ActorState(bytes("s"))];
    let number = actor.commit_state(deltas);
    connection.subscribe("x").await.unwrap();
    actor.begun_durable().await.unwrap();

    assert!(number.is_some());
    let record = fixture.stored().await;
    assert_eq!((record.state, record.connections[0].state.clone()), (Some(bytes("s")), bytes("1")));
    assert_eq!(connection.state(), bytes("1"));
    assert_eq!(record.connections[0].subscriptions, ["x"]);
}

#[tokio::test]
async fn a_removal_beats_every_update_of_the_same_commit_whichever_came_first() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, kept) = lasting(&fixture, &actor, SOCKET).await;
    let (_, gone) = lasting(&fixture, &actor, OTHER).await;

    let both = |connection| [state_of(connection, "1"), removal_of(connection)];
    actor.save_state([both(&kept), both(&gone)].concat()).await.unwrap();
    assert_eq!(ids(&stored(&fixture).await), [""; 0]);
    // What changes behind the removal is stored again.
    kept.set_state(bytes("2"));
    actor.commit_rows().unwrap();
    actor.flushed().await.unwrap();
    let [back] = &stored(&fixture).await[..] else { panic!("one is stored") };
    assert_eq!((&*back.id, back.state.clone()), (kept.id().as_str(), bytes("2")));

    actor.queue_connection_removal(kept.id());
    actor.save_state(vec![state_of(&kept, "3")]).await.unwrap();
    assert_eq!(ids(&stored(&fixture).await), [""; 0]);
}

#[tokio::test]
async fn who_saves_directly_is_told_of_a_connection_that_cannot_be_stored() {
    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (_, gone) = lasting(&fixture, &actor, SOCKET).await;
    gone.disconnect("done").await.unwrap();
    actor.save_state(Vec::new()).await.unwrap();
    let (_, brief) = connected(&actor).await;

    let cases = [(&gone, "not_found"), (&brief, "not_hibernatable")];
    for (connection, code) in cases {
        let deltas = vec![StateDelta::ActorState(bytes("s")), state_of(connection, "1")];
        let refused = actor.save_state(deltas).await.unwrap_err();
        assert!(refused.is("connection", code), "{refused}");
        assert_eq!(fixture.stored().await.state, None);
    }
}

#[tokio::test]
async fn a_snapshot_that_names_a_connection_which_went_meanwhile_is_saved() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, gone) = lasting(&fixture, &actor, SOCKET).await;
    fixture.script.hold("serialize_state_save");
    actor.request_save(Default::default());
    fixture.settle().await;

    gone.disconnect("done").await.unwrap();
    actor.begun_durable().await.unwrap();
    let ActorEvent::SerializeState { reply, .. } = fixture.script.take("serialize_state_save")
    else {
        unreachable!("a snapshot is asked for")
    };
    reply.send(Ok(vec![StateDelta::ActorState(bytes("s")), state_of(&gone, "1")]));
    fixture.settle().await;

    let record = fixture.stored().await;
    assert_eq!((record.state, record.connections.len()), (Some(bytes("s")), 0));
}

#[tokio::test]
async fn the_author_sees_what_the_next_commit_stores_and_removes() {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    let (_, kept) = lasting(&fixture, &actor, SOCKET).await;
    let (_, gone) = lasting(&fixture, &actor, OTHER).await;
    let (_, brief) = connected(&actor).await;
    fixture.advance_ms(1_000).await;
    assert!(actor.dirty_connections().is_empty());

    kept.set_state(bytes("1"));
    brief.set_state(bytes("1"));
    gone.closed();

    let dirty = actor.dirty_connections();
    assert_eq!(dirty.iter().map(ConnHandle::id).collect::<Vec<_>>(), [kept.id()]);
    assert_eq!(actor.pending_connection_removals(), [gone.id().clone()]);
    fixture.advance_ms(1_000).await;
    assert!(actor.dirty_connections().is_empty());
    assert!(actor.pending_connection_removals().is_empty());
    assert_eq!(ids(&stored(&fixture).await), [kept.id().as_str()]);
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn what_was_handed_over_with_a_save_that_failed_goes_with_the_next() {
    use greenroom::store::faults::CommitFault;

    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (_, kept) = lasting(&fixture, &actor, SOCKET).await;
    let (_, gone) = lasting(&fixture, &actor, OTHER).await;
    fixture.advance_ms(1_000).await;

    fixture.faults.fail_commits(1, CommitFault::Full);
    let deltas = vec![state_of(&kept, "1"), removal_of(&gone)];
    let failed = actor.save_state(deltas).await.unwrap_err();
    assert!(failed.is("storage", "full"), "{failed}");
    assert_eq!(stored(&fixture).await.len(), 2);
    fixture.advance_ms(2_000).await;

    let [left] = &stored(&fixture).await[..] else { panic!("one is stored") };
    assert_eq!((&*left.id, left.state.clone()), (kept.id().as_str(), bytes("1")));
}
