//! Bodies as the published clients and tools write and read them.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use super::*;
use crate::error::{Coded, Error};
use crate::ids::{ActorKey, ActorName, MAX_INPUT_LEN};
use crate::protocol::{Origin, Payload, http_status};

fn key(parts: &[&str]) -> ActorKey {
    ActorKey::of(parts.iter().copied()).unwrap()
}

fn name(name: &str) -> ActorName {
    ActorName::new(name).unwrap()
}

/// The fault as `group.code`, after a check that the manager answers it with 400.
fn fault(error: ManagerError) -> String {
    let error = Error::from(error);
    assert!(error.is_public(), "{error}");
    assert_eq!(http_status(&error, Origin::Manager), 400, "{error}");
    format!("{}.{}", error.group, error.code)
}

fn actor() -> Actor {
    Actor {
        actor_id: "act1".into(),
        name: "counter".into(),
        key: "a/b".into(),
        namespace_id: "ns1".into(),
        datacenter: "default".into(),
        runner_name_selector: "default".into(),
        crash_policy: CrashPolicy::Sleep,
        create_ts: 5,
        start_ts: Some(6),
        pending_allocation_ts: None,
        connectable_ts: Some(7),
        sleep_ts: None,
        reschedule_ts: None,
        destroy_ts: None,
        error: None,
    }
}

const ACTOR: &str = concat!(
    r#"{"actor_id":"act1","name":"counter","key":"a/b","namespace_id":"ns1","#,
    r#""datacenter":"default","runner_name_selector":"default","crash_policy":"sleep","#,
    r#""create_ts":5,"start_ts":6,"pending_allocation_ts":null,"connectable_ts":7,"#,
    r#""sleep_ts":null,"reschedule_ts":null,"destroy_ts":null}"#
);

fn is_written_as(body: &impl Serialize, text: &str) {
    assert_eq!(std::str::from_utf8(&json(body)).unwrap(), text);
}

/// §6.3.
#[test]
fn a_request_for_an_actor_is_read() {
    let body = concat!(
        r#"{"name":"counter","key":"a\\/b","runner_name_selector":"default","#,
        r#""crash_policy":"restart","input":"oWFrAQ==","datacenter":"eu"}"#
    );

    assert_eq!(
        CreateRequest::decode(body.as_bytes()).unwrap(),
        CreateRequest {
            name: name("counter"),
            key: Some(key(&["a/b"])),
            input: Some(Payload::new(Bytes::from_static(b"\xa1\x61k\x01")).unwrap()),
            runner_name_selector: Some("default".into()),
            crash_policy: CrashPolicy::Restart,
            datacenter: Some("eu".into()),
        }
    );
}

/// §6.3.
#[test]
fn all_but_the_name_of_an_actor_may_be_left_out() {
    for body in [r#"{"name":"counter"}"#, r#"{"name":"counter","key":null}"#] {
        let request = CreateRequest::decode(body.as_bytes()).unwrap();

        assert_eq!((request.key, request.input), (None, None));
        assert_eq!(request.crash_policy, CrashPolicy::Sleep);
    }
}

/// §6.3, and O§1.2 for fields that nobody knows.
#[test]
fn a_request_for_an_actor_that_cannot_be_read_is_refused() {
    let long = |len: usize| format!(r#"{{"name":"{}"}}"#, "n".repeat(len));
    let cases = [
        ("", "api.bad_request"),
        ("[]", "api.bad_request"),
        ("{}", "api.bad_request"),
        (r#"{"name":1}"#, "api.bad_request"),
        (r#"{"name":"a","colour":"red"}"#, "api.bad_request"),
        (r#"{"name":"a","name":"b"}"#, "api.bad_request"),
        (r#"{"name":"a","crash_policy":"hide"}"#, "api.bad_request"),
        (r#"{"name":"a","input":"%"}"#, "api.bad_request"),
        (r#"{"name":"a","input":"oQ=="}"#, "api.bad_request"),
        (r#"{"name":""}"#, "validation.invalid_input"),
        (&long(65), "validation.invalid_input"),
        (&format!(r#"{{"name":"a","key":"{}"}}"#, "k".repeat(129)), "actor.key_too_large"),
    ];

    for (body, expected) in cases {
        let error = CreateRequest::decode(body.as_bytes()).unwrap_err();
        assert!(error.metadata().unwrap()["reason"].is_string(), "{body}");
        assert_eq!(fault(error), expected, "{body}");
    }
    assert!(CreateRequest::decode(long(64).as_bytes()).is_ok());
    let misspelt = format!(r#"{{"name":"a","{}":1}}"#, "x".repeat(10_000));
    let error = CreateRequest::decode(misspelt.as_bytes()).unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
}

/// §6.3.
#[test]
fn an_input_has_a_limit() {
    use base64::Engine as _;
    let request = |len: usize| {
        let head = [0x5a].into_iter().chain((len as u32 - 5).to_be_bytes());
        let cbor: Vec<u8> = head.chain(std::iter::repeat_n(0, len - 5)).collect();
        let input = base64::engine::general_purpose::STANDARD.encode(cbor);
        CreateRequest::decode(format!(r#"{{"name":"a","input":"{input}"}}"#).as_bytes())
    };

    assert!(request(MAX_INPUT_LEN).is_ok());
    let refused = request(MAX_INPUT_LEN + 1).unwrap_err();
    assert_eq!(
        refused,
        ManagerError::InputTooLarge { size: MAX_INPUT_LEN + 1, limit: MAX_INPUT_LEN }
    );
    assert_eq!(fault(refused), "actor.input_too_large");
}

/// §6.3, §6.6 and O§1.1.
#[test]
fn a_fault_has_the_code_that_clients_know() {
    let (key, id) = ("a/b".to_owned(), "act1".to_owned());
    let duplicate = ManagerError::DuplicateKey { key, existing_actor_id: id };
    assert_eq!(
        duplicate.metadata(),
        Some(serde_json::json!({ "key": "a/b", "existing_actor_id": "act1" }))
    );
    assert_eq!(fault(duplicate), "actor.duplicate_key");
    let no_value = ManagerError::NoSuchValue { key: "Aw==".into() };
    assert_eq!(fault(no_value), "actor.kv_key_not_found");
    let name = || "a".to_owned();
    assert_eq!(fault(ManagerError::NoSuchNamespace { name: name() }), "namespace.not_found");
    assert_eq!(
        fault(ManagerError::DuplicateNamespace { name: name() }),
        "namespace.name_not_unique"
    );
    for (error, code, status) in [
        (ManagerError::NotFound { path: "/x".into() }, "not_found", 404),
        (ManagerError::Unauthorized, "unauthorized", 401),
        (ManagerError::Forbidden { from: "http://x".into() }, "forbidden", 403),
    ] {
        let error = Error::from(error);
        assert!(error.is("api", code));
        assert_eq!(http_status(&error, Origin::Manager), status);
    }
}

/// §6.2 and §6.3.
#[test]
fn answers_about_actors_are_written_as_clients_read_them() {
    is_written_as(&CreateResponse { actor: actor() }, &format!(r#"{{"actor":{ACTOR}}}"#));
    is_written_as(
        &GetOrCreateResponse { actor: actor(), created: true },
        &format!(r#"{{"actor":{ACTOR},"created":true}}"#),
    );
    is_written_as(
        &ActorsResponse {
            actors: vec![actor()],
            pagination: Pagination { cursor: Some("5".into()) },
        },
        &format!(r#"{{"actors":[{ACTOR}],"pagination":{{"cursor":"5"}}}}"#),
    );
    is_written_as(
        &ActorsResponse { actors: vec![], pagination: Pagination::default() },
        r#"{"actors":[],"pagination":{"cursor":null}}"#,
    );
}

/// §6.3, O§1.1 and O§1.2.
#[test]
fn the_other_answers_are_written_as_tools_read_them() {
    let names = BTreeMap::from([
        ("a".into(), ActorTypeMetadata { icon: Some("bolt".into()), name: Some("A".into()) }),
        ("b".into(), ActorTypeMetadata::default()),
    ]);
    is_written_as(
        &NamesResponse { names, pagination: Pagination::default() },
        r#"{"names":{"a":{"metadata":{"icon":"bolt","name":"A"}},"b":{"metadata":{}}},"pagination":{"cursor":null}}"#,
    );
    is_written_as(
        &KvValueResponse { update_ts: 5, value: Some(Bytes::from_static(&[3])) },
        r#"{"update_ts":5,"value":"Aw=="}"#,
    );
    is_written_as(
        &KvValueResponse { update_ts: 5, value: None },
        r#"{"update_ts":5,"value":null}"#,
    );
    is_written_as(
        &DatacentersResponse {
            datacenters: vec![Datacenter { label: 1, name: "default".into(), url: "u".into() }],
            pagination: Pagination::default(),
        },
        r#"{"datacenters":[{"label":1,"name":"default","url":"u"}],"pagination":{"cursor":null}}"#,
    );
    is_written_as(
        &NamespaceResponse {
            namespace: Namespace {
                namespace_id: "n".into(),
                name: "a".into(),
                display_name: "A".into(),
                create_ts: 5,
            },
        },
        r#"{"namespace":{"namespace_id":"n","name":"a","display_name":"A","create_ts":5}}"#,
    );
    is_written_as(
        &EndpointConfigResponse { endpoint_config_changed: false },
        r#"{"endpoint_config_changed":false}"#,
    );
    is_written_as(
        &HealthResponse { runtime: "engine", status: "ok", version: "1".into() },
        r#"{"runtime":"engine","status":"ok","version":"1"}"#,
    );
    is_written_as(
        &EnvoysResponse {
            envoys: vec![Envoy {
                envoy_key: "e".into(),
                namespace_id: "n".into(),
                datacenter: "default".into(),
                pool_name: "p".into(),
                version: 1,
                slots: 2,
                create_ts: 3,
                stop_ts: None,
                last_ping_ts: 4,
                last_connected_ts: Some(5),
                last_rtt: 6,
                runtime_version: "2.3.19".into(),
            }],
            pagination: Pagination::default(),
        },
        concat!(
            r#"{"envoys":[{"envoy_key":"e","namespace_id":"n","datacenter":"default","#,
            r#""pool_name":"p","version":1,"slots":2,"create_ts":3,"stop_ts":null,"#,
            r#""last_ping_ts":4,"last_connected_ts":5,"last_rtt":6,"#,
            r#""metadata":{"rivetkit":{"version":"2.3.19"}}}],"pagination":{"cursor":null}}"#
        ),
    );
    is_written_as(
        &RunnerConfigsResponse {
            runner_configs: BTreeMap::from([("p".into(), vec!["default".into()])]),
            pagination: Pagination::default(),
        },
        concat!(
            r#"{"runner_configs":{"p":{"datacenters":{"default":{"normal":{},"#,
            r#""protocol_version":null}}}},"pagination":{"cursor":null}}"#
        ),
    );
    let mut metadata = MetadataResponse {
        runtime: "engine",
        version: "1".into(),
        client_endpoint: None,
        client_namespace: None,
        client_token: None,
    };
    is_written_as(&metadata, r#"{"runtime":"engine","version":"1"}"#);
    metadata.client_endpoint = Some("http://x".into());
    is_written_as(&metadata, r#"{"runtime":"engine","version":"1","clientEndpoint":"http://x"}"#);
    is_written_as(&Nothing {}, "{}");
}

/// O§1.1.
#[test]
fn a_namespace_is_read() {
    let body = br#"{"name":"a","display_name":"A"}"#;

    assert_eq!(
        NamespaceRequest::decode(body).unwrap(),
        NamespaceRequest { name: "a".into(), display_name: "A".into() }
    );
    assert!(NamespaceRequest::decode(br#"{"name":"a"}"#).is_err());
}

/// §6.3.
#[test]
fn actors_are_asked_for_by_ids_by_key_or_by_name() {
    let wanted = |query| ActorsQuery::parse(query).unwrap().wanted;
    let page = |limit, cursor: Option<&str>| Page { limit, cursor: cursor.map(str::to_owned) };

    assert_eq!(wanted("actor_ids=a%2Cb,c"), Wanted::Ids(["a", "b", "c"].map(Into::into).into()));
    assert_eq!(
        wanted("namespace=n&name=my+chat&key=a%5C%2Fb%2Fc"),
        Wanted::Key { name: name("my chat"), key: key(&["a/b", "c"]) }
    );
    assert_eq!(wanted("name=chat&key="), Wanted::Key { name: name("chat"), key: key(&[]) });
    assert_eq!(wanted("name=chat"), Wanted::Name { name: name("chat"), page: page(100, None) });
    assert_eq!(
        wanted("name=chat&limit=5&cursor=12&"),
        Wanted::Name { name: name("chat"), page: page(5, Some("12")) }
    );
    let query = ActorsQuery::parse("name=chat&namespace=n&include_destroyed=true").unwrap();
    assert_eq!((query.namespace.as_deref(), query.include_destroyed), (Some("n"), true));
}

/// §6.3.
#[test]
fn a_query_that_makes_no_sense_is_refused() {
    let refused = |query: &str| fault(ActorsQuery::parse(query).unwrap_err());
    let ids = |count| format!("actor_ids={}", vec!["a"; count].join(","));

    assert!(ActorsQuery::parse(&ids(32)).is_ok());
    for query in
        ["", "key=a", "actor_ids=a&name=b", "actor_ids=a&key=b", "namespace=n", "name=", &ids(33)]
    {
        assert_eq!(refused(query), "validation.invalid_input", "{query}");
    }
    for query in ["cursor=%zz", "cursor%zz=1"] {
        let unread = ActorsQuery::parse(query).unwrap_err();
        assert!(unread.to_string().contains("parameter `cursor"), "{unread}");
    }
    let many = ActorsQuery::parse(&ids(100_000)).unwrap_err();
    assert!(many.to_string().contains("100000 ids"), "{many}");
    for query in [
        "name=a&colour=red",
        "name=a&name=b",
        "name=%zz",
        "name=a&limit=-1",
        "name=a&limit=x",
        "name=a&include_destroyed=1",
    ] {
        assert_eq!(refused(query), "api.bad_request", "{query}");
    }
    let long = format!("name=a&key={}", "k".repeat(129));
    assert_eq!(refused(&long), "actor.key_too_large");
}

/// §6.3 and O§1.1.
#[test]
fn the_other_calls_have_a_namespace_and_lists_a_page_and_a_pool() {
    let namespace = |query| NamespaceQuery::parse(query).map(|query| query.namespace);
    assert_eq!(namespace(""), Ok(None));
    assert_eq!(namespace("namespace=a+b"), Ok(Some("a b".into())));
    assert_eq!(fault(namespace("name=a").unwrap_err()), "api.bad_request");

    let query = ListQuery::parse("namespace=n&name=p&limit=100", Some("name")).unwrap();
    assert_eq!(
        query,
        ListQuery {
            namespace: Some("n".into()),
            pool: Some("p".into()),
            page: Page { limit: 100, cursor: None },
        }
    );
    let query = ListQuery::parse("cursor=c&namespace=n", None).unwrap();
    assert_eq!((query.pool, query.page.cursor.as_deref()), (None, Some("c")));
    for query in ["name=p", "limit=x", "cursor=1&cursor=2"] {
        let refused = ListQuery::parse(query, None).unwrap_err();
        assert_eq!(fault(refused), "api.bad_request", "{query}");
    }
}
