//! The queue within an actor: what is durable when, what wakes whom, and what is left
//! by sleep, restart and failure.

use std::num::NonZeroU32;

use bytes::Bytes;
use greenroom::core::actor::lifecycle::{Intent, StopReason};
use greenroom::core::config::{ActorConfig, Durability};
use greenroom::core::messages::{Receive, Until};
use greenroom::core::queue::{Backoff, Names, NewMessage, QueuePolicy};
use greenroom::error::Error;
use greenroom::store::MessageId;
use greenroom::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::fixture::Fixture;
use crate::messages::*;

#[tokio::test]
async fn a_send_resolves_when_its_turn_is_durable_and_a_message_when_its_removal_is() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;

    let mut sent = actor.queue().send(message("job"));
    let mut received = actor.queue().receive(plain());
    fixture.settle().await;
    assert!(is_open(&mut sent) && is_open(&mut received), "the turn has not ended");
    actor.commit_rows().unwrap();
    fixture.settle().await;

    assert_eq!(ended(&fixture, &mut sent).await.unwrap().id, MessageId(1));
    let received = ended(&fixture, &mut received).await.unwrap();
    assert_eq!(&received[0].delivery().body[..], b"body of job");
    assert!(fixture.stored().await.queue.messages.is_empty());
    let metrics = fixture.runtime.metrics().encode();
    for counted in ["messages_sent_total", "messages_received_total"] {
        let line = format!("rivetkit_actor_queue_{counted}{{actor_name=\"counter\"}} 1\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn a_send_wakes_the_wait_for_it_and_no_other() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let names = |name: &str| Receive { names: Names::of([name]), ..plain() };
    let mut other = actor.queue().receive(names("other"));
    let mut job = actor.queue().receive(names("job"));
    let mut notice = actor.queue().wait_for_names_available(Names::of(["job"]), Until::default());

    send(&actor, message("job")).await;
    fixture.settle().await;

    assert_eq!(ids(&ended(&fixture, &mut job).await.unwrap()), [1]);
    assert!(is_open(&mut other) && is_open(&mut notice));
    send(&actor, message("job")).await;
    ended(&fixture, &mut notice).await.unwrap();
    assert_eq!(actor.queue().len(), 1);
}

#[tokio::test]
async fn a_wait_ends_at_its_timeout_and_not_before() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let until = within(50);
    let mut received = actor.queue().receive(Receive { until: until.clone(), ..plain() });
    let mut named = actor.queue().wait_for_names(Receive { until: until.clone(), ..plain() });
    let mut notice = actor.queue().wait_for_names_available(Names::Any, until.clone());
    let mut answer = actor.queue().send_and_wait(delayed("job", 1_000), until);
    actor.commit_rows();

    fixture.advance_ms(49).await;
    assert!(is_open(&mut received) && is_open(&mut named) && is_open(&mut notice));
    assert!(is_open(&mut answer));
    fixture.advance_ms(1).await;

    assert!(ended(&fixture, &mut received).await.unwrap().is_empty());
    let errors = [
        refused(ended(&fixture, &mut named).await),
        refused(ended(&fixture, &mut notice).await),
        refused(ended(&fixture, &mut answer).await),
    ];
    for error in errors {
        assert!(error.is("queue", "timed_out"), "{error}");
        assert_eq!(error.metadata, Some(serde_json::json!({ "timeout_ms": 50 })));
        assert_eq!((error.public, error.status_code), (Some(true), Some(400)));
    }
    assert_eq!(actor.queue().len(), 1, "the message stays");
}

#[tokio::test]
async fn a_delayed_message_comes_at_its_moment_and_is_the_alarm_until_then() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let mut received = actor.queue().receive(plain());
    let alarms = || fixture.store.earliest_alarms(10);

    send(&actor, delayed("job", 5_000)).await;
    assert_eq!(alarms().await.unwrap(), [(fixture.row.number, 1_005_000)]);
    fixture.advance_ms(4_999).await;
    assert!(is_open(&mut received));
    fixture.advance_ms(1).await;

    assert_eq!(ids(&ended(&fixture, &mut received).await.unwrap()), [1]);
    assert_eq!(alarms().await.unwrap(), []);
}

#[tokio::test]
async fn while_a_consumer_has_a_message_a_crash_is_answered_with_a_start_and_a_sleep_is_not() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let alarms = || fixture.store.earliest_alarms(10);
    send(&actor, message("job")).await;
    assert_eq!(alarms().await.unwrap(), [], "what waits wakes nobody");

    let first = take(&actor).await.unwrap();
    assert_eq!(alarms().await.unwrap(), [(fixture.row.number, 1_000_000)]);
    let done = first.complete(None);
    actor.commit_rows();
    done.await.unwrap();
    send(&actor, message("job")).await;
    let second = take(&actor).await.unwrap();
    assert_eq!(second.delivery().id, MessageId(2));
    let due = [(fixture.row.number, 1_000_000)];
    assert_eq!(alarms().await.unwrap(), due, "the directory is not told of each message");

    sleep_and_wake(&fixture, &actor).await;

    assert_eq!(alarms().await.unwrap(), []);
}

#[tokio::test]
async fn an_alarm_that_has_passed_is_not_left_to_a_sleeping_actor() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    send(&actor, delayed("job", 10)).await;
    send(&actor, delayed("job", 9_000)).await;

    fixture.advance_ms(10).await;
    let actor = sleep_and_wake(&fixture, &actor).await;
    let alarms = fixture.store.earliest_alarms(10).await.unwrap();
    assert_eq!(alarms, [(fixture.row.number, 1_009_000)]);
    fixture.advance_ms(9_000).await;
    sleep_and_wake(&fixture, &actor).await;

    assert_eq!(fixture.store.earliest_alarms(10).await.unwrap(), []);
}

#[tokio::test]
async fn a_given_up_wait_takes_nothing_and_a_message_goes_before_a_given_up_signal() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let signal = CancellationToken::new();
    let until = Until { timeout: None, signal: Some(signal.clone()) };
    let mut parked = actor.queue().receive(Receive { until: until.clone(), ..plain() });
    drop(actor.queue().receive(plain()));

    assert!(is_open(&mut parked));
    signal.cancel();
    assert!(refused(ended(&fixture, &mut parked).await).is("actor", "aborted"));
    send(&actor, message("job")).await;
    let there = actor.queue().receive(Receive { until: until.clone(), ..plain() }).await.unwrap();
    let mut late = actor.queue().receive(Receive { until, ..plain() });

    assert_eq!(ids(&there), [1], "neither wait that was given up has it");
    assert!(refused(ended(&fixture, &mut late).await).is("actor", "aborted"));
}

#[tokio::test]
async fn a_stop_ends_waits_for_messages_and_what_is_sent_meanwhile_is_kept() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_sleep");
    let actor = fixture.started().await;
    let mut parked = actor.queue().receive(plain());
    let mut answer = actor.queue().send_and_wait(delayed("job", 60_000), Until::default());
    actor.commit_rows();

    actor.stop(StopReason::Sleep);
    fixture.settle().await;
    assert!(refused(ended(&fixture, &mut parked).await).is("actor", "aborted"));
    assert!(is_open(&mut answer));
    send(&actor, message("late")).await;
    fixture.script.answer_hook("on_sleep");
    fixture.advance_ms(1).await;

    assert!(refused(ended(&fixture, &mut answer).await).is("actor", "stopping"));
    assert_eq!(actor.next_alarm(), Some(1_000_000), "the next generation is to take it");
    let again = fixture.started().await;
    assert_eq!(ids(&again.queue().receive(plain()).await.unwrap()), [2]);
}

#[tokio::test]
async fn a_message_that_comes_due_while_the_actor_falls_asleep_wakes_it_again() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_sleep");
    let actor = fixture.started().await;
    let _parked = actor.queue().receive(plain());
    send(&actor, delayed("job", 10)).await;

    actor.stop(StopReason::Sleep);
    fixture.advance_ms(20).await;
    fixture.script.answer_hook("on_sleep");
    fixture.advance_ms(1).await;

    assert_eq!(actor.next_alarm(), Some(1_000_010));
    let alarms = fixture.store.earliest_alarms(10).await.unwrap();
    assert_eq!(alarms, [(fixture.row.number, 1_000_010)]);
}

#[tokio::test]
async fn a_run_that_waits_for_messages_lets_the_actor_sleep_and_one_that_works_does_not() {
    let mut fixture = Fixture::with(ActorConfig {
        sleep_timeout: Duration::from_secs(5),
        ..ActorConfig::default()
    })
    .await;
    fixture.hooks.run = true;
    fixture.script.hold("run");
    let actor = fixture.started().await;

    fixture.advance_ms(10_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    let parked = actor.queue().receive(plain());
    fixture.advance_ms(4_999).await;
    send(&actor, message("job")).await;
    assert_eq!(ids(&parked.await.unwrap()), [1]);
    fixture.advance_ms(10_000).await;
    assert!(fixture.host.intents.lock().is_empty());
    let _parked = actor.queue().receive(plain());
    fixture.advance_ms(5_000).await;

    assert_eq!(*fixture.host.intents.lock(), [Intent::Sleep { error: None }]);
}

#[tokio::test]
async fn a_message_that_was_not_completed_comes_again_after_a_restart() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    send(&actor, message("job")).await;
    let first = take(&actor).await.unwrap();
    assert!(take(&actor).await.is_none(), "somebody has it");
    assert_eq!(fixture.stored().await.queue.messages[0].deliveries, 1);

    let actor = sleep_and_wake(&fixture, &actor).await;
    let second = take(&actor).await.unwrap();

    assert_eq!((first.delivery().deliveries, second.delivery().deliveries), (1, 2));
    assert_eq!(&second.delivery().body[..], b"body of job");
    let done = second.complete(None);
    actor.commit_rows();
    done.await.unwrap();
    assert!(fixture.stored().await.queue.messages.is_empty());
    assert!(refused(first.complete(None).await).is("actor", "stopping"), "its actor is over");
}

#[tokio::test]
async fn a_message_ends_once_and_only_if_it_was_to_be_ended() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    send(&actor, message("job")).await;
    send(&actor, message("job")).await;
    let received = take(&actor).await.unwrap();
    let simple = actor.queue().receive(plain()).await.unwrap().remove(0);

    let done = received.complete(None);
    let again = refused(received.complete(None).await);
    let back = refused(received.release(None, None).await);
    actor.commit_rows();
    done.await.unwrap();
    let not_configured = refused(simple.complete(None).await);

    assert!(again.is("queue", "already_completed") && back.is("queue", "already_completed"));
    assert!(not_configured.is("queue", "complete_not_configured"));
    assert_eq!(not_configured.metadata, Some(serde_json::json!({ "name": "job" })));
}

#[tokio::test]
async fn who_sends_and_waits_hears_the_response_when_the_completion_is_durable() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let mut answer = actor.queue().send_and_wait(message("job"), Until::default());
    actor.commit_rows();
    let received = take(&actor).await.unwrap();

    let done = received.complete(Some(Bytes::from_static(b"done")));
    fixture.settle().await;
    assert!(is_open(&mut answer));
    actor.commit_rows();
    done.await.unwrap();

    assert_eq!(ended(&fixture, &mut answer).await.unwrap(), Some(Bytes::from_static(b"done")));
}

#[tokio::test]
async fn a_bad_message_dies_is_listed_and_revived_or_deleted() {
    let backoff =
        Backoff { initial: Duration::from_millis(100), max: Duration::from_millis(1_000) };
    let policy = QueuePolicy { max_deliveries: NonZeroU32::new(2), backoff: Some(backoff) };
    let fixture = Fixture::with(with_policy(policy)).await;
    let actor = fixture.started().await;
    let id = send(&actor, message("job")).await;

    for error in ["first", "second"] {
        let received = take(&actor).await.unwrap();
        let back = received.release(None, Some(error.to_owned()));
        actor.commit_rows();
        back.await.unwrap();
        assert!(take(&actor).await.is_none());
        fixture.advance_ms(100).await;
    }

    let dead = actor.queue().dead_letters(MessageId(0), 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].id, dead[0].deliveries), (1, id, 2));
    assert_eq!(dead[0].error.as_deref(), Some("second"));
    assert_eq!(&dead[0].body[..], b"body of job");
    let actor = sleep_and_wake(&fixture, &actor).await;
    let revived = actor.queue().revive(id);
    actor.commit_rows();
    assert!(revived.await.unwrap());
    assert_eq!(take(&actor).await.unwrap().delivery().deliveries, 1);
    let gone = actor.queue().delete_dead(id);
    assert!(!gone.await.unwrap());
}

#[tokio::test]
async fn what_on_create_sends_is_received_there_and_stored_with_the_first_state() {
    let fixture = Fixture::new().await;
    fixture.script.hold("on_create");
    let actor = fixture.generation();
    let starting = tokio::spawn({
        let actor = actor.clone();
        async move { actor.start().await }
    });
    fixture.settle().await;
    // More than is kept in memory: the last body is read from what is not stored yet.
    let large = NewMessage { body: Bytes::from(vec![7; 65_000]), ..message("large") };

    for _ in 0..20 {
        actor.queue().send(large.clone()).await.unwrap();
    }
    let received = actor.queue().receive(Receive { count: 19, ..plain() }).await.unwrap();
    assert!(received.iter().all(|message| message.delivery().body == large.body));
    let waits = actor.queue().receive(Receive {
        names: Names::of(["other"]),
        until: within(10),
        ..plain()
    });
    fixture.advance_ms(10).await;
    assert!(waits.await.unwrap().is_empty());
    assert!(fixture.stored().await.queue.messages.is_empty());
    fixture.script.answer_hook("on_create");
    starting.await.unwrap().unwrap();

    let stored = fixture.stored().await.queue;
    assert_eq!((stored.next_id, stored.messages.len()), (21, 1));
    let last = actor.queue().receive(plain()).await.unwrap();
    assert_eq!((ids(&last), &last[0].delivery().body), (vec![20], &large.body));
}

#[tokio::test]
async fn a_message_of_this_turn_that_is_not_in_memory_is_read_behind_its_commit() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let large = NewMessage { body: Bytes::from(vec![7; 65_000]), ..message("large") };
    for _ in 0..17 {
        drop(actor.queue().send(large.clone()));
    }

    let mut received = actor.queue().receive(Receive { count: 17, ..plain() });
    fixture.settle().await;
    assert!(is_open(&mut received));
    actor.commit_rows().unwrap();

    let received = received.await.unwrap();
    assert_eq!(received.len(), 17);
    assert!(received.iter().all(|message| message.delivery().body == large.body));
}

#[tokio::test]
async fn with_an_interval_the_queue_does_not_wait_for_the_state() {
    let config =
        ActorConfig { has_state: true, durability: Durability::Interval, ..ActorConfig::default() };
    let fixture = Fixture::with(config).await;
    let actor = fixture.started().await;
    actor.mark_dirty();

    send(&actor, message("job")).await;
    let received = actor.queue().receive(plain()).await.unwrap();

    assert_eq!(ids(&received), [1]);
    assert_eq!(fixture.script.count("serialize_state_save"), 1, "that of the start");
}

#[tokio::test]
async fn a_second_send_of_a_key_is_the_first_and_resolves_when_that_is_durable() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let keyed = NewMessage { dedupe_key: Some("k".into()), ..message("job") };

    let first = actor.queue().send(keyed.clone());
    let mut second = actor.queue().send(keyed.clone());
    fixture.settle().await;
    assert!(is_open(&mut second));
    actor.commit_rows();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let actor = sleep_and_wake(&fixture, &actor).await;
    let third = actor.queue().send(keyed).await.unwrap();

    assert_eq!([first.id, second.id, third.id], [MessageId(1); 3]);
    assert_eq!([first, second, third].map(|sent| sent.is_duplicate), [false, true, true]);
}

#[tokio::test]
async fn after_the_end_every_call_is_refused() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    send(&actor, message("job")).await;
    actor.stop(StopReason::Sleep);
    fixture.advance_ms(1).await;

    let queue = actor.queue();
    let errors = [
        refused(queue.send(message("job")).await),
        refused(queue.receive(plain()).await),
        refused(queue.wait_for_names_available(Names::Any, Until::default()).await),
        refused(queue.send_and_wait(message("job"), Until::default()).await),
        refused(queue.complete_by_id(MessageId(1), "job".into(), None).await),
        refused(queue.reset().await),
        refused(queue.dead_letters(MessageId(0), 1).await),
    ];

    assert!(errors.iter().all(|error| error.is("actor", "stopping")), "{errors:?}");
}

#[tokio::test]
async fn a_generation_that_breaks_answers_everybody_who_waits() {
    let fixture = Fixture::new().await;
    let actor = fixture.started().await;
    let mut parked = actor.queue().receive(plain());
    let mut answer = actor.queue().send_and_wait(delayed("job", 1), Until::default());

    actor.break_generation(Error::internal("on purpose"));
    fixture.settle().await;

    assert!(refused(ended(&fixture, &mut parked).await).is("core", "internal_error"));
    assert!(refused(ended(&fixture, &mut answer).await).is("core", "internal_error"));
    let again = fixture.started().await;
    assert!(again.queue().is_empty(), "its turn was not committed");
}
