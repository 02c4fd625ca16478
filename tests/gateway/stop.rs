//! The end of a gateway.

use std::sync::Arc;

use futures::StreamExt as _;
use greenroom::gateway::{ForeignRequest, Gateway, GatewayOptions};
use greenroom::protocol::Encoding;
use tokio::net::TcpStream;

use crate::client::request;
use crate::fixture::{Front, SECOND, action_uri, spawner};
use crate::place::{HERE, Place, config, counter, within};
use crate::script::HOOKS;
use crate::socket::{Socket, number_args};

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

#[tokio::test]
async fn a_socket_that_is_cut_off_is_closed_also_while_a_call_over_it_runs() {
    let front = crate::sockets::front().await;
    let mut socket = Socket::connected(&front, Encoding::Json).await;
    front.script().hold("hold");
    socket.next().await;
    socket.request(7, "hold", number_args(1)).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    drop(front.gateway);

    // Otherwise it stays open for as long as the call holds the way to it.
    assert!(matches!(within(socket.stream.next()).await, Some(Err(_)) | None));
    front.place.script.release("hold");
    front.place.until(|| front.place.script.newest().connections().is_empty()).await;
}

#[tokio::test]
async fn a_request_of_somebody_elses_server_is_waited_for_and_then_cut_off() {
    for passes in [false, true] {
        let place = Place::new().await;
        let options = GatewayOptions::default();
        let gateway = Gateway::inside(Arc::clone(&place.host), options, spawner(&place.host));
        place.script.hold("hold");
        let uri = action_uri("hold");
        let headers = [("host", "localhost"), ("origin", "http://localhost")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        let request = ForeignRequest { method: "POST".to_owned(), uri, headers };
        let (_exchange, answer) = gateway.ask(&request, Some(b"{}"[..].into())).unwrap();
        let stop = async {
            place.until(|| place.script.waiting("hold") == 1).await;
            let goes_on = async {
                place.settle().await;
                if passes {
                    place.clock.advance(10 * SECOND);
                } else {
                    place.script.release("hold");
                }
            };
            futures::join!(within(gateway.stop(10 * SECOND)), goes_on);
        };

        let (answer, ()) = futures::join!(within(answer), stop);

        let answer = answer.unwrap();
        let head = String::from_utf8_lossy(&answer).into_owned();
        let status = if passes { r#""status":503"# } else { r#""status":200"# };
        assert!(head.contains(status), "{head}");
        // Whoever waits may read why it ended.
        assert!(head.contains("x-rivet-ray-id") && head.contains("http://localhost"), "{head}");
        assert_eq!(head.contains("shut_down"), passes, "{head}");
    }
}

#[tokio::test]
async fn an_answer_of_somebody_elses_server_that_nobody_reads_is_cut_off_after_the_grace_period() {
    let place = Place::new().await;
    let mut roomy = config();
    roomy.max_incoming_message_size = 200_000;
    place.host.register(HERE, counter(), place.script.factory(HOOKS, roomy));
    let options = GatewayOptions::default();
    let gateway = Gateway::inside(Arc::clone(&place.host), options, spawner(&place.host));
    let headers = vec![("host".to_owned(), "localhost".to_owned())];
    let uri = action_uri("echo");
    let request = ForeignRequest { method: "POST".to_owned(), uri, headers };
    let long = format!(r#"{{"args":["{}"]}}"#, "x".repeat(100_000));
    let (exchange, answer) = gateway.ask(&request, Some(long.into())).unwrap();
    let head = within(answer).await.unwrap();
    assert!(String::from_utf8_lossy(&head).contains(r#""status":200"#));

    let passes = async {
        place.settle().await;
        place.clock.advance(10 * SECOND);
    };
    futures::join!(within(gateway.stop(10 * SECOND)), passes);

    assert!(within(exchange.read()).await.is_err());
}
