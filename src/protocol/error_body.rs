//! What a client reads of an error (§7.1, §7.2).

use super::bare::{self, Version};
use super::cbor::{self, Item};
use super::wire::Shape;
use super::{Payload, ProtocolError};
use crate::error::{ActorSpecifier, Error, INTERNAL_MESSAGE};

/// An error as clients know it: the body of a response, and most of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorBody {
    /// The part of the system that the fault belongs to.
    pub group: String,
    /// The fault within the group.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Named values for programs.
    pub metadata: Option<Payload>,
    /// The actor that it happened in.
    pub actor: Option<ActorBody>,
}

/// The actor that an error names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorBody {
    /// The id that stays over generations.
    pub actor_id: String,
    /// The run of the actor in which the error happened.
    pub generation: u64,
    /// The key in its display form.
    pub key: Option<String>,
}

/// How much of an error clients read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disclosure {
    /// Message and metadata of a public error; of any other, group and code alone.
    #[default]
    Public,
    /// All of it, the text of an internal error in the place of its message: for
    /// development.
    All,
}

impl ErrorBody {
    /// What clients read of an error. Group and code stay in any case (invariant 6).
    /// Metadata that is nested too deeply to be sent is left out.
    pub fn new(error: &Error, disclosure: Disclosure) -> Self {
        let shown = disclosure == Disclosure::All || error.is_public();
        let message = match error.detail() {
            _ if !shown => INTERNAL_MESSAGE,
            Some(detail) if error.message == INTERNAL_MESSAGE => detail,
            _ => &error.message,
        };
        Self {
            group: error.group.clone().into_owned(),
            code: error.code.clone().into_owned(),
            message: message.to_owned(),
            metadata: error
                .metadata
                .as_ref()
                .filter(|metadata| shown && !metadata.is_null())
                .and_then(|metadata| Payload::try_from(metadata).ok()),
            actor: error.actor.as_ref().map(ActorBody::from),
        }
    }
}

impl From<&ActorSpecifier> for ActorBody {
    fn from(actor: &ActorSpecifier) -> Self {
        Self {
            actor_id: actor.actor_id.clone(),
            generation: actor.generation,
            key: actor.key.clone(),
        }
    }
}

/// The fields of an error that come before the id of the action.
const FIELDS: [&str; 5] = ["group", "code", "message", "metadata", "actor"];

impl ErrorBody {
    /// What a frame and a response have in common; the frame has its id in the middle.
    pub(super) fn write_bare_with(
        &self,
        out: &mut bare::Writer,
        middle: impl FnOnce(&mut bare::Writer),
    ) {
        out.text(&self.group).text(&self.code).text(&self.message);
        out.optional(self.metadata.as_ref(), bare::Writer::payload);
        middle(out);
        if out.version() >= Version::V4 {
            out.optional(self.actor.as_ref(), |out, actor| {
                out.text(&actor.actor_id).uint(actor.generation);
                out.optional(actor.key.as_deref(), bare::Writer::text)
            });
        }
    }

    pub(super) fn read_bare_with<T>(
        from: &mut bare::Reader,
        middle: impl FnOnce(&mut bare::Reader) -> Result<T, ProtocolError>,
    ) -> Result<(Self, T), ProtocolError> {
        let (group, code, message) = (from.text()?, from.text()?, from.text()?);
        let metadata = from.optional_payload()?;
        let middle = middle(from)?;
        let actor = if from.version() >= Version::V4 {
            from.optional(|from| {
                Ok(ActorBody {
                    actor_id: from.text()?,
                    generation: from.uint()?,
                    key: from.optional(bare::Reader::text)?,
                })
            })?
        } else {
            None
        };
        Ok((Self { group, code, message, metadata, actor }, middle))
    }

    /// As many fields as [`ErrorBody::write_fields`] writes.
    pub(super) fn field_count(&self) -> usize {
        3 + usize::from(self.metadata.is_some()) + usize::from(self.actor.is_some())
    }

    pub(super) fn write_fields(&self, out: &mut cbor::Writer) {
        let [group, code, message, metadata, actor] = FIELDS;
        out.text(group).text(&self.group);
        out.text(code).text(&self.code);
        out.text(message).text(&self.message);
        if let Some(payload) = &self.metadata {
            out.text(metadata).raw(payload.cbor());
        }
        if let Some(body) = &self.actor {
            out.text(actor).map(2 + usize::from(body.key.is_some()));
            out.text("actorId").text(&body.actor_id);
            out.text("generation").whole(body.generation);
            // Left out when absent: the clients refuse a key that is `null`.
            if let Some(key) = &body.key {
                out.text("key").text(key);
            }
        }
    }
}

impl Shape for ErrorBody {
    fn write_bare(&self, out: &mut bare::Writer) {
        self.write_bare_with(out, |_| {});
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(Self::read_bare_with(from, |_| Ok(()))?.0)
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        out.map(self.field_count());
        self.write_fields(out);
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let [group, code, message, metadata, actor] = from.fields(FIELDS)?;
        let actor = match actor.optional() {
            None => None,
            Some(actor) => {
                let [actor_id, generation, key] = actor.fields(["actorId", "generation", "key"])?;
                Some(ActorBody {
                    actor_id: actor_id.required()?.text()?,
                    generation: generation.required()?.id()?,
                    key: key.optional().map(|key| key.text()).transpose()?,
                })
            }
        };
        Ok(Self {
            group: group.required()?.text()?,
            code: code.required()?.text()?,
            message: message.required()?.text()?,
            metadata: metadata.given().map(|metadata| metadata.payload()).transpose()?,
            actor,
        })
    }
}
