//! Bodies as the published clients and tools write and read them.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use super::*;
use crate::error::{Coded, ErrorCode};
use crate::ids::{ActorKey, KeyPart};
use crate::protocol::Payload;

fn key(parts: &[&str]) -> ActorKey {
    ActorKey::new(parts.iter().map(|part| KeyPart::String((*part).into())).collect()).unwrap()
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

#[test]
fn a_request_for_an_actor_is_read() {
    let body = concat!(
        r#"{"name":"counter","key":"a\\/b","runner_name_selector":"default","#,
        r#""crash_policy":"restart","input":"oWFrAQ==","datacenter":"eu"}"#
    );

    assert_eq!(
        CreateRequest::decode(body.as_bytes()).unwrap(),
        CreateRequest {
            name: "counter".into(),
            key: Some(key(&["a/b"])),
            input: Some(Payload::new(Bytes::from_static(b"\xa1\x61k\x01")).unwrap()),
            runner_name_selector: Some("default".into()),
            crash_policy: CrashPolicy::Restart,
            datacenter: Some("eu".into()),
        }
    );
}

#[test]
fn all_but_the_name_of_an_actor_may_be_left_out() {
    for body in [r#"{"name":"counter"}"#, r#"{"name":"counter","key":null}"#] {
        let request = CreateRequest::decode(body.as_bytes()).unwrap();

        assert_eq!((request.key, request.input), (None, None));
        assert_eq!(request.crash_policy, CrashPolicy::Sleep);
    }
}

#[test]
fn a_request_for_an_actor_that_cannot_be_read_is_refused() {
    let long = format!(r#"{{"name":"a","key":"{}"}}"#, "k".repeat(129));
    let bodies = [
        "",
        "[]",
        "{}",
        r#"{"name":1}"#,
        r#"{"name":"a","colour":"red"}"#,
        r#"{"name":"a","crash_policy":"hide"}"#,
        r#"{"name":"a","input":"%"}"#,
        r#"{"name":"a","input":"oQ=="}"#,
        &long,
    ];

    for body in bodies {
        let error = CreateRequest::decode(body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::new("api", "bad_request"), "{body}");
        assert!(error.metadata().unwrap()["reason"].is_string());
    }
}

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

#[test]
fn a_namespace_is_read() {
    let body = br#"{"name":"a","display_name":"A"}"#;

    assert_eq!(
        NamespaceRequest::decode(body).unwrap(),
        NamespaceRequest { name: "a".into(), display_name: "A".into() }
    );
    assert!(NamespaceRequest::decode(br#"{"name":"a"}"#).is_err());
}

#[test]
fn actors_are_asked_for_by_ids_by_key_or_by_name() {
    let wanted = |query| ActorsQuery::parse(query).unwrap().wanted;
    let page = |limit, cursor: Option<&str>| Page { limit, cursor: cursor.map(str::to_owned) };

    assert_eq!(wanted("actor_ids=a%2Cb,c"), Wanted::Ids(["a", "b", "c"].map(Into::into).into()));
    assert_eq!(
        wanted("namespace=n&name=my+chat&key=a%5C%2Fb%2Fc"),
        Wanted::Key { name: "my chat".into(), key: key(&["a/b", "c"]) }
    );
    assert_eq!(wanted("name=chat&key="), Wanted::Key { name: "chat".into(), key: key(&[]) });
    assert_eq!(wanted("name=chat"), Wanted::Name { name: "chat".into(), page: page(100, None) });
    assert_eq!(
        wanted("name=chat&limit=5&cursor=12&"),
        Wanted::Name { name: "chat".into(), page: page(5, Some("12")) }
    );
    let query = ActorsQuery::parse("name=chat&namespace=n&include_destroyed=true").unwrap();
    assert_eq!((query.namespace.as_deref(), query.include_destroyed), (Some("n"), true));
}

#[test]
fn a_query_that_makes_no_sense_is_refused() {
    let code = |query: &str| ActorsQuery::parse(query).unwrap_err().code().code;
    let many = format!("actor_ids={}", vec!["a"; 33].join(","));

    for query in ["", "key=a", "actor_ids=a&name=b", "actor_ids=a&key=b", "namespace=n", &many] {
        assert_eq!(code(query), "invalid_input", "{query}");
    }
    for query in [
        "name=a&colour=red",
        "name=a&name=b",
        "name=%zz",
        "name=a&limit=-1",
        "name=a&limit=x",
        "name=a&include_destroyed=1",
    ] {
        assert_eq!(code(query), "bad_request", "{query}");
    }
}
