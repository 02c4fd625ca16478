//! What is counted, for Prometheus.

use std::sync::Arc;

use greenroom::gateway::{ForeignRequest, Gateway, GatewayOptions, Token};
use greenroom::protocol::Encoding;

use crate::fixture::{Front, spawner};
use crate::place::{Place, get, within};
use crate::socket::{Socket, number_args};
use crate::sockets::front;

/// The value of a metric, named with its labels.
fn value(page: &str, name: &str) -> u64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
}

async fn page(front: &Front) -> String {
    let response = front.ask("GET", "/metrics", &[], b"").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4"));
    response.text().to_owned()
}

#[tokio::test]
async fn actors_sockets_calls_and_commits_are_counted_and_counted_back() {
    let front = front().await;
    let before = page(&front).await;
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::connected(&front, Encoding::Json).await;
        socket.next().await;
        sockets.push(socket);
    }
    front.script().hold("hold");
    sockets[0].request(7, "hold", number_args(1)).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    let busy = page(&front).await;
    front.script().release("hold");
    sockets[0].next().await;
    drop(sockets);
    front.place.until(|| front.script().count("on_disconnect") == 2).await;
    let id = front.place.resolve(get("a")).await.unwrap().id;
    front.place.sleep(id).await.unwrap();
    let after = page(&front).await;

    for (name, counts) in [
        (r#"greenroom_actors{state="running"}"#, [0, 1, 0]),
        (r#"greenroom_actors{state="stopping"}"#, [0, 0, 0]),
        ("greenroom_gateway_calls", [0, 1, 0]),
        ("greenroom_gateway_sockets", [0, 2, 0]),
    ] {
        let counted = [&before, &busy, &after].map(|page| value(page, name));
        assert_eq!(counted, counts, "{name}");
    }
    let connections = r#"rivetkit_actor_connections_active{actor_name="counter"}"#;
    assert_eq!([&busy, &after].map(|page| value(page, connections)), [2, 0]);
    let commits = [&before, &after].map(|page| value(page, "greenroom_store_commits_total"));
    assert!(commits[0] < commits[1], "{commits:?}");
}

#[tokio::test]
async fn they_are_for_those_who_manage_actors_alone() {
    let token = Token::new("secret".to_owned());
    let front = Front::with(GatewayOptions { token, ..GatewayOptions::default() }).await;
    let refused = front.ask("GET", "/metrics", &[], b"").await;
    assert_eq!(refused.status, 401);
    let given = [("authorization", "Bearer secret")];
    assert_eq!(front.ask("GET", "/metrics", &given, b"").await.status, 200);

    // Where nobody knows who can reach it, nobody without a token may.
    let place = Place::new().await;
    let options = GatewayOptions::default();
    let gateway = Gateway::inside(Arc::clone(&place.host), options, spawner(&place.host));
    for uri in ["/metrics", "/gateway/counter/metrics?rvt-namespace=default&rvt-method=get"] {
        let (method, uri) = ("GET".to_owned(), uri.to_owned());
        let headers = vec![("host".to_owned(), "localhost".to_owned())];
        let request = ForeignRequest { method, uri, headers };
        let (_exchange, answer) = gateway.ask(&request, None).unwrap();
        let answer = within(answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains(r#""status":401"#), "{request:?}: {answer}");
    }
}
