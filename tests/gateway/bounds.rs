//! What is too long, and who is too slow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom::gateway::{Bounds, MAX_CREATE_BODY};
use greenroom::ids::MAX_INPUT_LEN;
use serde_json::json;

use crate::client::request;
use crate::fixture::{Front, SECOND, action_uri};

/// A call whose body has so many bytes.
fn body(length: usize) -> Vec<u8> {
    let frame = r#"{"args":[""]}"#.len();
    format!(r#"{{"args":["{}"]}}"#, "x".repeat(length - frame)).into_bytes()
}

/// §3.7 and §4.3.
#[tokio::test]
async fn a_body_of_the_actors_limit_passes_and_one_byte_more_does_not() {
    let front = Front::new().await;

    let fits = front.ask("POST", &action_uri("echo"), &[], &body(65_536)).await;
    let one_more = front.ask("POST", &action_uri("echo"), &[], &body(65_537)).await;

    assert_eq!(fits.status, 200);
    assert_eq!(one_more.fault(), (400, "message.incoming_too_long".into()));
    let metadata = &one_more.json()["metadata"];
    assert_eq!((&metadata["size"], &metadata["limit"]), (&65_537.into(), &65_536.into()));
    assert_eq!(front.script().seen("echo").len(), 1);
}

#[tokio::test]
async fn the_limits_are_those_of_the_type() {
    let front = Front::new().await;
    front.configure(|config| {
        config.max_incoming_message_size = 100;
        config.max_outgoing_message_size = 50;
    });

    let long = front.ask("POST", &action_uri("echo"), &[], &body(101)).await;
    let longer_answer = front.ask("POST", &action_uri("echo"), &[], &body(100)).await;
    let short = front.ask("POST", &action_uri("echo"), &[], &body(30)).await;

    assert_eq!(long.fault(), (400, "message.incoming_too_long".into()));
    assert_eq!(longer_answer.fault(), (400, "message.outgoing_too_long".into()));
    assert!(longer_answer.header("x-rivet-actor").is_some());
    assert_eq!(short.status, 200);
}

#[tokio::test]
async fn a_length_that_is_claimed_is_believed_before_it_comes_only_to_refuse_it() {
    let front = Front::new().await;
    let mut client = front.client().await;
    let head = format!(
        "PUT /actors HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\nx",
        u64::MAX / 2
    );

    client.send(head).await;

    assert_eq!(client.response().await.fault(), (400, "api.bad_request".into()));
}

#[tokio::test]
async fn a_body_that_makes_an_actor_may_hold_the_largest_input() {
    let front = Front::new().await;
    let length = u32::try_from(MAX_INPUT_LEN - 5).expect("it is short");
    let mut input = [&[0x5a][..], &length.to_be_bytes()].concat();
    input.resize(MAX_INPUT_LEN, 7);
    let largest = json!({ "name": "counter", "input": STANDARD.encode(&input) }).to_string();
    let too_long = vec![b' '; MAX_CREATE_BODY + 1];

    assert_eq!(front.ask("PUT", "/actors", &[], largest.as_bytes()).await.status, 200);
    let response = front.ask("PUT", "/actors", &[], &too_long).await;

    assert_eq!(response.fault(), (400, "api.bad_request".into()));
    assert!(response.text().contains(&MAX_CREATE_BODY.to_string()));
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let front = Front::bounded(Bounds { head: 1_024, ..Bounds::default() }).await;
    let long = "x".repeat(2_000);

    let response = front.ask("GET", "/health", &[("x-long", &long)], b"").await;

    assert_eq!(response.status, 431);
    assert_eq!(front.ask("GET", "/health", &[], b"").await.status, 200);
}

#[tokio::test]
async fn what_is_no_http_ends_the_connection() {
    let front = Front::new().await;
    let mut client = front.client().await;

    client.send("\x16\x03\x01 hello\r\n\r\n").await;

    assert_eq!(client.response().await.status, 400);
    assert!(client.is_over().await);
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let front = Front::bounded(Bounds { head_timeout: 10 * SECOND, ..Bounds::default() }).await;
    let mut client = front.client().await;
    client.send("GET /health HTTP/1.1\r\nhost: local").await;
    front.pass(9 * SECOND).await;
    client.send("h").await;

    front.pass(SECOND).await;

    assert!(client.is_over().await);
}

#[tokio::test]
async fn a_connection_without_requests_ends_as_long_after_the_last_answer() {
    let front = Front::bounded(Bounds { head_timeout: 10 * SECOND, ..Bounds::default() }).await;
    let mut client = front.client().await;
    front.pass(9 * SECOND).await;
    assert_eq!(client.ask("GET", "/health", &[], b"").await.status, 200);
    front.pass(9 * SECOND).await;
    assert_eq!(client.ask("GET", "/health", &[], b"").await.status, 200);

    front.pass(10 * SECOND).await;

    assert!(client.is_over().await);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_told_and_given_up() {
    let front = Front::bounded(Bounds { body_timeout: 10 * SECOND, ..Bounds::default() }).await;
    let mut client = front.client().await;
    let whole = request("POST", &action_uri("echo"), &[], &body(1_000));
    client.send(&whole[..whole.len() - 1]).await;

    front.pass(10 * SECOND).await;

    let response = client.response().await;
    assert_eq!(response.fault(), (504, "guard.request_timeout".into()));
    assert!(client.is_over().await);
    assert_eq!(front.script().contexts().len(), 0);
}

#[tokio::test]
async fn a_connection_above_the_bound_is_served_when_another_ends() {
    let front = Front::bounded(Bounds { connections: 1, ..Bounds::default() }).await;
    let mut first = front.client().await;
    assert_eq!(first.ask("GET", "/health", &[], b"").await.status, 200);
    let mut second = front.client().await;
    second.send(request("POST", &action_uri("echo"), &[], b"{}")).await;
    front.place.settle().await;
    assert_eq!(front.script().contexts().len(), 0);

    drop(first);

    assert_eq!(second.response().await.status, 200);
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_the_actor_to_others() {
    let front = Front::new().await;
    front.script().hold("hold");
    let mut client = front.client().await;
    client.send(request("POST", &action_uri("hold"), &[], b"{}")).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    drop(client);
    front.script().release("hold");

    assert_eq!(front.call("echo", "{}").await.status, 200);
}
