//! Starts that fail.

use bytes::Bytes;
use futures::future::join_all;
use greenroom::core::context::ActorContext;
use greenroom::error::{Error, ErrorCode};
use greenroom::host::embedded::{Address, Create};
use serde_json::json;

use crate::place::{Place, code, counter, get, key, or_create};

fn oops() -> Error {
    Error::new(ErrorCode::new("user", "broken_pipe"), "the pipe broke")
        .with_metadata(json!({ "pipe": 7 }))
}

#[tokio::test]
async fn all_who_wait_for_a_failed_start_get_the_original_error_with_phase_and_key() {
    let place = Place::new().await;
    place.script.hold("on_create");
    place.script.fail("on_wake", Some(oops()));

    let calls: Vec<_> =
        (0..10).map(|n| place.call(or_create("a"), "echo", n.to_string())).collect();
    place.meet("on_create").await;
    let answers = join_all(calls).await;

    assert_eq!(place.script.contexts().len(), 1);
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(error.is("user", "broken_pipe"));
        assert_eq!(error.message, "the pipe broke");
        assert_eq!(error.metadata, Some(json!({ "pipe": 7 })));
        let actor = error.actor.clone().unwrap();
        assert_eq!(actor.phase.as_deref(), Some("on_wake"));
        assert_eq!(actor.key.as_deref(), Some("a"));
    }
}

#[tokio::test]
async fn the_next_call_starts_from_scratch_with_the_original_input() {
    let place = Place::new().await;
    place.script.fail("on_create", Some(oops()));
    let create = |input: &'static str| {
        let create = Create { input: Some(Bytes::from_static(input.as_bytes())) };
        Address::Key { name: counter(), key: key("a"), create: Some(create) }
    };
    assert_eq!(code(place.call(create("first"), "echo", "").await), "user/broken_pipe");
    place.script.fail("on_create", None);

    place.call(create("second"), "echo", "").await.unwrap();

    let first = Some(Bytes::from_static(b"first"));
    assert_eq!(place.script.inputs(), [first.clone(), first]);
    let generations: Vec<_> =
        place.script.contexts().iter().map(ActorContext::generation).collect();
    assert!(generations[0] < generations[1]);
}

#[tokio::test]
async fn a_factory_that_panics_fails_that_start_only() {
    let place = Place::new().await;
    place.script.panic_once();

    let refused = place.call(or_create("a"), "echo", "").await;

    assert_eq!(code(refused), "core/internal_error");
    place.call(get("a"), "echo", "").await.unwrap();
}

#[tokio::test]
async fn a_start_that_is_broken_answers_those_who_wait_and_the_next_call_starts_anew() {
    let place = Place::new().await;
    place.script.hold("on_wake");
    let waiting = place.call(or_create("a"), "echo", "");
    place.until(|| place.script.waiting("on_wake") == 1).await;

    place.script.newest().break_generation(oops());

    assert_eq!(code(waiting.await), "user/broken_pipe");
    place.script.release("on_wake");
    place.call(get("a"), "echo", "").await.unwrap();
    assert_eq!(place.script.overlaps(), 0);
}

#[tokio::test]
async fn a_broken_generation_answers_its_calls_and_the_next_one_has_what_is_durable() {
    let place = Place::new().await;
    place.running("a").await;
    place.call(get("a"), "set", "kept").await.unwrap();
    place.script.hold("hold");
    let open = place.call(get("a"), "hold", "");

    place.script.newest().break_generation(oops());

    assert_eq!(code(open.await), "user/broken_pipe");
    assert_eq!(place.call(get("a"), "get", "").await.unwrap(), "kept");
    assert_eq!(place.script.overlaps(), 0);
}
