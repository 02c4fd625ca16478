//! URLs and headers as published clients write them.

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::error::{Coded, Error};
use crate::protocol::{Origin, http_status};

fn no_hints() -> Hints {
    Hints::of_call(|_| None)
}

fn hints(headers: &'static [(&str, &str)]) -> Hints {
    Hints::of_call(|name| headers.iter().find(|(given, _)| *given == name).map(|(_, value)| *value))
}

fn offer(tokens: &str) -> Hints {
    Hints::of_upgrade(&Offer::parse([tokens]))
}

fn target(uri: &str) -> Target {
    route(uri, &no_hints()).unwrap().unwrap()
}

fn query(uri: &str) -> ActorQuery {
    match target(uri).actor {
        Addressee::Query(query) => query,
        Addressee::Id(id) => panic!("{uri} is for the id {id}"),
    }
}

fn refused(uri: &str) -> RouteError {
    route(uri, &no_hints()).unwrap_err()
}

fn by_id(id: &str, path: &str) -> Target {
    Target {
        actor: Addressee::Id(id.into()),
        path: path.into(),
        token: None,
        skip_ready_wait: false,
    }
}

/// §6.4, "direct" and "direct + token".
#[test]
fn a_path_with_an_id_leads_to_its_actor() {
    let cases = [
        ("/gateway/act1/action/add", by_id("act1", "/action/add")),
        ("/gateway/act1", by_id("act1", "/")),
        ("/gateway/act1/", by_id("act1", "/")),
        ("/gateway/act1?x=1", by_id("act1", "/?x=1")),
        ("/gateway/act1/request/a%2Fb?x=%zz&&y=+#part", by_id("act1", "/request/a%2Fb?x=%zz&&y=+")),
        ("/gateway/act1/request/a?x=http://b", by_id("act1", "/request/a?x=http://b")),
        ("/gateway/act1/?", by_id("act1", "/?")),
        ("/gateway/a%20b/x#?rvt-key=a", by_id("a b", "/x")),
        (
            "/gateway/act1@t%2Fk/connect",
            Target { token: Some("t/k".into()), ..by_id("act1", "/connect") },
        ),
    ];

    for (uri, expected) in cases {
        let found = target(uri);
        assert_eq!(found, expected, "{uri}");
        assert_eq!(found.token, expected.token, "{uri}");
    }
}

/// §6.4: all of these go on to the other routes.
#[test]
fn a_path_that_names_no_actor_is_the_managers() {
    let paths = [
        "/",
        "",
        "/actors",
        "/actors?rvt-key=a",
        "/gateway",
        "/gateway/",
        "/gateway//act1",
        "/gateway/act1//x",
        "/gateway/@t/x",
        "/gateway/act1@/x",
        "/gatewayx/act1",
        "/Gateway/act1",
        "/x/gateway/act1",
        "/gateway//counter?rvt-namespace=n",
    ];

    for path in paths {
        assert_eq!(route(path, &no_hints()), Ok(None), "{path}");
    }
}

/// §6.4, "query": the URLs of the published client, 2.3.19.
#[test]
fn a_path_with_parameters_asks_for_an_actor_of_a_name_and_a_key() {
    let uri = concat!(
        "/gateway/chat%20room/action/add?rvt-namespace=default&rvt-method=getOrCreate",
        "&rvt-runner=pool&rvt-key=tenant%2Croom+1&rvt-input=oWFrAQ&rvt-region=eu",
        "&rvt-crash-policy=restart&rvt-token=t%2Bk&rvt-skip-ready-wait=true"
    );
    let found = target(uri);
    assert_eq!(
        found,
        Target {
            actor: Addressee::Query(ActorQuery {
                namespace: "default".into(),
                name: ActorName::new("chat room").unwrap(),
                key: ActorKey::of(["tenant", "room 1"]).unwrap(),
                find: Find::GetOrCreate(Creation {
                    pool: "pool".into(),
                    input: Some(Payload::new(Bytes::from_static(b"\xa1\x61k\x01")).unwrap()),
                    region: Some("eu".into()),
                    crash_policy: CrashPolicy::Restart,
                }),
            }),
            path: "/action/add".into(),
            token: Some("t+k".into()),
            skip_ready_wait: true,
        }
    );

    let uri = "/gateway/chat/connect?rvt-namespace=default&rvt-method=get";
    let found = query(uri);
    assert_eq!((found.key, found.find), (ActorKey::default(), Find::Get));
    let uri = "/gateway/chat?rvt-namespace=n&rvt-method=getOrCreate&rvt-pool=p";
    let sleep = CrashPolicy::Sleep;
    let plain = Creation { pool: "p".into(), input: None, region: None, crash_policy: sleep };
    assert_eq!(query(uri).find, Find::GetOrCreate(plain));
}

/// §6.4.
#[test]
fn parts_of_a_key_are_joined_by_commas_and_nothing_is_no_part() {
    let key = |key| query(&format!("/gateway/a?rvt-namespace=n&rvt-method=get{key}")).key;
    let of = |parts: &[&str]| ActorKey::of(parts.iter().copied()).unwrap();

    assert_eq!(key(""), of(&[]));
    assert_eq!(key("&rvt-key="), of(&[]));
    assert_eq!(key("&rvt-key"), of(&[]));
    assert_eq!(key("&rvt-key=tenant,room"), of(&["tenant", "room"]));
    assert_eq!(key("&rvt-key=tenant%2fwith%2Fslash,room"), of(&["tenant/with/slash", "room"]));
    assert_eq!(key("&rvt-key=a,,b,"), of(&["a", "", "b", ""]));
}

/// §6.4, and O§1.3: "all `rvt-*` stripped before the actor sees the URL".
#[test]
fn an_actor_sees_no_parameter_of_the_gateway_and_all_else_as_it_was() {
    let path = |query| {
        let uri = format!("/gateway/a/request/x?{query}");
        target(&uri).path
    };

    let ours = "rvt-namespace=n&rvt-method=get";
    assert_eq!(path(ours.to_owned()), "/request/x");
    assert_eq!(
        path(format!("myParam=myValue&{ours}&b=%zz&c=+")),
        "/request/x?myParam=myValue&b=%zz&c=+"
    );
    assert_eq!(path(format!("a=1&&b&{ours}")), "/request/x?a=1&&b");
    assert_eq!(path(format!("{ours}&x=rvt-key&RVT-key=1")), "/request/x?x=rvt-key&RVT-key=1");
    assert_eq!(path(format!("%zz=1&{ours}")), "/request/x?%zz=1");
    assert_eq!(path("rvt%2Dnamespace=n&%72vt-method=get".to_owned()), "/request/x");
}

/// §6.4 and O§1.3, where a parameter that comes twice has the code of an unknown one.
#[test]
fn a_query_that_cannot_be_read_names_what_is_wrong() {
    let get = "/gateway/a?rvt-namespace=n&rvt-method=get";
    let create = "/gateway/a?rvt-namespace=n&rvt-method=getOrCreate&rvt-runner=p";
    let cases = [
        (format!("{get}&rvt-bogus=1"), "query_invalid_params", "`rvt-bogus`"),
        (format!("{get}&rvt-namespace=m"), "query_invalid_params", "`rvt-namespace` comes twice"),
        (format!("{create}&rvt-pool=p"), "query_invalid_params", "`rvt-pool` comes twice"),
        ("/gateway/a?rvt-method=get".into(), "query_invalid_params", "`rvt-namespace` is missing"),
        ("/gateway/a?rvt-namespace=n".into(), "query_invalid_params", "`rvt-method` is missing"),
        (
            "/gateway/a?rvt-namespace=&rvt-method=get".into(),
            "query_invalid_params",
            "`rvt-namespace` is missing",
        ),
        (
            "/gateway/a?rvt-namespace=n&rvt-method=create".into(),
            "query_invalid_params",
            "`rvt-method` is `create`",
        ),
        (format!("{get}&rvt-skip-ready-wait=yes"), "query_invalid_params", "is `yes`"),
        (format!("{create}&rvt-crash-policy=hide"), "query_invalid_params", "is `hide`"),
        (get.replace("/a?", &format!("/{}?", "n".repeat(65))), "query_invalid_params", "65 bytes"),
        ("/gateway?rvt-namespace=n".into(), "query_empty_actor_name", "no name"),
        ("/gateway/?rvt-namespace=n".into(), "query_empty_actor_name", "no name"),
        (get.replace("/a?", "/a@t?"), "query_path_token_syntax", "`a`"),
        (format!("{get}&rvt-runner=p"), "query_get_disallowed_params", "`rvt-runner`"),
        (format!("{get}&rvt-pool=p"), "query_get_disallowed_params", "`rvt-pool`"),
        (format!("{get}&rvt-input=oA"), "query_get_disallowed_params", "`rvt-input`"),
        (format!("{get}&rvt-region=eu"), "query_get_disallowed_params", "`rvt-region`"),
        (
            format!("{get}&rvt-crash-policy=sleep"),
            "query_get_disallowed_params",
            "`rvt-crash-policy`",
        ),
        (create.replace("&rvt-runner=p", ""), "query_missing_pool", "`rvt-runner`"),
        (create.replace("=p", "="), "query_missing_pool", "`rvt-runner`"),
        (format!("{create}&rvt-input=oA=="), "query_invalid_base64_input", "base64url"),
        (format!("{create}&rvt-input=o%2F"), "query_invalid_base64_input", "base64url"),
        (format!("{create}&rvt-input="), "query_invalid_cbor_input", "ends early"),
        (format!("{create}&rvt-input=oQ"), "query_invalid_cbor_input", "ends early"),
        (format!("{get}&rvt-key=%zz"), "query_invalid_percent_encoding", "`rvt-key`"),
        (format!("{get}&rvt-key=%ff"), "query_invalid_percent_encoding", "byte 0"),
        (get.replace("/a?", "/a%4?"), "query_invalid_percent_encoding", "the name"),
        ("/gateway/a%4/x".into(), "query_invalid_percent_encoding", "the id"),
        ("/gateway/a@%4/x".into(), "query_invalid_percent_encoding", "the token"),
    ];

    for (uri, code, says) in cases {
        let error = Error::from(refused(&uri));
        assert_eq!((&*error.group, &*error.code), ("guard", code), "{uri}");
        assert!(error.message.contains(says), "{uri}: {}", error.message);
        assert_eq!(http_status(&error, Origin::Gateway), 400, "{uri}");
        assert!(error.is_public(), "{uri}");
    }
    // §6.3.
    let long = refused(&format!("{get}&rvt-key={}", "k".repeat(129)));
    assert!(Error::from(long).is("actor", "key_too_large"));
}

/// §6.4, "header".
#[test]
fn headers_lead_to_an_actor_under_request_only() {
    let both = hints(&[("x-rivet-target", "actor"), ("x-rivet-actor", "act1")]);
    let found = |uri| route(uri, &both);

    for path in ["/request/api/hello", "/request", "/request?a=b", "/request/?rvt-key=a"] {
        assert_eq!(found(path), Ok(Some(by_id("act1", path))), "{path}");
    }
    for (path, named) in [
        ("/api/hello", "/api/hello"),
        ("/requestfoo", "/requestfoo"),
        ("/gateway/act1@t//x?a=b", "/gateway/act1"),
        ("/actors?name=a", "/actors"),
        ("/connect", "/connect"),
    ] {
        assert_eq!(found(path), Err(RouteError::NoRoute { path: named.into() }));
    }
    // What the URL says counts first.
    assert_eq!(found("/gateway/act2/x"), Ok(Some(by_id("act2", "/x"))));
    for other in [
        hints(&[("x-rivet-actor", "act1")]),
        hints(&[("x-rivet-actor", "act1"), ("x-rivet-target", "runner")]),
    ] {
        assert_eq!(route("/request/x", &other), Ok(None));
    }
    for headers in [
        hints(&[("x-rivet-target", "actor")]),
        hints(&[("x-rivet-target", "actor"), ("x-rivet-actor", "")]),
    ] {
        let missing = Error::from(route("/request/x", &headers).unwrap_err());
        assert!(missing.is("guard", "missing_header"));
        assert_eq!(missing.metadata, Some(json!({ "header": "x-rivet-actor" })));
    }
}

/// §6.4 and O§1.3.
#[test]
fn the_offer_of_an_upgrade_leads_to_an_actor_as_headers_do() {
    let all = "rivet, rivet_target.actor, rivet_actor.act1, rivet_token.t, rivet_skip_ready_wait";
    let expected =
        |path| Target { token: Some("t".into()), skip_ready_wait: true, ..by_id("act1", path) };

    for path in ["/connect", "/websocket", "/websocket?a=b", "/websocket/x?a=b"] {
        assert_eq!(route(path, &offer(all)), Ok(Some(expected(path))), "{path}");
    }
    for path in ["/request/x", "/connects", "/"] {
        let refused = Error::from(route(path, &offer(all)).unwrap_err());
        assert!(refused.is("guard", "no_route"), "{path}");
        assert_eq!(http_status(&refused, Origin::Gateway), 404);
    }
    let missing = Error::from(route("/connect", &offer("rivet_target.actor")).unwrap_err());
    assert!(missing.is("guard", "missing_header"));
    assert_eq!(route("/connect", &offer("rivet")), Ok(None));
}

/// §6.4, "token sources", and 27 of §12.
#[test]
fn what_the_url_says_of_token_and_readiness_counts_before_what_stands_beside_it() {
    let beside = hints(&[("x-rivet-token", "h"), ("x-rivet-skip-ready-wait", "1")]);
    let found = |uri: &str, hints: &Hints| {
        let target = route(uri, hints).unwrap().unwrap();
        (target.token, target.skip_ready_wait)
    };
    let query = "/gateway/a?rvt-namespace=n&rvt-method=get";

    assert_eq!(found("/gateway/act1/x", &beside), (Some("h".into()), true));
    assert_eq!(found("/gateway/act1@p/x", &beside), (Some("p".into()), true));
    assert_eq!(found(query, &beside), (Some("h".into()), true));
    assert_eq!(found(&format!("{query}&rvt-token=q"), &beside), (Some("q".into()), true));
    assert_eq!(found(&format!("{query}&rvt-token="), &no_hints()), (None, false));
    for (value, expected) in [("true", true), ("1", true), ("false", false), ("0", false)] {
        let uri = format!("{query}&rvt-skip-ready-wait={value}");
        assert_eq!(found(&uri, &beside).1, expected, "{value}");
        assert_eq!(found(&uri, &no_hints()).1, expected, "{value}");
    }
    let zero = hints(&[("x-rivet-skip-ready-wait", "true")]);
    assert!(!found("/gateway/act1/x", &zero).1);
}

#[test]
fn no_token_is_printed() {
    let beside = hints(&[("x-rivet-token", "secret"), ("x-rivet-target", "actor")]);
    let query = "/gateway/a?rvt-namespace=n&rvt-method=get";
    let found = [
        format!("{beside:?}"),
        format!("{:?}", route("/gateway/act1/x", &beside)),
        format!("{:?}", target("/gateway/act1@secret/x")),
        format!("{:?}", target(&format!("{query}&rvt-token=secret"))),
        format!("{:?}", refused(&format!("{query}&rvt-token=secret&rvt-token=secret"))),
        format!("{:?}", refused(&query.replace("/a?", "/a@secret?"))),
        format!("{:?}", refused("/gateway/a@secret%4/x")),
        format!("{:?}", route("/x", &beside)),
        format!("{:?}", route("/gateway/act1@secret//x", &beside)),
        format!("{:?}", route("//gateway/act1@secret/x", &beside)),
    ];

    for text in found {
        assert!(!text.contains("secret"), "{text}");
    }
}

/// §4.1.
#[test]
fn a_call_is_for_one_of_the_routes_of_an_actor() {
    let text = str::to_owned;
    let cases = [
        ("POST", "/action/increment", ActorRoute::Action(text("increment"))),
        ("POST", "/action/calculator.add?x=1", ActorRoute::Action(text("calculator.add"))),
        ("POST", "/action/a%2Fb%20+", ActorRoute::Action(text("a/b +"))),
        ("POST", "/queue/jobs", ActorRoute::Queue(text("jobs"))),
        ("GET", "/metadata", ActorRoute::Metadata),
        ("GET", "/health?x=1", ActorRoute::Health),
        ("GET", "/", ActorRoute::Banner),
        ("GET", "/metrics", ActorRoute::Metrics),
        ("GET", "/request", ActorRoute::Request(text("/"))),
        ("GET", "/request/", ActorRoute::Request(text("/"))),
        ("PATCH", "/request?a=b", ActorRoute::Request(text("/?a=b"))),
        ("HEAD", "/request/a%2F//b?c=/d", ActorRoute::Request(text("/a%2F//b?c=/d"))),
        ("POST", "/request/action/x", ActorRoute::Request(text("/action/x"))),
        ("PATCH", "/inspector/state?x=1", ActorRoute::Inspector(text("/inspector/state?x=1"))),
        ("GET", "/request/inspector/state", ActorRoute::Inspector(text("/inspector/state"))),
        ("GET", "/request/inspector", ActorRoute::Request(text("/inspector"))),
    ];

    for (method, uri, expected) in cases {
        assert_eq!(ActorRoute::parse(method, uri), Ok(expected), "{method} {uri}");
    }
}

/// §4.1.
#[test]
fn a_call_of_what_an_actor_has_not_is_refused() {
    for path in [
        "/requestfoo",
        "/inspector",
        "/action",
        "/action/",
        "/action/a/",
        "/action/a/b",
        "/queue/",
        "/health/",
        "//",
        "/dynamic/reload",
        "/connect",
    ] {
        let error = ActorRoute::parse("GET", &format!("{path}?x=1")).unwrap_err();
        assert_eq!(error, RouteError::NoActorRoute { path: path.into() });
        assert_eq!(error.metadata(), Some(json!({ "resource": "route", "id": path })));
        assert!(Error::from(error).is("actor", "not_found"));
    }
    for (method, path) in [
        ("GET", "/action/a"),
        ("PUT", "/queue/a"),
        ("POST", "/metadata"),
        ("HEAD", "/health"),
        ("DELETE", "/"),
        ("get", "/metrics"),
    ] {
        let error = Error::from(ActorRoute::parse(method, path).unwrap_err());
        assert!(error.is("actor", "method_not_allowed"), "{method} {path}");
        assert_eq!(error.metadata, Some(json!({ "method": method, "path": path })));
        assert_eq!(http_status(&error, Origin::Gateway), 405);
    }
    for path in ["/action/%zz", "/queue/a%ff"] {
        let error = Error::from(ActorRoute::parse("POST", path).unwrap_err());
        assert!(error.is("protocol", "invalid_http_request"), "{path}");
        assert!(error.message.contains(path), "{}", error.message);
    }
}

/// §3.2.
#[test]
fn an_upgrade_is_for_the_protocol_the_inspector_or_the_author() {
    for (uri, expected) in [
        ("/connect", UpgradeRoute::Connect),
        ("/connect?a=b", UpgradeRoute::Connect),
        ("/inspector/connect?protocol_version=6", UpgradeRoute::Inspector),
        ("/websocket", UpgradeRoute::Raw),
        ("/websocket/connect", UpgradeRoute::Raw),
        ("/connect/", UpgradeRoute::Raw),
        ("", UpgradeRoute::Raw),
    ] {
        assert_eq!(UpgradeRoute::parse(uri), expected, "{uri}");
    }
}
