//! Who may call, and what browsers are told.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use greenroom::gateway::{Gateway, GatewayError, GatewayOptions, Token};

use crate::fixture::{Front, QUERY, action_uri, spawner};
use crate::place::Place;

const ACTORS: &str = "/actors?name=counter";

fn guarded() -> GatewayOptions {
    GatewayOptions { token: Token::new("t0k"), ..GatewayOptions::default() }
}

#[tokio::test]
async fn an_address_that_others_reach_is_not_listened_on_without_a_token() {
    let place = Place::new().await;
    let mut options = GatewayOptions::default();
    options.address.set_ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    options.address.set_port(0);

    let refused =
        Gateway::bind(Arc::clone(&place.host), options.clone(), spawner(&place.host)).unwrap_err();
    options.token = Token::new("t");
    let accepted = Gateway::bind(Arc::clone(&place.host), options.clone(), spawner(&place.host));

    assert_eq!(refused, GatewayError::TokenNeeded { address: options.address });
    assert!(accepted.is_ok());
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let front = Front::new().await;
    let address = front.gateway.address().expect("it listens");
    let options = GatewayOptions { address, ..GatewayOptions::default() };

    let refused =
        Gateway::bind(Arc::clone(front.host()), options, spawner(front.host())).unwrap_err();

    assert!(matches!(refused, GatewayError::Unusable { address: at, .. } if at == address));
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused_and_reads_nothing() {
    let front = Front::new().await;
    let evil = [("origin", "https://evil.example")];

    for (method, uri) in
        [("POST", action_uri("echo")), ("OPTIONS", ACTORS.into()), ("GET", "/health".into())]
    {
        let response = front.ask(method, &uri, &evil, b"{}").await;
        assert_eq!(response.fault(), (403, "api.forbidden".into()), "{method} {uri}");
        assert_eq!(response.header("access-control-allow-origin"), None);
        assert!(response.header("x-rivet-ray-id").is_some());
    }
    assert_eq!(front.script().contexts().len(), 0);
}

#[tokio::test]
async fn a_name_that_was_made_to_lead_here_is_refused() {
    let front = Front::new().await;
    let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];

    let response = front.ask("GET", ACTORS, &rebound, b"").await;

    assert_eq!(response.fault(), (403, "api.forbidden".into()));
}

/// §6.7.
#[tokio::test]
async fn a_page_of_the_same_origin_is_told_so_with_errors_too() {
    let front = Front::new().await;
    let host = front.gateway.address().expect("it listens").to_string();
    let origin = format!("http://{host}");
    let headers = [("host", &*host), ("origin", &*origin)];

    for (uri, status) in [(ACTORS, 200), ("/nowhere", 404)] {
        let response = front.ask("GET", uri, &headers, b"").await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("access-control-allow-origin"), Some(&*origin));
        assert_eq!(response.header("access-control-allow-credentials"), Some("true"));
        assert_eq!(response.header("access-control-expose-headers"), Some("*"));
        assert_eq!(response.header("vary"), Some("Origin"));
    }
}

/// §6.7 and O§1.3.
#[tokio::test]
async fn a_preflight_is_answered_without_token_and_actor() {
    let front = Front::with(guarded()).await;
    let headers = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];

    let gateway = front.ask("OPTIONS", &action_uri("echo"), &headers, b"").await;
    let broken = front.ask("OPTIONS", "/gateway/x/y?rvt-bogus=1", &headers, b"").await;
    let manager = front.ask("OPTIONS", "/actors", &headers, b"").await;

    assert_eq!((gateway.status, broken.status, manager.status), (204, 204, 200));
    for response in [&gateway, &broken, &manager] {
        assert_eq!(response.header("access-control-allow-origin"), Some("https://app.example"));
        assert_eq!(response.header("access-control-allow-headers"), Some("content-type"));
    }
    assert_eq!(gateway.header("access-control-max-age"), Some("86400"));
    assert_eq!(manager.header("access-control-allow-methods"), Some("POST"));
    assert_eq!(front.script().contexts().len(), 0);
}

#[tokio::test]
async fn without_the_token_nothing_is_told_but_that_it_lives() {
    let front = Front::with(guarded()).await;
    let id = front.place.running("a").await;
    let direct = format!("/gateway/{id}@wrong/action/echo");
    let in_query = format!("{}&rvt-token=wrong", action_uri("echo"));

    for (method, uri) in [
        ("GET", ACTORS),
        ("PUT", "/actors"),
        ("GET", "/actors/names"),
        ("DELETE", "/actors/x"),
        ("GET", "/nowhere"),
        ("POST", &action_uri("echo")),
        ("POST", &direct),
        ("POST", &in_query),
    ] {
        for headers in [&[][..], &[("authorization", "Bearer wrong"), ("x-rivet-token", "t0")]] {
            let response = front.ask(method, uri, headers, b"{}").await;
            assert_eq!(response.fault(), (401, "api.unauthorized".into()), "{method} {uri}");
        }
    }
    assert_eq!(front.ask("GET", "/health", &[], b"").await.status, 200);
    assert_eq!(front.ask("GET", "/metadata", &[], b"").await.status, 200);
    assert_eq!(front.script().seen("echo").len(), 1);
}

/// §6.4: each place of the token; that in the URL counts before the others.
#[tokio::test]
async fn the_token_is_taken_from_wherever_clients_put_it() {
    let front = Front::with(guarded()).await;
    let id = front.place.running("a").await;
    let wrong = [("x-rivet-token", "wrong"), ("authorization", "Bearer wrong")];

    for (uri, headers) in [
        (format!("/gateway/{id}@t0k/action/echo"), &wrong[..]),
        (format!("{}&rvt-token=t0k", action_uri("echo")), &wrong[..]),
        (action_uri("echo"), &[("x-rivet-token", "t0k")]),
        (action_uri("echo"), &[("authorization", "Bearer t0k")]),
    ] {
        let response = front.ask("POST", &uri, headers, b"{}").await;
        assert_eq!(response.status, 200, "{uri} {}", response.text());
    }
    let bearer = [("authorization", "Bearer t0k")];
    assert_eq!(front.ask("GET", ACTORS, &bearer, b"").await.status, 200);
}

/// O§1.
#[tokio::test]
async fn every_answer_has_a_ray_id_the_clients_if_it_can_be_one() {
    let front = Front::new().await;
    let long = "r".repeat(31);

    let given = front.ask("GET", "/health", &[("x-rivet-ray-id", "ray-1")], b"").await;
    let none = front.ask("GET", &format!("/gateway/x/y?{QUERY}&rvt-z"), &[], b"").await;
    let too_long = front.ask("GET", "/health", &[("x-rivet-ray-id", &long)], b"").await;
    let other = front.ask("GET", "/health", &[("x-rivet-ray-id", "ray/1")], b"").await;

    assert_eq!(given.header("x-rivet-ray-id"), Some("ray-1"));
    for response in [none, too_long, other] {
        assert_eq!(response.header("x-rivet-ray-id").map(str::len), Some(30));
    }
}
