//! Messages for queues over HTTP.

use greenroom::core::connections::ConnHooks;
use greenroom::error::{Error, ErrorCode};
use greenroom::protocol::http::{QueueSendRequest, QueueSendResponse, SendPolicy, SendStatus};
use greenroom::protocol::{Encoding, Wire as _};
use serde_json::{Value, json};

use crate::fixture::{Front, QUERY};
use crate::socket::number;

fn queue_uri(queue: &str) -> String {
    format!("/gateway/counter/queue/{queue}?{QUERY}&rvt-key=a")
}

#[tokio::test]
async fn a_message_reaches_the_author_with_its_queue_and_how_it_is_sent() {
    let front = Front::new().await;

    let body = br#"{"body":5,"wait":true,"timeout":250,"name":"ignored"}"#;
    let response = front.ask("POST", &queue_uri("jobs%2Fa"), &[], body).await;

    let sent = json!(["jobs/a", 5, { "wait": true, "timeoutMs": 250 }]);
    assert_eq!(response.json(), json!({ "status": "completed", "response": sent }));
    assert!(response.header("x-rivet-actor").is_some());
}

#[tokio::test]
async fn without_a_word_nobody_waits_and_there_is_no_limit() {
    let front = Front::new().await;

    let response = front.ask("POST", &queue_uri("jobs"), &[], br#"{"body":{"k":1}}"#).await;

    let sent = json!(["jobs", { "k": 1 }, { "wait": false, "timeoutMs": -1 }]);
    assert_eq!(response.json()["response"], sent);
}

#[tokio::test]
async fn a_message_may_be_held_back_and_be_the_only_one_of_its_key() {
    let front = Front::new().await;
    let body = br#"{"body":1,"dedupeKey":"once","delay":1.5}"#;

    let response = front.ask("POST", &queue_uri("jobs"), &[], body).await;

    let how = json!({ "wait": false, "timeoutMs": -1, "dedupeKey": "once", "delayMs": 2 });
    assert_eq!(response.json()["response"], json!(["jobs", 1, how]));
    let refused = front.ask("POST", &queue_uri("jobs"), &[], br#"{"body":1,"delay":-1}"#).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn each_encoding_is_answered_in_itself() {
    for encoding in [Encoding::Cbor, Encoding::Bare] {
        let front = Front::new().await;
        let request = QueueSendRequest {
            body: number(5),
            name: None,
            wait: None,
            timeout_ms: None,
            policy: SendPolicy::default(),
        };
        let body = request.encode(encoding).unwrap();
        let headers = [("x-rivet-encoding", encoding.name())];

        let response = front.ask("POST", &queue_uri("jobs"), &headers, &body).await;

        let answer = QueueSendResponse::decode(encoding, response.body.into()).unwrap();
        assert_eq!(answer.status, SendStatus::Completed);
        let sent = json!(["jobs", 5, { "wait": false, "timeoutMs": -1 }]);
        let response = answer.response.unwrap().to_json().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&response).unwrap(), sent);
    }
}

#[tokio::test]
async fn a_hook_that_refuses_the_connection_refuses_the_message() {
    let front = Front::new().await;
    front.author(ConnHooks::ALL, |_| {});
    let error = Error::new(ErrorCode::new("auth", "forbidden"), "no");
    front.script().fail("on_before_connect", Some(error));

    let refused = front.ask("POST", &queue_uri("jobs"), &[], br#"{"body":1}"#).await;

    assert_eq!(refused.fault(), (403, "auth.forbidden".to_owned()));
    assert_eq!(front.script().seen("\u{1}send"), [""; 0]);
}

#[tokio::test]
async fn what_is_no_message_or_too_long_wakes_nobody() {
    let front = Front::new().await;

    let broken = front.ask("POST", &queue_uri("jobs"), &[], b"{").await;
    assert_eq!(broken.fault(), (400, "actor.invalid_request".to_owned()));
    let long = format!("{{\"body\":\"{}\"}}", "a".repeat(65_536));
    let long = front.ask("POST", &queue_uri("jobs"), &[], long.as_bytes()).await;
    assert_eq!(long.fault(), (400, "message.incoming_too_long".to_owned()));
    assert_eq!(front.ask("GET", &queue_uri("jobs"), &[], b"").await.status, 405);

    assert_eq!(front.script().alive(), 0);
}
