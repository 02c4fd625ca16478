//! Connections, and when an actor sleeps or stops.

use std::sync::Arc;

use bytes::Bytes;
use greenroom::core::actor::activity::WorkKind;
use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::behavior::StopOutcome;
use greenroom::core::connections::ConnectRequest;

use crate::connections::{Client, bytes, connect, connected, request, take_hook};
use crate::fixture::Fixture;

#[tokio::test]
async fn an_actor_with_a_client_does_not_fall_asleep_until_on_disconnect_has_ended() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = connected(&actor).await;
    fixture.script.hold("on_disconnect");

    fixture.advance_ms(60_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    connection.closed();
    fixture.advance_ms(4_000).await;
    let (_, reply) = take_hook(&fixture, "on_disconnect");
    reply.send(Ok(None));
    fixture.advance_ms(29_999).await;
    assert!(fixture.host.intents.lock().is_empty());
    fixture.advance_ms(1).await;

    assert_eq!(fixture.host.intents.lock().len(), 1);
}

#[tokio::test]
async fn an_on_disconnect_that_does_not_end_is_given_up() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = connected(&actor).await;
    fixture.script.hold("on_disconnect");
    let end = tokio::spawn(connection.disconnect("why"));

    fixture.advance_ms(4_999).await;
    assert!(!end.is_finished());
    assert_eq!(actor.holds()[0].what, WorkKind::DisconnectCallback.label());
    fixture.advance_ms(1).await;

    end.await.unwrap().unwrap();
    assert_eq!(actor.holds(), []);
    // Its late end is nobody's.
    take_hook(&fixture, "on_disconnect").1.send(Ok(None));
    fixture.settle().await;
    assert_eq!(actor.holds(), []);
}

#[tokio::test]
async fn a_stop_ends_every_connection_and_waits_for_on_disconnect() {
    for reason in [StopReason::Sleep, StopReason::Destroy] {
        let fixture = Fixture::new().await;
        let actor = fixture.started().await;
        let (client, _) = connected(&actor).await;
        fixture.script.hold("on_disconnect");

        actor.stop(reason);
        fixture.settle().await;
        let why = if reason == StopReason::Sleep { "stopping" } else { "destroying" };
        assert_eq!(client.told(), ["accept", &format!("close 1000 actor.{why}")]);
        assert!(fixture.host.outcomes.lock().is_empty());
        take_hook(&fixture, "on_disconnect").1.send(Ok(None));
        fixture.settle().await;

        assert_eq!(fixture.host.outcomes.lock().len(), 1);
    }
}

#[tokio::test]
async fn a_client_that_comes_while_the_actor_goes_to_sleep_is_the_next_generations() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_connect");
    let client = Arc::<Client>::default();
    let connecting = connect(&actor, &client, None);
    fixture.settle().await;
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    let late = actor.connect(request(&Arc::default(), None)).await.unwrap_err();
    assert!(late.is("actor", "stopping"), "{late}");
    take_hook(&fixture, "on_connect").1.send(Ok(None));
    let refused = connecting.await.unwrap().unwrap_err();
    fixture.settle().await;

    assert!(refused.is("actor", "stopping"), "{refused}");
    assert_eq!(client.told(), [""; 0]);
    // Its `onConnect` has run, so its `onDisconnect` runs too.
    assert_eq!(fixture.script.count("on_disconnect"), 1);
    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
}

#[tokio::test]
async fn a_call_of_its_own_connection_is_taken_while_the_actor_goes_to_sleep() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    fixture.script.hold("on_sleep");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    let alone = ConnectRequest { params: Bytes::new(), request: None, peer: None, socket: None };

    let connection = actor.connect(alone).await.unwrap();
    connection.send("x", bytes("1"));
    connection.closed();
    fixture.script.answer_hook("on_sleep");
    fixture.settle().await;

    assert_eq!(*fixture.host.outcomes.lock(), [StopOutcome::Slept]);
    assert_eq!(fixture.script.count("on_disconnect"), 1);
}
