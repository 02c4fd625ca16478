//! The hooks of the connection that a call over HTTP is.

use greenroom::core::connections::ConnHooks;
use greenroom::error::{Error, ErrorCode};
use serde_json::json;

use crate::client::request;
use crate::fixture::{Front, action_uri};

const CONNECTION: [&str; 4] =
    ["on_before_connect", "create_conn_state", "on_connect", "on_disconnect"];

async fn front() -> Front {
    let front = Front::new().await;
    front.author(ConnHooks::ALL, |_| {});
    front
}

fn forbidden() -> Error {
    Error::new(ErrorCode::new("auth", "forbidden"), "no")
}

#[tokio::test]
async fn each_call_runs_each_hook_once_and_leaves_no_connection() {
    let front = front().await;

    for times in 1..=2 {
        let response = front.call("echo", "{\"args\":[1]}").await;
        assert_eq!(response.json(), json!({ "output": [1] }));
        for hook in CONNECTION {
            assert_eq!(front.script().count(hook), times, "{hook}");
        }
    }

    assert_eq!(front.script().newest().connections().len(), 0);
    assert_eq!(front.script().count("on_wake"), 1);
}

#[tokio::test]
async fn a_client_that_a_hook_refuses_calls_nothing_and_reads_why() {
    for hook in ["on_before_connect", "create_conn_state", "on_connect"] {
        let front = front().await;
        front.script().fail(hook, Some(forbidden()));

        let refused = front.call("echo", "{\"args\":[1]}").await;

        assert_eq!(refused.fault(), (403, "auth.forbidden".to_owned()), "{hook}");
        assert_eq!(refused.json()["actor"]["key"], json!("a"));
        assert_eq!(front.script().seen("echo"), [""; 0]);
        assert_eq!(front.script().count("on_disconnect"), 0);
        assert_eq!(front.script().newest().connections().len(), 0);
    }
}

#[tokio::test]
async fn hooks_that_refuse_every_second_client_leave_the_others_alone() {
    let front = front().await;

    for n in 0..6 {
        let refuse = n % 2 == 1;
        front.script().fail("create_conn_state", refuse.then(forbidden));
        let expected = if refuse { 403 } else { 200 };
        assert_eq!(front.call("echo", "{\"args\":[1]}").await.status, expected);
    }

    assert_eq!(front.script().count("on_disconnect"), 3);
    assert_eq!(front.script().newest().connections().len(), 0);
}

#[tokio::test]
async fn the_answer_waits_for_on_disconnect() {
    let front = front().await;
    front.script().hold("on_disconnect");
    let mut client = front.client().await;

    client.send(request("POST", &action_uri("echo"), &[], b"{\"args\":[1]}")).await;
    front.place.until(|| front.script().waiting("on_disconnect") == 1).await;
    front.script().release("on_disconnect");

    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn a_caller_that_goes_away_is_disconnected_wherever_its_call_is() {
    for held in ["on_connect", "hold"] {
        let front = front().await;
        front.script().hold(held);
        let mut client = front.client().await;
        client.send(request("POST", &action_uri("hold"), &[], b"{\"args\":[1]}")).await;
        front.place.until(|| front.script().waiting(held) == 1).await;

        drop(client);
        front.place.until(|| front.script().count("on_disconnect") == 1).await;
        front.script().release(held);
        front.place.settle().await;

        assert_eq!(front.script().count("on_disconnect"), 1, "{held}");
        assert_eq!(front.script().newest().connections().len(), 0, "{held}");
    }
}

#[tokio::test]
async fn parameters_that_cannot_be_read_reach_no_hook() {
    let front = front().await;

    let headers = [("x-rivet-conn-params", "{")];
    let refused = front.ask("POST", &action_uri("echo"), &headers, b"{\"args\":[1]}").await;

    assert_eq!(refused.fault().0, 400);
    assert_eq!(front.script().seen("on_"), [""; 0]);
}
