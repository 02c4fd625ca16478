//! What dashboards ask over HTTP, in JSON (§8.2).

use axum::body::Body;
use axum::http::Method;
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};

use super::database::bindings;
use super::look::{History, Look, invalid};
use super::{invalid_request, nothing_at};
use crate::error::{Error, Result};
use crate::gateway::Shared;
use crate::gateway::answer::{body as body_of, json as json_of};
use crate::gateway::body::{Read, read};
use crate::inspector::Connection;
use crate::protocol::cbor::Item;
use crate::protocol::{Args, MAX_REQUEST_BODY, Payload, form_decode, percent_decode};

/// How many messages of a queue are shown where nobody says.
const MESSAGES: u64 = 100;

/// How many rows of a table are shown where nobody says.
const ROWS: u64 = 100;

/// Answers a request with the token.
pub(super) async fn answer(
    look: &Look,
    path: &str,
    uri: &str,
    method: &Method,
    body: &Bytes,
) -> Result<Response> {
    let route = path.strip_prefix("/inspector/").unwrap_or_default();
    let query = Query(uri.split_once('?').map_or("", |(_, query)| query));
    let text = match (method.as_str(), route) {
        ("GET", "state") => {
            let state = of_state(look.state().await?)?;
            let is_enabled = look.config().has_state;
            format!(r#"{{"state":{state},"isStateEnabled":{is_enabled}}}"#)
        }
        ("PATCH", "state") => {
            let [state] = fields(body, ["state"])?;
            let state = state.required().map_err(|error| invalid_request(error.to_string()))?;
            look.patch(state.payload()?.cbor()).await?;
            r#"{"ok":true}"#.to_owned()
        }
        ("GET", "connections") => {
            let connections = of_connections(&look.connections().await?)?;
            format!(r#"{{"connections":{connections}}}"#)
        }
        ("GET", "rpcs") => json!({ "rpcs": look.rpcs() }).to_string(),
        ("POST", _) if route.starts_with("action/") => {
            let name = percent_decode(&route["action/".len()..])
                .map_err(|error| invalid_request(error.to_string()))?;
            let Some(args) = args(body)? else { return Ok(ambiguous()) };
            let output = look.act(name.clone(), args).await?.to_json()?;
            format!(r#"{{"output":{output}}}"#)
        }
        ("GET", "queue") => {
            let limit = query.whole("limit", MESSAGES)?;
            let status = look.queue(usize::try_from(limit).unwrap_or(usize::MAX));
            let message = |message: &crate::inspector::QueueMessage| {
                let crate::inspector::QueueMessage { id, name, created_at_ms } = message;
                json!({ "id": id, "name": name, "createdAtMs": created_at_ms })
            };
            let messages: Vec<Value> = status.messages.iter().map(message).collect();
            json!({
                "size": status.size,
                "maxSize": status.max_size,
                "truncated": status.truncated,
                "messages": messages,
            })
            .to_string()
        }
        ("POST", "queue") => {
            let [name, body] = fields(body, ["name", "body"])?;
            let name = name.required().and_then(|name| name.text());
            let name = name.map_err(|error| invalid_request(error.to_string()))?;
            if name.is_empty() {
                return Err(invalid_request("the name of the queue is empty"));
            }
            let (id, created_at_ms) = look.send(&name, body.payload()?).await?;
            json!({ "id": id.to_string(), "name": name, "createdAtMs": created_at_ms }).to_string()
        }
        ("DELETE", "queue") => {
            look.empty_queue().await?;
            "{}".to_owned()
        }
        ("GET", "workflow-history") => of_history(&look.history().await?),
        ("POST", "workflow/replay") => {
            let [entry] = fields(body, ["entryId"])?;
            let entry = entry.optional().map(|entry| entry.text()).transpose();
            let entry = entry.map_err(|error| invalid_request(error.to_string()))?;
            of_history(&look.replay(entry.as_deref()).await?)
        }
        ("GET", "traces") => r#"{"otlp":[],"clamped":false}"#.to_owned(),
        ("GET", "database/schema") => {
            format!(r#"{{"schema":{}}}"#, of_cbor(look.schema().await?)?)
        }
        ("GET", "database/rows") => {
            let table = query.text("table")?.ok_or_else(|| invalid("`table` is missing"))?;
            let (limit, offset) = (query.whole("limit", ROWS)?, query.whole("offset", 0)?);
            format!(r#"{{"rows":{}}}"#, of_cbor(look.rows(&table, limit, offset).await?)?)
        }
        ("POST", "database/execute") => {
            let asked = read_json(body)?;
            let sql = asked.get("sql").and_then(Value::as_str).unwrap_or_default();
            if sql.is_empty() {
                return Err(invalid_request("`sql` is missing"));
            }
            let given = |name| asked.get(name).filter(|value: &&Value| !value.is_null());
            if given("args").is_some() && given("properties").is_some() {
                return Ok(ambiguous());
            }
            let bindings = bindings(given("args"), given("properties"))?;
            format!(r#"{{"rows":{}}}"#, of_cbor(look.execute(sql.to_owned(), bindings).await?)?)
        }
        ("GET", "summary") => {
            let init = look.init().await?;
            format!(
                r#"{{"state":{},"isStateEnabled":{},"connections":{},"rpcs":{},"queueSize":{},"isDatabaseEnabled":{},"isWorkflowEnabled":{},"workflowHistory":null}}"#,
                of_state(init.state)?,
                init.is_state_enabled,
                of_connections(&init.connections)?,
                json!(init.rpcs),
                init.queue_size,
                init.is_database_enabled,
                init.is_workflow_enabled,
            )
        }
        _ => return Err(nothing_at(path)),
    };
    Ok(json_of(text.into()))
}

/// The arguments of an action; `None` where they are given in two ways, or in none that is one.
fn args(body: &Bytes) -> Result<Option<Payload>> {
    let [args, properties] = fields(body, ["args", "properties"])?;
    let (args, properties) = (args.optional(), properties.optional());
    Ok(match (args, properties) {
        (Some(_), Some(_)) => None,
        (Some(args), None) => Some(args.payload()?),
        (None, Some(properties)) => {
            // An object is one whose fields can be looked for.
            if properties.fields(["_"]).is_err() {
                return Ok(None);
            }
            let mut one = vec![0x81];
            one.extend_from_slice(properties.payload()?.cbor());
            Some(Payload::new(one.into())?)
        }
        (None, None) => Some(Args::none().payload().clone()),
    })
}

/// As the published runtime says it, which makes no error of it.
fn ambiguous() -> Response {
    let text = json!({ "error": "`args` is a list, `properties` an object: give one of them" });
    let text = text.to_string();
    body_of(axum::http::StatusCode::BAD_REQUEST, "application/json", text.into())
}

/// Takes the body of a request.
pub(super) async fn take(shared: &Shared, body: Body) -> Result<Bytes> {
    let patience = shared.options.bounds.body_timeout;
    match read(body, MAX_REQUEST_BODY, shared.clock(), patience).await? {
        Read::Whole(bytes) => Ok(bytes),
        Read::TooLong(_) => {
            Err(crate::gateway::GatewayError::BodyTooLong { limit: MAX_REQUEST_BODY }.into())
        }
    }
}

/// The fields of an object of JSON; no body is one without any.
fn fields<const N: usize>(
    bytes: &Bytes,
    names: [&'static str; N],
) -> Result<[crate::protocol::cbor::Field; N]> {
    let text = if bytes.is_empty() { &b"{}"[..] } else { &bytes[..] };
    let read = Payload::from_json(text).and_then(|given| {
        let item = Item::message(given.cbor().clone())?;
        item.fields(names)
    });
    read.map_err(|error| invalid_request(error.to_string()))
}

fn read_json(bytes: &Bytes) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| invalid_request(error.to_string()))
}

fn of_cbor(bytes: Bytes) -> Result<String, Error> {
    Ok(Payload::new(bytes)?.to_json()?)
}

fn of_state(state: Option<Bytes>) -> Result<String, Error> {
    state.map_or_else(|| Ok("null".to_owned()), of_cbor)
}

fn of_connections(connections: &[Connection]) -> Result<String, Error> {
    let mut out = Vec::with_capacity(connections.len());
    for Connection { id, details } in connections {
        let details = of_cbor(details.clone())?;
        out.push(format!(r#"{{"type":null,"id":{},"details":{details}}}"#, json!(id)));
    }
    Ok(format!("[{}]", out.join(",")))
}

/// What a workflow did has a form that only the author's side reads.
fn of_history(history: &History) -> String {
    json!({ "history": null, "isWorkflowEnabled": history.is_enabled }).to_string()
}

/// What stands behind the path.
struct Query<'a>(&'a str);

impl Query<'_> {
    fn text(&self, wanted: &str) -> Result<Option<String>> {
        let value = self.0.split('&').find_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name == wanted && !value.is_empty()).then_some(value)
        });
        let value = value.map(form_decode).transpose();
        value.map_err(|_| invalid(format!("`{wanted}` is not percent-encoded")))
    }

    fn whole(&self, wanted: &str, usual: u64) -> Result<u64> {
        let Some(text) = self.text(wanted)? else { return Ok(usual) };
        text.parse().map_err(|_| invalid(format!("`{wanted}` is not a whole number from 0")))
    }
}
