//! The frames of a connection (§3.3).
//!
//! In CBOR and JSON a frame is `{body: {tag, val}}`, in BARE a union behind the version.

use super::bare::{self, Version};
use super::cbor::{self, Item};
use super::error::shown;
use super::wire::Shape;
use super::{Args, ErrorBody, Payload, ProtocolError};

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToClient {
    /// The connection stands. Once, after all hooks.
    Init {
        /// The id of the actor.
        actor_id: String,
        /// The id of the connection.
        connection_id: String,
    },
    /// Something failed.
    Error {
        /// The action that it answers; `None` means the whole connection.
        action_id: Option<u64>,
        /// What failed.
        error: ErrorBody,
    },
    /// An action has returned.
    ActionResponse {
        /// The id of its request.
        id: u64,
        /// What it returned.
        output: Payload,
    },
    /// An event.
    Event {
        /// Its name.
        name: String,
        /// Its arguments.
        args: Args,
    },
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToServer {
    /// Call an action.
    ActionRequest {
        /// What the answer has to name; unique among the calls in flight of a connection.
        id: u64,
        /// The name of the action, with dots if it is nested.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Begin or end to hear events of a name.
    SubscriptionRequest {
        /// Their name.
        event_name: String,
        /// Whether to begin.
        subscribe: bool,
    },
}

/// Opens a frame in a map and writes its tag; the value follows.
fn frame<'a>(out: &'a mut cbor::Writer, tag: &str) -> &'a mut cbor::Writer {
    out.map(1).text("body").map(2).text("tag").text(tag).text("val")
}

/// The tag and the value of a frame in a map.
fn opened(from: &Item) -> Result<(String, Item), ProtocolError> {
    let [body] = from.fields(["body"])?;
    let [tag, val] = body.required()?.fields(["tag", "val"])?;
    Ok((tag.required()?.text()?, val.required()?))
}

fn unknown<T>(tag: impl ToString) -> Result<T, ProtocolError> {
    Err(ProtocolError::UnknownTag { tag: shown(&tag.to_string()).to_owned() })
}

impl Shape for ToClient {
    fn write_bare(&self, out: &mut bare::Writer) {
        match self {
            Self::Init { actor_id, connection_id } => {
                out.uint(0).text(actor_id).text(connection_id);
                if out.version() == Version::V1 {
                    out.text("");
                }
            }
            Self::Error { action_id, error } => {
                out.uint(1);
                error.write_bare_with(out, |out| {
                    out.optional(*action_id, bare::Writer::uint);
                });
            }
            Self::ActionResponse { id, output } => {
                out.uint(2).uint(*id).payload(output);
            }
            Self::Event { name, args } => {
                out.uint(3).text(name).payload(args.payload());
            }
        }
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(match from.uint()? {
            0 => {
                let (actor_id, connection_id) = (from.text()?, from.text()?);
                if from.version() == Version::V1 {
                    from.text()?;
                }
                Self::Init { actor_id, connection_id }
            }
            1 => {
                let (error, action_id) =
                    ErrorBody::read_bare_with(from, |from| from.optional(bare::Reader::uint))?;
                Self::Error { action_id, error }
            }
            2 => Self::ActionResponse { id: from.uint()?, output: from.payload()? },
            3 => Self::Event { name: from.text()?, args: from.payload()?.try_into()? },
            tag => return unknown(tag),
        })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        match self {
            Self::Init { actor_id, connection_id } => {
                frame(out, "Init").map(2);
                out.text("actorId").text(actor_id);
                out.text("connectionId").text(connection_id);
            }
            Self::Error { action_id, error } => {
                frame(out, "Error").map(error.field_count() + 1);
                error.write_fields(out);
                // Never left out: the clients refuse an error without it.
                out.text("actionId");
                match action_id {
                    Some(id) => out.id(*id),
                    None => out.null(),
                };
            }
            Self::ActionResponse { id, output } => {
                frame(out, "ActionResponse").map(2);
                out.text("id").id(*id).text("output").raw(output.cbor());
            }
            Self::Event { name, args } => {
                frame(out, "Event").map(2);
                out.text("name").text(name).text("args").raw(args.cbor());
            }
        }
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let (tag, val) = opened(from)?;
        Ok(match &*tag {
            "Init" => {
                let [actor_id, connection_id] = val.fields(["actorId", "connectionId"])?;
                Self::Init {
                    actor_id: actor_id.required()?.text()?,
                    connection_id: connection_id.required()?.text()?,
                }
            }
            "Error" => {
                let [action_id] = val.fields(["actionId"])?;
                Self::Error {
                    action_id: action_id.optional().map(|id| id.id()).transpose()?,
                    error: ErrorBody::read_map(&val)?,
                }
            }
            "ActionResponse" => {
                let [id, output] = val.fields(["id", "output"])?;
                Self::ActionResponse { id: id.required()?.id()?, output: output.payload()? }
            }
            "Event" => {
                let [name, args] = val.fields(["name", "args"])?;
                Self::Event { name: name.required()?.text()?, args: args.payload()?.try_into()? }
            }
            _ => return unknown(tag),
        })
    }
}

impl Shape for ToServer {
    fn write_bare(&self, out: &mut bare::Writer) {
        match self {
            Self::ActionRequest { id, name, args } => {
                out.uint(0).uint(*id).text(name).payload(args.payload())
            }
            Self::SubscriptionRequest { event_name, subscribe } => {
                out.uint(1).text(event_name).flag(*subscribe)
            }
        };
    }

    fn read_bare(from: &mut bare::Reader) -> Result<Self, ProtocolError> {
        Ok(match from.uint()? {
            0 => Self::ActionRequest {
                id: from.uint()?,
                name: from.text()?,
                args: from.payload()?.try_into()?,
            },
            1 => Self::SubscriptionRequest { event_name: from.text()?, subscribe: from.flag()? },
            tag => return unknown(tag),
        })
    }

    fn write_map(&self, out: &mut cbor::Writer) {
        match self {
            Self::ActionRequest { id, name, args } => {
                frame(out, "ActionRequest").map(3);
                out.text("id").id(*id);
                out.text("name").text(name).text("args").raw(args.cbor());
            }
            Self::SubscriptionRequest { event_name, subscribe } => {
                frame(out, "SubscriptionRequest").map(2);
                out.text("eventName").text(event_name).text("subscribe").flag(*subscribe);
            }
        }
    }

    fn read_map(from: &Item) -> Result<Self, ProtocolError> {
        let (tag, val) = opened(from)?;
        Ok(match &*tag {
            "ActionRequest" => {
                let [id, name, args] = val.fields(["id", "name", "args"])?;
                Self::ActionRequest {
                    id: id.required()?.id()?,
                    name: name.required()?.text()?,
                    args: args.payload()?.try_into()?,
                }
            }
            "SubscriptionRequest" => {
                let [event_name, subscribe] = val.fields(["eventName", "subscribe"])?;
                Self::SubscriptionRequest {
                    event_name: event_name.required()?.text()?,
                    subscribe: subscribe.required()?.flag()?,
                }
            }
            _ => return unknown(tag),
        })
    }
}
