//! Calls of actions.

use futures::future::join_all;
use greenroom::error::{Error, ErrorCode};
use greenroom::protocol::http::ActionRequest;
use greenroom::protocol::{Args, Encoding, ErrorBody, Payload, Wire};
use serde_json::json;

use crate::fixture::{Front, QUERY, action_uri};
use crate::place::or_create;

fn args() -> Args {
    let payload = Payload::from_json(br#"[1,{"a":"b"}]"#).expect("JSON");
    Args::try_from(payload).expect("an array")
}

/// §4.3: bytes in, bytes out.
#[tokio::test]
async fn a_call_in_each_encoding_reaches_the_actor_and_comes_back() {
    let front = Front::new().await;
    let cases: [(Encoding, &[u8], &[u8]); 3] = [
        (Encoding::Json, br#"{"args":[1,"b"]}"#, br#"{"output":[1,"b"]}"#),
        (Encoding::Cbor, b"\xa1\x64args\x82\x01\x61b", b"\xa1\x66output\x82\x01\x61b"),
        (Encoding::Bare, b"\x04\0\x04\x82\x01\x61b", b"\x04\0\x04\x82\x01\x61b"),
    ];

    for (encoding, request, expected) in cases {
        let headers = [("x-rivet-encoding", encoding.name())];
        let response = front.ask("POST", &action_uri("echo"), &headers, request).await;

        assert_eq!(response.status, 200, "{encoding:?}");
        assert_eq!(response.header("content-type"), Some(encoding.content_type()));
        assert_eq!(response.body, expected, "{encoding:?}");
    }
    assert_eq!(front.script().count("on_create"), 1);
}

/// §11.2: published clients send bodies in chunks.
#[tokio::test]
async fn a_body_in_chunks_is_read() {
    let front = Front::new().await;
    let mut client = front.client().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
        action_uri("echo")
    );

    client.send(head).await;
    client.send("8\r\n{\"args\":\r\n").await;
    client.send("4\r\n[1]}\r\n0\r\n\r\n").await;

    assert_eq!(client.response().await.text(), r#"{"output":[1]}"#);
}

#[tokio::test]
async fn one_connection_carries_one_call_after_another() {
    let front = Front::new().await;
    let mut client = front.client().await;

    for n in 0..3 {
        let body = format!(r#"{{"args":[{n}]}}"#);
        let response = client.ask("POST", &action_uri("echo"), &[], body.as_bytes()).await;
        assert_eq!(response.text(), format!(r#"{{"output":[{n}]}}"#));
    }
}

#[tokio::test]
async fn an_actor_is_called_by_its_id_too_and_woken_for_it() {
    let front = Front::new().await;
    let id = front.place.resolve(or_create("a")).await.unwrap().id;

    let response = front.ask("POST", &format!("/gateway/{id}/action/echo"), &[], b"{}").await;

    assert_eq!((response.status, response.text()), (200, r#"{"output":[]}"#));
}

#[tokio::test]
async fn of_many_calls_that_make_an_actor_one_makes_it_and_all_reach_it() {
    let front = Front::new().await;

    let responses = join_all((0..40).map(|_| front.call("echo", "{}"))).await;

    assert!(responses.iter().all(|response| response.status == 200));
    assert_eq!(front.script().count("on_create"), 1);
    assert_eq!(front.script().seen("echo").len(), 40);
}

/// §4.2.
#[tokio::test]
async fn a_response_names_the_generation_that_answers() {
    let front = Front::new().await;

    // The first call starts the actor, the second meets it.
    for _ in 0..2 {
        let response = front.call("echo", "{}").await;

        let actor = front.script().newest();
        assert_eq!(response.header("x-rivet-actor"), Some(&*actor.actor_id().to_string()));
        let generation = actor.generation().get().to_string();
        assert_eq!(response.header("x-rivet-actor-generation"), Some(&*generation));
        assert_eq!(response.header("x-rivet-actor-key"), Some("a"));
    }
}

/// §6.4: base64 in the alphabet of URLs, without padding.
#[tokio::test]
async fn an_input_in_the_url_reaches_the_first_start() {
    let front = Front::new().await;

    let uri = action_uri("echo") + "&rvt-input=ghj_GP4";
    let response = front.ask("POST", &uri, &[], b"{}").await;
    let broken = action_uri("echo") + "&rvt-input=gvs";
    let broken = front.ask("POST", &broken, &[], b"{}").await;

    assert_eq!(broken.fault(), (400, "guard.query_invalid_cbor_input".into()));
    assert_eq!(response.status, 200);
    let input = &b"\x82\x18\xff\x18\xfe"[..];
    assert_eq!(front.script().inputs(), [Some(input.into())]);
}

/// O§1.3.
#[tokio::test]
async fn who_is_not_there_is_not_found_and_the_answer_is_json_whatever_is_spoken() {
    let front = Front::new().await;
    let get = "/gateway/counter/action/echo?rvt-namespace=default&rvt-method=get&rvt-key=a";
    let nobody = "/gateway/00000000-0000-4000-8000-000000000000/action/echo";

    for uri in [get, nobody, "/gateway/nonsense/action/echo"] {
        let headers = [("x-rivet-encoding", "bare")];
        let body = ActionRequest { args: args() }.encode(Encoding::Bare).unwrap();
        let response = front.ask("POST", uri, &headers, &body).await;

        assert_eq!(response.fault(), (404, "actor.not_found".into()), "{uri}");
        assert_eq!(response.header("x-rivet-error"), Some("actor.not_found"), "{uri}");
    }
}

#[tokio::test]
async fn a_type_that_nobody_runs_and_a_namespace_that_is_not_ours_are_refused() {
    let front = Front::new().await;
    let unheard = format!("/gateway/unheard/action/echo?{QUERY}");
    let elsewhere = action_uri("echo").replace("namespace=default", "namespace=x");

    let unheard = front.ask("POST", &unheard, &[], b"{}").await;
    let elsewhere = front.ask("POST", &elsewhere, &[], b"{}").await;

    assert_eq!(unheard.fault(), (400, "actor.not_registered".into()));
    assert_eq!(elsewhere.fault(), (400, "namespace.not_found".into()));
}

/// §4.2 and §7.1: the actor's word, in the encoding of the client.
#[tokio::test]
async fn an_error_of_the_actor_names_the_actor_and_comes_in_the_encoding_of_the_call() {
    let front = Front::new().await;
    let mut error =
        Error::new(ErrorCode::new("user", "mine"), "no").with_metadata(json!({ "a": 1 }));
    error.public = Some(true);
    front.script().hold("hold");
    front.script().release("hold");
    front.script().fail("hold", Some(error));
    let row = front.place.resolve(or_create("a")).await.unwrap();

    for encoding in Encoding::ALL {
        let headers = [("x-rivet-encoding", encoding.name())];
        let body = ActionRequest { args: args() }.encode(encoding).unwrap();
        let response = front.ask("POST", &action_uri("hold"), &headers, &body).await;

        assert_eq!(response.status, 400, "{encoding:?}");
        assert_eq!(response.header("content-type"), Some(encoding.content_type()));
        let error = ErrorBody::decode(encoding, response.body.clone().into()).unwrap();
        assert_eq!((&*error.group, &*error.code, &*error.message), ("user", "mine", "no"));
        let id = row.id.to_string();
        assert_eq!(error.actor.map(|actor| actor.actor_id), Some(id.clone()));
        assert_eq!(response.header("x-rivet-actor"), Some(&*id));
        assert_eq!(response.header("x-rivet-actor-key"), Some("a"));
        assert_eq!(response.header("x-rivet-error"), None);
    }
}

/// §7.2.
#[tokio::test]
async fn what_is_internal_stays_here() {
    let front = Front::new().await;
    front.script().fail("hold", Some(Error::internal("a secret")));

    let response = front.call("hold", "{}").await;

    assert_eq!(response.fault(), (500, "core.internal_error".into()));
    assert!(!response.text().contains("secret"), "{}", response.text());
}

#[tokio::test]
async fn an_action_that_is_not_there_is_not_found() {
    let front = Front::new().await;

    let response = front.call("nonsense", "{}").await;

    assert_eq!(response.fault(), (404, "actor.action_not_found".into()));
}

/// What parts of this process say to each other travels under names like this one.
#[tokio::test]
async fn no_name_with_a_control_character_reaches_an_actor() {
    let front = Front::new().await;

    for name in ["%01send", "a%00", "%7F", "%C2%80"] {
        let response = front.call(name, "{}").await;
        assert_eq!(response.fault(), (404, "actor.action_not_found".into()), "{name}");
    }
    assert_eq!(front.script().contexts().len(), 0);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_wakes_nobody() {
    let front = Front::new().await;
    let cases: [(&str, &[u8]); 8] = [
        ("json", b"{"),
        ("json", b""),
        ("json", b"{\"args\":[1]} x"),
        ("json", b"\xff"),
        ("cbor", b"\xa1\x64args\x9f\x01"),
        ("cbor", b"\xa1\x64args\x81\x01\x00"),
        ("bare", b"\x09\x00\x01\x80"),
        ("bare", b"\x04\0\xff\xff\xff\x0f\x80"),
    ];

    for (name, body) in cases {
        let headers = [("x-rivet-encoding", name)];
        let response = front.ask("POST", &action_uri("echo"), &headers, body).await;

        assert_eq!(response.status, 400, "{name} {body:?}");
        let encoding = Encoding::named(name).unwrap();
        let error = ErrorBody::decode(encoding, response.body.into()).unwrap();
        assert_eq!((&*error.group, &*error.code), ("actor", "invalid_request"), "{name} {body:?}");
    }
    let params = [("x-rivet-conn-params", "{")];
    let response = front.ask("POST", &action_uri("echo"), &params, b"{}").await;
    assert_eq!(response.fault(), (400, "actor.invalid_request".into()));
    assert_eq!(front.script().contexts().len(), 0);
}

/// §4.1 and §6.4.
#[tokio::test]
async fn a_url_that_asks_for_nothing_that_is_served_is_refused() {
    let front = Front::new().await;
    let actor = |path: &str| format!("/gateway/counter{path}?{QUERY}&rvt-key=a");
    let cases = [
        ("GET", actor("/action/echo"), 405, "actor.method_not_allowed"),
        ("POST", actor("/action/%zz"), 400, "protocol.invalid_http_request"),
        ("POST", actor("/nowhere"), 404, "actor.not_found"),
        ("POST", actor("/action/echo") + "&rvt-bogus=1", 400, "guard.query_invalid_params"),
        (
            "POST",
            "/gateway/counter/action/echo?rvt-namespace=default&rvt-method=getOrCreate".into(),
            400,
            "guard.query_missing_pool",
        ),
    ];

    for (method, uri, status, fault) in cases {
        let response = front.ask(method, &uri, &[], b"").await;
        assert_eq!(response.fault(), (status, fault.into()), "{method} {uri}");
    }
    let no_route = [("x-rivet-target", "actor"), ("x-rivet-actor", "x")];
    let response = front.ask("POST", "/action/echo", &no_route, b"{}").await;
    assert_eq!(response.fault(), (404, "guard.no_route".into()));
}

/// §4.1 and §4.5.
#[tokio::test]
async fn what_runs_an_actor_is_told_and_requests_for_its_author_find_nothing() {
    let front = Front::new().await;
    let ask = async |path: &str| {
        front.ask("GET", &format!("/gateway/counter{path}?{QUERY}&rvt-key=a"), &[], b"").await
    };
    for path in ["/health", "/metadata", "/"] {
        assert_eq!(ask(path).await.fault(), (404, "actor.not_found".into()), "none is made");
    }
    front.place.resolve(or_create("a")).await.unwrap();

    assert_eq!(ask("/health").await.text(), "ok");
    assert_eq!(ask("/metadata").await.json()["runtime"], "rivetkit");
    let request = ask("/request/x").await;
    assert_eq!((request.status, request.body.len()), (404, 0));
}
