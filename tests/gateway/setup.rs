//! What tools are answered that set up an endpoint (O§1.1, O§1.2).

use greenroom::gateway::GatewayOptions;
use serde_json::{Value, json};

use crate::client::Response;
use crate::fixture::Front;

fn options() -> GatewayOptions {
    GatewayOptions { pool: Some("default".into()), ..GatewayOptions::default() }
}

/// A gateway that answers tools.
async fn serving() -> Front {
    Front::with(options()).await
}

/// The ids of these answers are long, and made anew for each request.
async fn ask(front: &Front, method: &str, uri: &str, body: &Value) -> Response {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let response = front.ask(method, uri, &[], &body).await;
    assert_eq!(response.header("x-rivet-ray-id").map(str::len), Some(30), "{uri}");
    assert_eq!(response.header("content-type"), Some("application/json"), "{uri}");
    response
}

async fn told(front: &Front, method: &str, uri: &str, body: &Value) -> Value {
    let response = ask(front, method, uri, body).await;
    assert_eq!(response.status, 200, "{method} {uri}: {}", response.text());
    response.json()
}

async fn refused(front: &Front, method: &str, uri: &str, body: &Value) -> (String, Value) {
    let response = ask(front, method, uri, body).await;
    assert_eq!(response.status, 400, "{method} {uri}: {}", response.text());
    let told = response.json();
    let code = [&told["group"], &told["code"]].map(|part| part.as_str().unwrap_or_default());
    (code.join("."), told["metadata"].clone())
}

#[tokio::test]
async fn a_namespace_is_made_once_and_has_no_actors() {
    let front = serving().await;
    let wanted = json!({ "name": "other", "display_name": "Other" });

    let made = told(&front, "POST", "/namespaces", &wanted).await;
    let again = refused(&front, "POST", "/namespaces", &wanted).await;
    let own = json!({ "name": "default", "display_name": "x" });
    let own = refused(&front, "POST", "/namespaces", &own).await;
    let all = told(&front, "GET", "/namespaces", &Value::Null).await;
    let one = told(&front, "GET", "/namespaces?name=other", &Value::Null).await;

    let other = json!({
        "namespace_id": "other", "name": "other", "display_name": "Other", "create_ts": 1_000_000,
    });
    assert_eq!(made, json!({ "namespace": other }));
    assert_eq!(again, ("namespace.name_not_unique".into(), json!({ "name": "other" })));
    assert_eq!(own.0, "namespace.name_not_unique");
    let default = json!({
        "namespace_id": "default", "name": "default", "display_name": "default",
        "create_ts": 1_000_000,
    });
    let pagination = json!({ "cursor": null });
    assert_eq!(all, json!({ "namespaces": [default, other], "pagination": pagination }));
    assert_eq!(one["namespaces"], json!([other]));
    told(&front, "GET", "/envoys?namespace=other", &Value::Null).await;
    let actors = "/actors?name=counter&namespace=other";
    let refusal = refused(&front, "GET", actors, &Value::Null).await;
    assert_eq!(refusal.0, "namespace.not_found");
}

#[tokio::test]
async fn there_is_one_datacenter_which_is_here() {
    let front = serving().await;
    let host = front.gateway.address().expect("it listens").to_string();

    let told = told(&front, "GET", "/datacenters?namespace=default", &Value::Null).await;

    let url = told["datacenters"][0]["url"].as_str().expect("text").to_owned();
    assert!(url.starts_with("http://"), "{url}");
    assert!(url.ends_with(&host) || url == "http://localhost", "{url}");
    let expected = json!({
        "datacenters": [{ "label": 1, "name": "default", "url": url }],
        "pagination": { "cursor": null },
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_pool_is_set_up_in_both_forms_and_changes_nothing() {
    let front = serving().await;
    let normal = json!({ "datacenters": { "default": { "normal": {} } } });
    let serverless = json!({ "datacenters": { "default": {
        "serverless": { "url": "http://x", "headers": {}, "request_lifespan": 3_600,
            "max_runners": 100_000, "min_runners": 0, "runners_margin": 0, "slots_per_runner": 1 },
        "metadata": {}, "drain_on_version_upgrade": true,
    } } });

    for (pool, body) in [("mine", &normal), ("mine", &serverless), ("default", &normal)] {
        let uri = format!("/runner-configs/{pool}?namespace=default");
        let set = told(&front, "PUT", &uri, body).await;
        assert_eq!(set, json!({ "endpoint_config_changed": false }));
    }

    let uri = "/runner-configs?namespace=default";
    let all = told(&front, "GET", uri, &Value::Null).await;
    let one = format!("{uri}&runner_name=mine");
    let one = told(&front, "GET", &one, &Value::Null).await;
    let pool = json!({ "datacenters": { "default": { "normal": {}, "protocol_version": null } } });
    let pagination = json!({ "cursor": null });
    let pools = json!({ "default": pool, "mine": pool });
    assert_eq!(all, json!({ "runner_configs": pools, "pagination": pagination }));
    assert_eq!(one["runner_configs"], json!({ "mine": pool }));
}

#[tokio::test]
async fn this_process_runs_the_actors_of_the_pool_that_it_was_opened_with() {
    let options = GatewayOptions { pool: Some("mine".into()), ..GatewayOptions::default() };
    let front = Front::with(options).await;

    let uri = "/envoys?namespace=default&name=mine";
    let told_mine = told(&front, "GET", uri, &Value::Null).await;
    let all = told(&front, "GET", "/envoys?namespace=default", &Value::Null).await;
    let unknown = told(&front, "GET", "/envoys?namespace=default&name=x", &Value::Null).await;

    let envoy = &told_mine["envoys"][0];
    assert!(envoy["envoy_key"].as_str().is_some_and(|key| !key.is_empty()));
    let expected = json!({
        "envoys": [{
            "envoy_key": envoy["envoy_key"], "namespace_id": "default", "datacenter": "default",
            "pool_name": "mine", "version": 1, "slots": 0, "create_ts": 1_000_000,
            "stop_ts": null, "last_ping_ts": 1_000_000, "last_connected_ts": 1_000_000,
            "last_rtt": 0,
            "metadata": { "rivetkit": { "version": env!("CARGO_PKG_VERSION") } },
        }],
        "pagination": { "cursor": null },
    });
    assert_eq!(told_mine, expected);
    let pools = all["envoys"].as_array().expect("a list");
    let pools: Vec<_> = pools.iter().map(|envoy| envoy["pool_name"].as_str()).collect();
    assert_eq!(pools, [Some("mine")]);
    assert_eq!(unknown["envoys"], json!([]));
    front.place.running("a").await;
    let busy = told(&front, "GET", uri, &Value::Null).await;
    assert_eq!(busy["envoys"][0]["slots"], 1);
}

#[tokio::test]
async fn an_actor_of_a_pool_that_nobody_set_up_is_not_made() {
    let front = serving().await;
    let wanted = json!({
        "name": "counter", "key": "a", "runner_name_selector": "mine", "crash_policy": "sleep",
    });
    let uri = "/actors?namespace=default";

    for method in ["PUT", "POST"] {
        let (code, metadata) = refused(&front, method, uri, &wanted).await;
        assert_eq!(code, "actor.no_runner_config_configured");
        assert_eq!(metadata, json!({ "namespace": "default", "pool_name": "mine" }));
    }
    let pool = json!({ "datacenters": { "default": { "normal": {} } } });
    told(&front, "PUT", "/runner-configs/mine?namespace=default", &pool).await;

    let made = told(&front, "PUT", uri, &wanted).await;
    assert_eq!(made["created"], true);
    assert_eq!(made["actor"]["runner_name_selector"], "mine");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_a_reason() {
    let front = serving().await;
    let long = "n".repeat(129);
    let normal = json!({ "datacenters": { "default": { "normal": {} } } });
    let unknown = json!({ "datacenters": {}, "x": 1 });

    let elsewhere = json!({ "datacenters": { "mars": { "normal": {} } } });
    for (method, uri, body, code) in [
        ("POST", "/namespaces", json!({ "name": "a" }), "api.bad_request"),
        (
            "POST",
            "/namespaces",
            json!({ "name": "a b", "display_name": "a" }),
            "namespace.failed_to_create",
        ),
        (
            "POST",
            "/namespaces",
            json!({ "name": "a", "display_name": long }),
            "validation.invalid_input",
        ),
        ("PUT", "/runner-configs/a?namespace=none", normal, "namespace.not_found"),
        ("PUT", "/runner-configs/a", unknown, "api.bad_request"),
        ("PUT", "/runner-configs/a", elsewhere, "datacenter.not_found"),
        ("PUT", "/runner-configs/a", json!([]), "api.bad_request"),
        ("GET", "/envoys?namespace=none", Value::Null, "namespace.not_found"),
        ("GET", "/envoys?x=1", Value::Null, "api.bad_request"),
        ("GET", "/datacenters?limit=x", Value::Null, "api.bad_request"),
    ] {
        let (told, metadata) = refused(&front, method, uri, &body).await;
        assert_eq!(told, code, "{method} {uri}");
        assert!(metadata.is_object(), "{method} {uri}");
    }
}

#[tokio::test]
async fn a_list_comes_in_pages_and_grows_only_so_far() {
    let front = serving().await;
    for n in 0..255 {
        let wanted = json!({ "name": format!("n{n:03}"), "display_name": "x" });
        told(&front, "POST", "/namespaces", &wanted).await;
    }

    let more = json!({ "name": "more", "display_name": "x" });
    let (code, _) = refused(&front, "POST", "/namespaces", &more).await;
    let first = told(&front, "GET", "/namespaces?limit=2", &Value::Null).await;
    let second = told(&front, "GET", "/namespaces?limit=300&cursor=n000", &Value::Null).await;

    assert_eq!(code, "validation.invalid_input");
    assert_eq!(first["pagination"]["cursor"], "n000");
    assert_eq!(second["namespaces"].as_array().map(Vec::len), Some(254));
    assert_eq!(second["pagination"]["cursor"], Value::Null);
}

#[tokio::test]
async fn tools_need_the_token_that_a_gateway_has() {
    let token = greenroom::gateway::Token::new("t0k");
    let front = Front::with(GatewayOptions { token, ..options() }).await;

    for uri in ["/namespaces", "/datacenters", "/runner-configs", "/envoys"] {
        assert_eq!(front.ask("GET", uri, &[], b"").await.status, 401, "{uri}");
        let bearer = [("authorization", "Bearer t0k")];
        assert_eq!(front.ask("GET", uri, &bearer, b"").await.status, 200, "{uri}");
    }
}

#[tokio::test]
async fn without_a_pool_nobody_sets_anything_up_and_pools_mean_nothing() {
    let front = Front::new().await;

    for uri in ["/namespaces", "/datacenters", "/runner-configs", "/envoys", "/runner-configs/x"] {
        assert_eq!(front.ask("GET", uri, &[], b"").await.status, 404, "{uri}");
    }
    let wanted = json!({
        "name": "counter", "key": "a", "runner_name_selector": "mine", "crash_policy": "sleep",
    });
    let made = told(&front, "PUT", "/actors?namespace=default", &wanted).await;
    assert_eq!(made["created"], true);
}
