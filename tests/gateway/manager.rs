//! The calls of the manager.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use greenroom::gateway::{GatewayOptions, Token};
use greenroom::inspector::Secret;
use serde_json::{Value, json};

use crate::fixture::Front;
use crate::place::{get, or_create};

async fn put(front: &Front, body: &Value) -> Value {
    let response =
        front.ask("PUT", "/actors?namespace=default", &[], body.to_string().as_bytes()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn wanted(key: &str) -> Value {
    json!({
        "name": "counter", "key": key, "runner_name_selector": "default", "crash_policy": "sleep",
    })
}

fn keys(body: &Value) -> Vec<&str> {
    let actors = body["actors"].as_array().expect("a list");
    actors.iter().map(|actor| actor["key"].as_str().expect("text")).collect()
}

/// O§1.1 and O§1.2.
#[tokio::test]
async fn health_and_metadata_name_what_answers() {
    let front = Front::new().await;
    let version = env!("CARGO_PKG_VERSION");

    let health = front.ask("GET", "/health", &[], b"").await;
    let metadata = front.ask("GET", "/metadata?namespace=default", &[], b"").await;

    let expected = json!({ "runtime": "engine", "status": "ok", "version": version });
    assert_eq!((health.status, health.json()), (200, expected));
    let expected = json!({ "runtime": "engine", "version": version });
    assert_eq!((metadata.status, metadata.json()), (200, expected));
}

/// O§1.2: the fields, their names and their forms.
#[tokio::test]
async fn an_actor_is_shown_with_all_of_its_fields() {
    let front = Front::new().await;

    let made = put(&front, &wanted(r"a/b\/c")).await;

    let id = made["actor"]["actor_id"].as_str().unwrap().to_owned();
    let expected = json!({
        "actor": {
            "actor_id": id, "name": "counter", "key": r"a/b\/c", "namespace_id": "default",
            "datacenter": "default", "runner_name_selector": "default", "crash_policy": "sleep",
            "create_ts": 1_000_000, "start_ts": null, "pending_allocation_ts": null,
            "connectable_ts": null, "sleep_ts": null, "reschedule_ts": null, "destroy_ts": null,
        },
        "created": true,
    });
    assert_eq!(made, expected);
}

#[tokio::test]
async fn a_get_or_create_finds_what_there_is_and_starts_nothing() {
    let front = Front::new().await;

    let first = put(&front, &wanted("a")).await;
    let second = put(&front, &wanted("a")).await;

    assert_eq!((&first["created"], &second["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["actor"]["actor_id"], second["actor"]["actor_id"]);
    assert_eq!(front.script().alive(), 0);
}

#[tokio::test]
async fn of_many_who_get_or_create_at_once_one_has_made_it() {
    let front = Front::new().await;

    let wanted = wanted("a");
    let answers = join_all((0..40).map(|_| put(&front, &wanted))).await;

    let ids: Vec<_> = answers.iter().map(|answer| &answer["actor"]["actor_id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(answers.iter().filter(|answer| answer["created"] == true).count(), 1);
}

#[tokio::test]
async fn an_input_reaches_the_first_start() {
    let front = Front::new().await;
    let mut wanted = wanted("a");
    wanted["input"] = STANDARD.encode(b"\xa1\x61n\x05").into();

    put(&front, &wanted).await;
    front.call("echo", "{}").await;

    assert_eq!(front.script().inputs(), [Some((&b"\xa1\x61n\x05"[..]).into())]);
}

/// O§1.2.
#[tokio::test]
async fn a_create_of_a_key_that_is_taken_names_who_has_it() {
    let front = Front::new().await;
    let body = wanted("a").to_string();
    let create = || front.ask("POST", "/actors?namespace=default", &[], body.as_bytes());
    let made = create().await;
    assert_eq!(made.status, 200);
    assert_eq!(made.json()["created"], Value::Null);

    let again = create().await;

    assert_eq!(again.fault(), (400, "actor.duplicate_key".into()));
    let metadata = &again.json()["metadata"];
    assert_eq!(metadata["key"], "a");
    assert_eq!(metadata["existing_actor_id"], made.json()["actor"]["actor_id"]);
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_and_nothing_is_made() {
    let front = Front::new().await;
    let long = "k".repeat(129);
    let cases = [
        ("{", "api.bad_request"),
        ("", "api.bad_request"),
        (r#"{"name":"counter","keys":"a"}"#, "api.bad_request"),
        (r#"{"name":""}"#, "validation.invalid_input"),
        (r#"{"name":"counter","input":"!"}"#, "api.bad_request"),
        (r#"{"name":"counter","input":"/w=="}"#, "api.bad_request"),
        (&format!(r#"{{"name":"counter","key":"{long}"}}"#), "actor.key_too_large"),
        (r#"{"name":"unheard"}"#, "actor.not_registered"),
    ];

    for (body, fault) in cases {
        for method in ["PUT", "POST"] {
            let response = front.ask(method, "/actors", &[], body.as_bytes()).await;
            assert_eq!(response.fault(), (400, fault.into()), "{method} {body}");
        }
    }
    let elsewhere = front.ask("PUT", "/actors?namespace=x", &[], b"{}").await;
    assert_eq!(elsewhere.fault(), (400, "namespace.not_found".into()));
    let list = front.ask("GET", "/actors?name=counter", &[], b"").await;
    assert_eq!(list.json(), json!({ "actors": [], "pagination": { "cursor": null } }));
}

/// O§1.2: the newest first.
#[tokio::test]
async fn a_list_goes_from_the_newest_to_the_oldest_page_by_page() {
    let front = Front::new().await;
    for key in ["a", "b", "c"] {
        front.place.resolve(or_create(key)).await.unwrap();
    }

    let first = front.ask("GET", "/actors?name=counter&limit=2", &[], b"").await.json();
    let cursor = first["pagination"]["cursor"].as_str().unwrap();
    let next = format!("/actors?name=counter&limit=2&cursor={cursor}");
    let second = front.ask("GET", &next, &[], b"").await.json();
    let last = second["pagination"]["cursor"].as_str().unwrap();
    let none = front.ask("GET", &format!("/actors?name=counter&cursor={last}"), &[], b"").await;

    assert_eq!((keys(&first), keys(&second)), (vec!["c", "b"], vec!["a"]));
    assert_eq!(none.json()["pagination"]["cursor"], Value::Null);
}

#[tokio::test]
async fn actors_are_found_by_key_and_by_ids_and_those_that_are_not_there_are_left_out() {
    let front = Front::new().await;
    let a = front.place.resolve(or_create("a")).await.unwrap().id;
    let b = front.place.resolve(or_create("b")).await.unwrap().id;
    let find = async |query: &str| {
        front.ask("GET", &format!("/actors?namespace=default&{query}"), &[], b"").await.json()
    };

    assert_eq!(keys(&find("name=counter&key=a").await), ["a"]);
    assert_eq!(keys(&find("name=counter&key=z").await), [""; 0]);
    assert_eq!(keys(&find(&format!("actor_ids={a},{b},{a},nonsense")).await), ["b", "a"]);
    let none = "00000000-0000-4000-8000-000000000000";
    assert_eq!(keys(&find(&format!("actor_ids={none}")).await), [""; 0]);
}

#[tokio::test]
async fn a_list_that_makes_no_sense_is_refused() {
    let front = Front::new().await;

    for (query, fault) in [
        ("", "validation.invalid_input"),
        ("key=a", "validation.invalid_input"),
        ("name=counter&actor_ids=a", "validation.invalid_input"),
        ("name=counter&limit=x", "api.bad_request"),
        ("name=counter&cursor=x", "api.bad_request"),
        ("nmae=counter", "api.bad_request"),
        ("name=counter&namespace=x", "namespace.not_found"),
    ] {
        let response = front.ask("GET", &format!("/actors?{query}"), &[], b"").await;
        assert_eq!(response.fault(), (400, fault.into()), "{query}");
    }
}

#[tokio::test]
async fn the_types_that_run_are_listed_with_how_they_are_shown() {
    let front = Front::new().await;
    front.configure(|config| config.icon = Some("bolt".into()));

    let names = front.ask("GET", "/actors/names?namespace=default", &[], b"").await;

    let expected = json!({
        "names": { "counter": { "metadata": { "icon": "bolt" } } },
        "pagination": { "cursor": null },
    });
    assert_eq!(names.json(), expected);
}

/// O§1.1.
#[tokio::test]
async fn a_destroyed_actor_is_gone_and_destroying_it_again_is_no_fault() {
    let front = Front::new().await;
    let id = front.place.running("a").await;
    for no_id in ["/actors/ID", "/actors/%ff", "/actors/%zz"] {
        let response = front.ask("DELETE", no_id, &[], b"").await;
        assert_eq!(response.fault(), (400, "api.bad_request".into()), "{no_id}");
    }

    for _ in 0..2 {
        let uri = format!("/actors/{id}?namespace=default");
        let response = front.ask("DELETE", &uri, &[], b"").await;
        assert_eq!((response.status, response.json()), (200, json!({})));
    }

    assert_eq!(front.script().alive(), 0);
    assert!(front.place.resolve(get("a")).await.is_err());
}

#[tokio::test]
async fn an_actor_is_put_to_sleep() {
    let front = Front::new().await;
    let id = front.place.running("a").await;

    let response = front.ask("POST", &format!("/actors/{id}/sleep"), &[], b"{}").await;

    assert_eq!((response.status, response.json()), (200, json!({})));
    assert_eq!(front.script().alive(), 0);
}

#[tokio::test]
async fn a_path_that_leads_nowhere_is_named_without_what_may_be_a_token() {
    let front = Front::new().await;

    for (method, uri) in [("GET", "/nowhere@secret"), ("PATCH", "/actors"), ("GET", "/")] {
        let response = front.ask(method, uri, &[], b"").await;
        assert_eq!(response.fault(), (404, "api.not_found".into()), "{method} {uri}");
        assert!(!response.text().contains("secret"));
    }
}

/// O§1.2: what a dashboard asks for before it shows an inspector.
#[tokio::test]
async fn those_who_manage_read_the_token_of_an_actor_and_nothing_else_that_is_kept() {
    let front = Front::new().await;
    let id = front.place.running("a").await;
    let ask = async |id: &str, key: &str| {
        front.ask("GET", &format!("/actors/{id}/kv/keys/{key}"), &[], b"").await
    };

    let found = ask(&id.to_string(), "Aw==").await.json();
    let token = Secret::new(front.host().store().secret()).token(id);
    assert_eq!(found["value"], STANDARD.encode(token));
    assert_eq!(ask(&id.to_string(), "BA==").await.fault(), (400, "actor.kv_key_not_found".into()));
    assert_eq!(ask(&id.to_string(), "no%20base64").await.fault().0, 400);
    front.place.destroy(get("a")).await.unwrap();
    assert_eq!(ask(&id.to_string(), "Aw==").await.fault().1, "actor.not_found");
}

#[tokio::test]
async fn nobody_reads_the_token_of_an_actor_who_may_not_manage_actors() {
    let token = Token::new("t");
    let front = Front::with(GatewayOptions { token, ..GatewayOptions::default() }).await;
    let id = front.place.running("a").await;

    let refused = front.ask("GET", &format!("/actors/{id}/kv/keys/Aw=="), &[], b"").await;

    assert_eq!(refused.fault(), (401, "api.unauthorized".into()));
}
