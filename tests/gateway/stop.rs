//! The end of a gateway.

use tokio::net::TcpStream;

use crate::client::request;
use crate::fixture::{Front, SECOND, action_uri};
use crate::place::within;

#[tokio::test]
async fn an_open_request_is_answered_and_its_connection_closed() {
    let front = Front::new().await;
    front.script().hold("hold");
    let mut client = front.client().await;
    client.send(request("POST", &action_uri("hold"), &[], br#"{"args":[1]}"#)).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    let answered = async {
        front.place.settle().await;
        front.script().release("hold");
        let response = client.response().await;
        (response, client.is_over().await)
    };
    let ((), (response, is_over)) = futures::join!(front.stop(10 * SECOND), answered);

    assert_eq!((response.status, response.text()), (200, r#"{"output":[1]}"#));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(is_over);
}

#[tokio::test]
async fn a_request_that_is_open_after_the_grace_period_is_cut_off() {
    let front = Front::new().await;
    front.script().hold("hold");
    let mut client = front.client().await;
    client.send(request("POST", &action_uri("hold"), &[], b"{}")).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    let pass = async {
        front.pass(9 * SECOND).await;
        front.place.settle().await;
        front.pass(SECOND).await;
    };
    futures::join!(front.stop(10 * SECOND), pass);

    assert!(client.try_response().await.is_none());
}

#[tokio::test]
async fn connections_without_a_request_end_at_once_and_nobody_listens_any_more() {
    let front = Front::new().await;
    let mut fresh = front.client().await;
    let mut used = front.client().await;
    assert_eq!(used.ask("GET", "/health", &[], b"").await.status, 200);
    front.place.settle().await;

    front.stop(10 * SECOND).await;

    assert!(fresh.is_over().await && used.is_over().await);
    assert!(
        within(TcpStream::connect(front.gateway.address().expect("it listens"))).await.is_err()
    );
}

#[tokio::test]
async fn a_head_that_has_begun_may_still_come_and_is_answered() {
    let front = Front::new().await;
    let mut client = front.client().await;
    client.send("GET /health HTTP/1.1\r\nhost: local").await;
    front.place.settle().await;

    let sent = async {
        front.place.settle().await;
        client.send("host\r\n\r\n").await;
        client.response().await
    };
    let ((), response) = futures::join!(front.stop(10 * SECOND), sent);

    assert_eq!((response.status, response.header("connection")), (200, Some("close")));
    assert!(client.is_over().await);
}

#[tokio::test]
async fn a_second_stop_joins_the_first_and_one_that_is_dropped_goes_on() {
    let front = Front::new().await;
    let mut client = front.client().await;
    assert_eq!(client.ask("GET", "/health", &[], b"").await.status, 200);

    tokio_test::assert_pending!(tokio_test::task::spawn(front.gateway.stop(10 * SECOND)).poll());
    futures::join!(front.stop(10 * SECOND), front.stop(SECOND));

    assert!(client.is_over().await);
}

#[tokio::test]
async fn a_gateway_that_is_dropped_cuts_everything_off() {
    let front = Front::new().await;
    front.script().hold("hold");
    let mut client = front.client().await;
    client.send(request("POST", &action_uri("hold"), &[], b"{}")).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    drop(front.gateway);

    assert!(client.try_response().await.is_none());
}

#[tokio::test]
async fn a_host_that_shuts_down_answers_what_is_open_and_what_comes() {
    let front = Front::new().await;
    front.script().hold("hold");
    let mut client = front.client().await;
    client.send(request("POST", &action_uri("hold"), &[], b"{}")).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    let report = front.host().shutdown(SECOND);
    front.pass(SECOND).await;
    within(report).await;

    assert_eq!(client.response().await.fault().0, 503);
    let late = front.call("echo", "{}").await;
    assert_eq!(late.fault(), (503, "registry.shut_down".into()));
}
