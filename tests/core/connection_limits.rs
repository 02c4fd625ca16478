//! How many clients an actor takes, and how they are counted.

use std::sync::Arc;

use greenroom::core::actor::lifecycle::StopReason;
use greenroom::core::config::ActorConfig;
use greenroom::core::connections::MAX_SUBSCRIPTIONS;

use crate::connections::{Client, connect, connected, refusal, request, take_hook};
use crate::fixture::Fixture;
use crate::hibernation::{SOCKET, lasting};

fn metric(fixture: &Fixture, name: &str) -> String {
    let text = fixture.runtime.metrics().encode();
    let start = format!("rivetkit_actor_{name}{{actor_name=\"counter\"}} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&start));
    found.expect("it is listed").to_owned()
}

fn at_most(max_connections: u32) -> ActorConfig {
    ActorConfig { has_state: true, max_connections, ..ActorConfig::default() }
}

#[tokio::test]
async fn a_client_too_many_is_refused_before_any_hook_and_the_next_takes_a_free_place() {
    let fixture = Fixture::with(at_most(1)).await;
    let actor = fixture.started().await;
    let (_, first) = connected(&actor).await;
    let client = Arc::<Client>::default();

    let refused = actor.connect(request(&client, None)).await.unwrap_err();
    assert!(refused.is("connection", "too_many"), "{refused}");
    assert_eq!(fixture.script.count("on_before_connect"), 1);
    first.disconnect("done").await.unwrap();

    actor.connect(request(&client, None)).await.unwrap();
    assert_eq!(client.told(), ["accept"]);
}

#[tokio::test]
async fn clients_that_come_at_the_same_time_do_not_share_the_last_place() {
    let fixture = Fixture::with(at_most(1)).await;
    let actor = fixture.started().await;
    fixture.script.hold("on_before_connect");
    let clients = [Arc::<Client>::default(), Arc::default()];
    let connecting = clients.each_ref().map(|client| connect(&actor, client, None));
    fixture.settle().await;

    for _ in 0..2 {
        take_hook(&fixture, "on_before_connect").1.send(Ok(None));
    }
    let mut accepted = 0;
    for connecting in connecting {
        match connecting.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(error) => assert!(error.is("connection", "too_many"), "{error}"),
        }
    }

    assert_eq!((accepted, actor.connections().len()), (1, 1));
    assert_eq!(fixture.script.count("on_disconnect"), 0);
}

#[tokio::test]
async fn a_connection_that_outlived_a_sleep_needs_no_free_place() {
    let fixture = Fixture::with(at_most(1)).await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    actor.stop(StopReason::Sleep);
    fixture.settle().await;

    let next = fixture.started().await;

    assert_eq!(next.connection_of(SOCKET).unwrap().id(), connection.id());
    assert_eq!(metric(&fixture, "connections_active"), "1");
    assert_eq!(metric(&fixture, "connections_total"), "1");
}

#[tokio::test]
async fn a_subscription_too_many_is_refused_and_leaves_the_client_connected() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, connection) = connected(&actor).await;
    for n in 0..MAX_SUBSCRIPTIONS {
        connection.subscribe(&n.to_string()).await.unwrap();
    }

    let refused = connection.subscribe("more").await.unwrap_err();

    assert!(refused.is("connection", "too_many_subscriptions"), "{refused}");
    assert_eq!(actor.connections().len(), 1);
    assert_eq!(connection.subscriptions().len(), MAX_SUBSCRIPTIONS);
}

#[tokio::test]
async fn clients_are_counted_while_they_are_there_and_once_when_they_are_accepted() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let (_, first) = connected(&actor).await;
    connected(&actor).await;
    fixture.script.hold("on_connect");
    let client = Arc::<Client>::default();
    let connecting = connect(&actor, &client, None);
    fixture.settle().await;

    assert_eq!(metric(&fixture, "connections_active"), "3");
    take_hook(&fixture, "on_connect").1.send(Err(refusal()));
    connecting.await.unwrap().unwrap_err();
    first.closed();

    assert_eq!(metric(&fixture, "connections_active"), "1");
    assert_eq!(metric(&fixture, "connections_total"), "2");
    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert_eq!(metric(&fixture, "connections_active"), "0");
}
