//! The bodies of the HTTP calls of an actor (§4.1, §4.3, §4.4). Errors have
//! [`ErrorBody`](super::ErrorBody).

use serde::Serialize;

use super::bare::{self, Version};
use super::cbor::{self, Item};
use super::wire::Shape;
use super::{Args, Payload, ProtocolError};

/// Calls an action; its name is in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRequest {
    /// Its arguments.
    pub args: Args,
}

/// What an action returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResponse {
    /// The value.
    pub output: Payload,
}

/// Puts a message into a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSendRequest {
    /// The message.
    pub body: Payload,
    /// The name of the queue. The one in the path counts.
    pub name: Option<String>,
    /// Whether the response has to wait for the completion of the message.
    pub wait: Option<bool>,
    /// How long it waits, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// What clients of ours may ask for, which BARE has no room for.
    pub policy: SendPolicy,
}

/// How a message is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendPolicy {
    /// Of all messages of the queue that are sent under it the first one counts.
    pub dedupe_key: Option<String>,
    /// How long it is held back, in milliseconds.
    pub delay_ms: Option<u64>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSendResponse {
    /// How the wait ended.
    pub status: SendStatus,
    /// What the consumer completed the message with.
    pub response: Option<Payload>,
}

/// How the wait for a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStatus {
    /// It is completed, or nobody wanted to wait.
    Completed,
    /// Not in time.
    TimedOut,
}

/// Who an actor is. No published client asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveResponse {
    /// The id of the actor.
    pub actor_id: String,
}

/// What runs an actor: the answer of `GET /metadata` within it. JSON in any case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActorMetadata {
    /// `rivetkit`, for which tools take all that speaks this protocol.
    pub runtime: &'static str,
    /// The version of what runs it.
    pub version: String,
    /// Where it runs.
    #[serde(rename = "type")]
    pub deployment: Deployment,
}

/// Where an actor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Deployment {
    /// On a machine of a developer.
    Local,
    /// In production.
    Deployed,
}

impl SendStatus {
    const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::TimedOut => "timedOut",
        }
    }

    fn named(name: &str) -> Result<Self, ProtocolError> {
        [Self::Completed, Self::TimedOut]
            .into_iter()
            .find(|status| status.name() == name)
            .ok_or(ProtocolError::Field { field: "status", expected: "`completed` or `timedOut`" })
    }
}

impl Shape for ActionRequest {
    fn write_bare(&self, out: &mut bare::Writer) {
        out.payload(self.args.payload());
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(Self { args: from.payload()?.try_into()? })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        out.map(1).text("args").raw(self.args.cbor());
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let [args] = from.fields(["args"])?;
        Ok(Self { args: args.payload()?.try_into()? })
    }
}

impl Shape for ActionResponse {
    fn write_bare(&self, out: &mut bare::Writer) {
        out.payload(&self.output);
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(Self { output: from.payload()? })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        out.map(1).text("output").raw(self.output.cbor());
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let [output] = from.fields(["output"])?;
        Ok(Self { output: output.payload()? })
    }
}

impl Shape for QueueSendRequest {
    const SINCE: Version = Version::V3;

    fn write_bare(&self, out: &mut bare::Writer) {
        out.payload(&self.body);
        out.optional(self.name.as_deref(), bare::Writer::text);
        out.optional(self.wait, bare::Writer::flag);
        out.optional(self.timeout_ms, bare::Writer::u64);
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(Self {
            body: from.payload()?,
            name: from.optional(bare::Reader::text)?,
            wait: from.optional(bare::Reader::flag)?,
            timeout_ms: from.optional(bare::Reader::u64)?,
            policy: SendPolicy::default(),
        })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        let SendPolicy { dedupe_key, delay_ms } = &self.policy;
        let optional = [
            self.name.is_some(),
            self.wait.is_some(),
            self.timeout_ms.is_some(),
            dedupe_key.is_some(),
            delay_ms.is_some(),
        ];
        out.map(1 + optional.into_iter().filter(|given| *given).count());
        out.text("body").raw(self.body.cbor());
        if let Some(name) = &self.name {
            out.text("name").text(name);
        }
        if let Some(wait) = self.wait {
            out.text("wait").flag(wait);
        }
        if let Some(timeout) = self.timeout_ms {
            out.text("timeout").whole(timeout);
        }
        if let Some(key) = dedupe_key {
            out.text("dedupeKey").text(key);
        }
        if let Some(delay) = *delay_ms {
            out.text("delay").whole(delay);
        }
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let [body, name, wait, timeout, key, delay] =
            from.fields(["body", "name", "wait", "timeout", "dedupeKey", "delay"])?;
        Ok(Self {
            body: body.payload()?,
            name: name.optional().map(|name| name.text()).transpose()?,
            wait: wait.optional().map(|wait| wait.flag()).transpose()?,
            timeout_ms: timeout.optional().map(|timeout| timeout.milliseconds()).transpose()?,
            policy: SendPolicy {
                dedupe_key: key.optional().map(|key| key.text()).transpose()?,
                delay_ms: delay.optional().map(|delay| delay.milliseconds()).transpose()?,
            },
        })
    }
}

impl Shape for QueueSendResponse {
    const SINCE: Version = Version::V3;

    fn write_bare(&self, out: &mut bare::Writer) {
        out.text(self.status.name());
        out.optional(self.response.as_ref(), bare::Writer::payload);
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(Self { status: SendStatus::named(&from.text()?)?, response: from.optional_payload()? })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        out.map(1 + usize::from(self.response.is_some()));
        out.text("status").text(self.status.name());
        if let Some(response) = &self.response {
            out.text("response").raw(response.cbor());
        }
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let [status, response] = from.fields(["status", "response"])?;
        Ok(Self {
            status: SendStatus::named(&status.required()?.text()?)?,
            response: response.given().map(|response| response.payload()).transpose()?,
        })
    }
}

impl Shape for ResolveResponse {
    fn write_bare(&self, out: &mut bare::Writer) {
        out.text(&self.actor_id);
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(Self { actor_id: from.text()? })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        out.map(1).text("actorId").text(&self.actor_id);
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let [actor_id] = from.fields(["actorId"])?;
        Ok(Self { actor_id: actor_id.required()?.text()? })
    }
}
