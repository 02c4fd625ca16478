//! Looking at the actors of a host from outside, and ending them.

use napi::Env;
use napi_derive::napi;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::callers::{Target, actor_id, row_json};
use super::context::settle_with;
use super::env::number;
use super::error::{invalid_argument, thrown};
use super::gateway;
use super::guard::trip;
use super::host::{Opened, encoded, leave, opened, settles_json};
use crate::core::actor::activity::Hold;
use crate::error::{Error, Result};
use crate::host::embedded::{Departure, Listed};
use crate::ids::{ActorKey, ActorName, KeyPart};
use crate::store::{ActorNumber, Backup, Existing, ListFilter};
use crate::time::Duration;

/// How many actors one list has, unless said otherwise.
const PAGE: u32 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListArgs {
    name: Option<String>,
    key_prefix: Vec<KeyPart>,
    after: Option<i64>,
    limit: u32,
}

impl Default for ListArgs {
    fn default() -> Self {
        Self { name: None, key_prefix: Vec::new(), after: None, limit: PAGE }
    }
}

#[derive(Deserialize)]
struct IdArgs {
    id: String,
}

#[derive(Deserialize)]
struct ExportArgs {
    id: String,
    path: String,
    replace: bool,
}

#[derive(Deserialize)]
struct ImportArgs {
    path: String,
    name: String,
    key: Vec<KeyPart>,
}

#[derive(Deserialize)]
struct BackupArgs {
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShutdownArgs {
    grace_ms: u64,
}

/// Manages the actors of a host, and settles `ticket` with JSON.
#[napi(
    catch_unwind,
    ts_args_type = "host: number, op: 'list' | 'info' | 'sleep' | 'destroy' | 'export' | 'import' | 'backup' | 'listen' | 'unlisten' | 'shutdown', args: string, ticket: number"
)]
pub fn manage(env: &Env, host: f64, op: String, args: String, ticket: f64) -> napi::Result<()> {
    trip();
    let begun = match op.as_str() {
        "shutdown" => read::<ShutdownArgs>(&args).and_then(|ShutdownArgs { grace_ms }| {
            leave(host, Duration::from_millis(grace_ms), ticket, report)
        }),
        "listen" => opened(host).and_then(|opened| {
            let listening = gateway::listen(&opened, number(host), read(&args)?);
            settle_with(&opened.hub, ticket, async move { Ok(Some(encoded(&listening?))) });
            Ok(())
        }),
        op => opened(host).and_then(|opened| begin(&opened, op, &args, ticket)),
    };
    begun.map_err(|error| thrown(env, error))
}

/// Begins what is asked for. What is wrong with the arguments is thrown.
fn begin(opened: &Opened, op: &str, args: &str, ticket: f64) -> Result<()> {
    let Opened { host, hub, .. } = opened;
    match op {
        "list" => {
            let listed = host.list(filter(read(args)?)?);
            settle_with(hub, ticket, async move { Ok(Some(encoded(&page(&listed.await?)))) });
        }
        "info" => {
            let report = host.info(actor_id(&read::<IdArgs>(args)?.id)?);
            settle_with(hub, ticket, async move {
                let report = match report.await {
                    Ok(report) => report,
                    Err(error) if error.is("actor", "not_found") => {
                        return Ok(Some(encoded(&Value::Null)));
                    }
                    Err(error) => return Err(error),
                };
                let mut value = row_json(&report.row);
                value["awake"] = json!(report.generation.is_some());
                value["holds"] = holds(&report.holds);
                Ok(Some(encoded(&value)))
            });
        }
        "sleep" => {
            let id = actor_id(&read::<IdArgs>(args)?.id)?;
            host.sleep(id, settles_json(hub, ticket, |()| Value::Null));
        }
        "destroy" => {
            let address = Target::read(args)?.into_address(None)?;
            host.destroy(address, settles_json(hub, ticket, |existed: bool| json!(existed)));
        }
        "export" => {
            let ExportArgs { id, path, replace } = read(args)?;
            let existing = if replace { Existing::Replace } else { Existing::Refuse };
            let exported = host.export(actor_id(&id)?, path.into(), existing);
            settle_with(hub, ticket, async move {
                exported.await?;
                Ok(Some(encoded(&Value::Null)))
            });
        }
        "import" => {
            let ImportArgs { path, name, key } = read(args)?;
            let imported = host.import(path.into(), ActorName::new(name)?, ActorKey::new(key)?);
            settle_with(hub, ticket, async move { Ok(Some(encoded(&row_json(&imported.await?)))) });
        }
        "backup" => {
            let made = host.backup(read::<BackupArgs>(args)?.path.into());
            settle_with(hub, ticket, async move {
                let Backup { actors, files, bytes } = made.await?;
                let value = json!({ "actors": actors, "files": files, "bytes": bytes });
                Ok(Some(encoded(&value)))
            });
        }
        "unlisten" => {
            let ended = gateway::unlisten(&read(args)?);
            settle_with(hub, ticket, async move {
                ended.await;
                Ok(Some(encoded(&Value::Null)))
            });
        }
        other => return Err(invalid_argument("op", format!("{other:?} is unknown"))),
    }
    Ok(())
}

fn read<T: DeserializeOwned>(args: &str) -> Result<T> {
    serde_json::from_str(args).map_err(|error| invalid_argument("args", error))
}

fn filter(args: ListArgs) -> Result<ListFilter, Error> {
    Ok(ListFilter {
        name: args.name.map(ActorName::new).transpose()?,
        key_prefix: ActorKey::new(args.key_prefix)?,
        after: args.after.map(ActorNumber),
        limit: args.limit,
    })
}

/// A page and the cursor of the next one, null after the last actor of all.
fn page(listed: &[Listed]) -> Value {
    let actor = |listed: &Listed| {
        let mut value = row_json(&listed.row);
        value["awake"] = json!(listed.awake);
        value
    };
    json!({
        "actors": listed.iter().map(actor).collect::<Vec<_>>(),
        "cursor": listed.last().map(|last| last.row.number.0),
    })
}

fn report(Departure { report, .. }: &Departure) -> Value {
    let left = report.not_drained.iter().map(|left| {
        json!({
            "name": left.name.as_str(),
            "key": left.key,
            "actorId": left.actor_id.to_string(),
            "holds": holds(&left.holds),
        })
    });
    json!({ "drained": report.drained, "notDrained": left.collect::<Vec<_>>() })
}

fn holds(holds: &[Hold]) -> Value {
    holds.iter().map(|hold| json!({ "what": hold.what, "count": hold.count })).collect()
}
