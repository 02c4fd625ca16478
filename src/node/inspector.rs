//! What the contract has of the inspector: its messages between versions, what has changed of
//! an actor, and whether somebody may look into it.

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{Buffer, Uint8Array};
use napi_derive::napi;

use super::context::ActorContext;
use super::error::{invalid_argument, thrown};
use super::guard::trip;
use crate::core::config::InspectorTab;
use crate::error::{InvalidArgument, Result};
use crate::inspector::{Secret, downgrade_response, unauthorized, upgrade_request};

/// How often each part of an actor has changed, and what there is of it.
#[napi(object)]
pub struct JsInspectorSnapshot {
    /// Raised with each change of the state.
    pub state_revision: f64,
    /// Raised with each change of the connections.
    pub connections_revision: f64,
    /// Raised with each change of the messages that wait.
    pub queue_revision: f64,
    /// Raised with each change of the schedules.
    pub schedule_revision: f64,
    /// How many connections there are.
    pub active_connections: f64,
    /// How many messages wait.
    pub queue_size: f64,
    /// How many inspectors are attached.
    pub connected_clients: f64,
}

/// A request of a dashboard that speaks `advertisedVersion`, without the version in front,
/// as the newest version has it. Throws `napi.invalid_argument` for a version that exceeds
/// 16 bits, and the error of bytes that are no such request.
#[napi(catch_unwind, ts_return_type = "Buffer")]
pub fn decode_inspector_request(
    env: &Env,
    bytes: Uint8Array,
    advertised_version: f64,
) -> napi::Result<Buffer> {
    trip();
    let version = version("advertisedVersion", advertised_version);
    between(env, &bytes, version, upgrade_request)
}

/// A response of the newest version, without the version in front, as `targetVersion` has
/// it. Throws as `decodeInspectorRequest`.
#[napi(catch_unwind, ts_return_type = "Buffer")]
pub fn encode_inspector_response(
    env: &Env,
    bytes: Uint8Array,
    target_version: f64,
) -> napi::Result<Buffer> {
    trip();
    between(env, &bytes, version("targetVersion", target_version), downgrade_response)
}

/// Throws `inspector.unauthorized` unless `token` is the actor's, or `instead` where there is
/// one for all actors.
#[napi(catch_unwind)]
pub fn check_inspector_token(
    env: &Env,
    context: &ActorContext,
    token: Option<String>,
    instead: Option<String>,
) -> napi::Result<()> {
    trip();
    let checked = match context.inner.folder_secret() {
        Some(secret) => Secret::new(secret).check(
            context.inner.actor_id(),
            token.as_deref(),
            instead.as_deref(),
        ),
        None => Err(unauthorized()),
    };
    checked.map_err(|error| thrown(env, error))
}

#[napi]
impl ActorContext {
    /// How often each part of the actor has changed.
    #[napi(catch_unwind)]
    pub fn inspector_snapshot(&self) -> JsInspectorSnapshot {
        trip();
        let glance = self.inner.glance();
        let revisions = glance.revisions;
        JsInspectorSnapshot {
            state_revision: revisions.state as f64,
            connections_revision: revisions.connections as f64,
            queue_revision: revisions.queue as f64,
            schedule_revision: revisions.schedules as f64,
            active_connections: glance.connections as f64,
            queue_size: glance.queue_size as f64,
            connected_clients: glance.attached as f64,
        }
    }

    /// See the function of this name.
    #[napi(catch_unwind, ts_return_type = "Buffer")]
    pub fn decode_inspector_request(
        &self,
        env: &Env,
        bytes: Uint8Array,
        advertised_version: f64,
    ) -> napi::Result<Buffer> {
        trip();
        decode_inspector_request(env, bytes, advertised_version)
    }

    /// See the function of this name.
    #[napi(catch_unwind, ts_return_type = "Buffer")]
    pub fn encode_inspector_response(
        &self,
        env: &Env,
        bytes: Uint8Array,
        target_version: f64,
    ) -> napi::Result<Buffer> {
        trip();
        encode_inspector_response(env, bytes, target_version)
    }
}

fn version(argument: &'static str, number: f64) -> Result<u64> {
    if number > f64::from(u16::MAX) {
        return Err(invalid_argument(argument, "exceeds u16"));
    }
    if number < 0.0 || number.fract() != 0.0 || number.is_nan() {
        return Err(invalid_argument(argument, "is not a whole number from 0"));
    }
    Ok(number as u64)
}

fn between(
    env: &Env,
    bytes: &Uint8Array,
    version: Result<u64>,
    translate: impl FnOnce(Bytes, u64) -> Result<Vec<u8>, crate::inspector::InspectorError>,
) -> napi::Result<Buffer> {
    let translated =
        version.and_then(|version| Ok(translate(Bytes::copy_from_slice(bytes), version)?));
    translated.map(Buffer::from).map_err(|error| thrown(env, error))
}

/// Checks that the folders of custom tabs are there. They are looked up anew with each request.
///
/// # Errors
///
/// `actor/invalid_argument`.
pub(super) fn check_sources(tabs: &[InspectorTab]) -> Result<()> {
    for tab in tabs {
        let Some(source) = tab.source.as_deref().filter(|_| !tab.hidden) else { continue };
        let refused = |reason: String| InvalidArgument {
            what: "source of an inspector tab",
            value: format!("{source:?}"),
            reason,
        };
        let root = std::fs::canonicalize(source);
        let root = root.map_err(|error| refused(format!("it cannot be found: {error}")))?;
        if root.parent().is_none() {
            return Err(refused("it is the root of the file system".to_owned()).into());
        }
        std::fs::read_dir(&root)
            .map_err(|error| refused(format!("it is no folder that can be read: {error}")))?;
    }
    Ok(())
}
