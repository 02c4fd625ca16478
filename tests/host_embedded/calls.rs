//! A call finds its generation, whatever the actor is doing.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::join_all;
use greenroom::core::behavior::{Hooks, Reply};
use greenroom::host::embedded::{Address, Create};
use greenroom::ids::{ActorName, IdSource, MAX_INPUT_LEN};

use crate::place::{HERE, Place, call, code, counter, get, key, or_create, within};
use crate::script::HOOKS;

#[tokio::test]
async fn a_call_by_key_creates_starts_and_reaches_the_actor() {
    let place = Place::new().await;

    let answer = place.call(or_create("a"), "echo", "hello").await;

    assert_eq!(answer.unwrap(), "hello");
    assert_eq!(place.script.count("on_create"), 1);
}

#[tokio::test]
async fn a_second_call_reaches_the_generation_that_runs() {
    let place = Place::new().await;
    let id = place.running("a").await;

    place.call(Address::Id(id), "echo", "by id").await.unwrap();
    place.call(get("a"), "echo", "by key").await.unwrap();

    assert_eq!(place.script.count("on_wake"), 1);
}

#[tokio::test]
async fn get_and_by_id_find_no_actor_where_there_is_none() {
    let place = Place::new().await;
    let nobody = IdSource::seeded(9).actor_id();

    let by_key = place.call(get("a"), "echo", "").await.unwrap_err();
    let by_id = place.call(Address::Id(nobody), "echo", "").await.unwrap_err();

    assert!(by_key.is("actor", "not_found"));
    assert!(by_id.is("actor", "not_found"));
    assert_eq!(by_id.metadata.as_ref().unwrap()["id"], nobody.to_string());
}

#[tokio::test]
async fn a_type_that_nobody_runs_is_named_and_no_row_is_made() {
    let place = Place::new().await;
    let name = ActorName::new("unheard").unwrap();
    let address = Address::Key { name, key: key("a"), create: Some(Create::default()) };

    let error = place.call(address.clone(), "echo", "").await.unwrap_err();

    assert!(error.is("actor", "not_registered"));
    assert_eq!(error.metadata.as_ref().unwrap()["actor_name"], "unheard");
    let Address::Key { name, key, .. } = address else { unreachable!() };
    let without = Address::Key { name, key, create: None };
    assert_eq!(code(place.resolve(without).await), "actor/not_found");
}

#[tokio::test]
async fn an_input_beyond_the_limit_is_refused_with_both_numbers() {
    let place = Place::new().await;
    let input = Some(Bytes::from(vec![0; MAX_INPUT_LEN + 1]));
    let address = Address::Key { name: counter(), key: key("a"), create: Some(Create { input }) };

    let error = place.resolve(address).await.unwrap_err();

    assert!(error.is("actor", "invalid_argument"));
    assert!(error.message.contains("4194305 bytes"), "{error}");
    assert!(error.message.contains("limit is 4194304"), "{error}");
}

#[tokio::test]
async fn an_input_at_the_limit_reaches_the_first_start() {
    let place = Place::new().await;
    let input = Bytes::from(vec![7; MAX_INPUT_LEN]);
    let create = Some(Create { input: Some(input.clone()) });

    place.resolve(Address::Key { name: counter(), key: key("a"), create }).await.unwrap();
    place.call(or_create("a"), "echo", "").await.unwrap();

    assert_eq!(place.script.inputs(), [Some(input)]);
}

#[tokio::test]
async fn resolving_creates_one_row_and_starts_nothing() {
    let place = Place::new().await;

    let first = place.resolve(or_create("a")).await.unwrap();
    let second = place.resolve(or_create("a")).await.unwrap();

    assert_eq!(first, second);
    assert_eq!(place.script.alive(), 0);
}

#[tokio::test]
async fn creating_what_exists_is_an_error_with_its_id() {
    let place = Place::new().await;
    let (reply, created) = Reply::channel();
    place.host.create(counter(), key("a"), None, reply);
    let row = within(created).await.unwrap();

    for _ in 0..2 {
        let (reply, again) = Reply::channel();
        place.host.create(counter(), key("a"), None, reply);
        let error = within(again).await.unwrap_err();

        assert!(error.is("actor", "already_exists"));
        assert_eq!(error.metadata.as_ref().unwrap()["actor_id"], row.id.to_string());
        // The second time the actor runs.
        place.call(get("a"), "echo", "").await.unwrap();
    }
}

#[tokio::test]
async fn of_many_who_create_at_once_exactly_one_does() {
    let place = Place::new().await;
    let create = || {
        let (reply, created) = Reply::channel();
        place.host.create(counter(), key("a"), None, reply);
        created
    };
    let waiting: Vec<_> = (0..50).map(|_| create()).collect();

    let answers = within(join_all(waiting)).await;

    let made: Vec<_> = answers.iter().flatten().collect();
    assert_eq!(made.len(), 1);
    let id = made[0].id.to_string();
    for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert!(error.is("actor", "already_exists"));
        assert_eq!(error.metadata.as_ref().unwrap()["actor_id"], id);
    }
}

#[tokio::test]
async fn calls_that_wait_for_a_start_are_accepted_in_the_order_of_their_submission() {
    let place = Place::new().await;
    place.script.hold("on_wake");

    let calls: Vec<_> =
        (0..50).map(|n| place.call(or_create("a"), "echo", n.to_string())).collect();
    place.until(|| place.script.waiting("on_wake") == 1).await;
    let more: Vec<_> = (50..60).map(|n| place.call(get("a"), "echo", n.to_string())).collect();
    assert!(place.host.live(&get("a")).is_none(), "nobody goes past those who wait");
    place.script.release("on_wake");

    assert!(join_all(calls.into_iter().chain(more)).await.iter().all(Result::is_ok));
    let expected: Vec<_> = (0..60).map(|n| format!("echo {n}")).collect();
    assert_eq!(place.script.seen("echo"), expected);
    assert!(place.host.live(&get("a")).is_some());
}

#[tokio::test]
async fn an_actor_that_falls_asleep_takes_calls_until_its_last_save() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.script.hold("on_sleep");
    let slept = place.sleep(id);
    place.until(|| place.script.waiting("on_sleep") == 1).await;

    place.call(get("a"), "echo", "still here").await.unwrap();
    place.script.release("on_sleep");
    slept.await.unwrap();

    let generations: Vec<_> = place.script.log().iter().map(|seen| seen.generation).collect();
    assert!(generations.iter().all(|&generation| generation == generations[0]));
}

#[tokio::test]
async fn calls_that_meet_the_last_save_of_a_sleep_wait_for_the_next_generation_in_order() {
    let place = Place::with(Hooks { serialize_state: true, ..HOOKS }).await;
    let id = place.running("a").await;
    place.script.hold("serialize");
    let slept = place.sleep(id);
    place.until(|| place.script.waiting("serialize") == 1).await;

    let calls: Vec<_> = (0..20).map(|n| place.call(get("a"), "hold", n.to_string())).collect();
    place.settle().await;
    assert!(place.script.seen("hold").is_empty());
    place.script.release("serialize");
    slept.await.unwrap();
    let answers = join_all(calls).await;

    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let expected: Vec<_> = (0..20).map(|n| format!("hold {n}")).collect();
    assert_eq!(place.script.seen("hold"), expected);
    assert_eq!(place.script.contexts().len(), 2);
    assert_eq!(place.script.overlaps(), 0);
}

#[tokio::test]
async fn a_call_after_a_sleep_finds_what_was_saved() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.call(get("a"), "set", "seven").await.unwrap();
    place.sleep(id).await.unwrap();
    assert_eq!(place.script.alive(), 0);

    let state = place.call(Address::Id(id), "get", "").await;

    assert_eq!(state.unwrap(), "seven");
}

#[tokio::test]
async fn an_actor_that_puts_itself_to_sleep_wakes_for_the_next_call() {
    let place = Place::new().await;
    place.running("a").await;

    place.call(get("a"), "sleep", "").await.unwrap();
    place.until(|| place.script.alive() == 0).await;
    place.call(get("a"), "echo", "again").await.unwrap();

    assert_eq!(place.script.contexts().len(), 2);
}

#[tokio::test]
async fn an_unknown_action_is_the_actors_answer_and_ends_nothing() {
    let place = Place::new().await;
    place.running("a").await;

    let answer = place.call(get("a"), "nonsense", "").await;

    assert_eq!(code(answer), "actor/action_not_found");
    assert!(place.host.live(&get("a")).is_some());
}

#[tokio::test]
async fn the_live_generation_is_found_by_key_and_by_id_and_only_while_it_runs() {
    let place = Place::new().await;
    assert!(place.host.live(&get("a")).is_none());
    let id = place.running("a").await;

    assert_eq!(place.host.live(&get("a")).unwrap().actor_id(), id);
    assert_eq!(place.host.live(&Address::Id(id)).unwrap().actor_id(), id);

    place.sleep(id).await.unwrap();
    assert!(place.host.live(&Address::Id(id)).is_none());
}

#[tokio::test]
async fn a_caller_that_gave_up_harms_nobody() {
    let place = Place::new().await;
    place.script.hold("on_wake");
    let given_up = call(&place.host, or_create("a"), HERE, "echo", "1");
    let patient = place.call(or_create("a"), "echo", "2");
    assert!(given_up.now_or_never().is_none(), "and it is dropped");

    place.meet("on_wake").await;

    assert_eq!(patient.await.unwrap(), "2");
}
