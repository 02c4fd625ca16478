//! What messages are made of.

use bytes::Bytes;

use super::Version;
use crate::protocol::ProtocolError;
use crate::protocol::bare::{Reader, Writer};

/// A connection of the actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its id.
    pub id: String,
    /// What is known of it, a map in CBOR.
    pub details: Bytes,
}

/// A message that waits in the actor's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// Its id.
    pub id: u64,
    /// The name of its queue.
    pub name: String,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
}

/// The actor's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// How many messages wait.
    pub size: u64,
    /// How many may wait.
    pub max_size: u64,
    /// The first of them.
    pub messages: Vec<QueueMessage>,
    /// Whether there are more.
    pub truncated: bool,
}

/// A tab of the author's, or one of ours that is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TabConfigEntry {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub label: Option<String>,
    /// Its icon.
    pub icon: Option<String>,
    /// Whether it hides one of the dashboard's own.
    pub hidden: bool,
}

/// Something that the actor does later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The id of one that runs once, the name of another one.
    pub id: String,
    /// The name; absent of one that runs once.
    pub name: Option<String>,
    /// `at`, `cron` or `every`.
    pub kind: &'static str,
    /// The action.
    pub action: String,
    /// Its arguments.
    pub args: Bytes,
    /// When, in milliseconds since the Unix epoch.
    pub next_run_at: u64,
    /// When it ran last.
    pub last_run_at: Option<u64>,
    /// The cron expression.
    pub expression: Option<String>,
    /// The time zone of that.
    pub timezone: Option<String>,
    /// The interval, in milliseconds.
    pub interval_ms: Option<u64>,
    /// How many runs are remembered.
    pub max_history: Option<u64>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireError {
    /// The group of the error.
    pub group: String,
    /// Its code.
    pub code: String,
    /// Its message.
    pub message: String,
    /// Its metadata, in CBOR.
    pub metadata: Option<Bytes>,
}

/// One run of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleFire {
    /// The action.
    pub action: String,
    /// When it was due, in milliseconds since the Unix epoch.
    pub scheduled_at: u64,
    /// When it began.
    pub fired_at: u64,
    /// When it ended.
    pub finished_at: Option<u64>,
    /// `running`, `ok`, `error` or `skipped`.
    pub result: String,
    /// Why it failed.
    pub error: Option<FireError>,
}

/// The first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// Who is connected.
    pub connections: Vec<Connection>,
    /// The state, in CBOR; absent without one and for no bytes, never empty.
    pub state: Option<Bytes>,
    /// Whether the actor has state.
    pub is_state_enabled: bool,
    /// The names of its actions.
    pub rpcs: Vec<String>,
    /// Whether it has a database.
    pub is_database_enabled: bool,
    /// How many messages wait.
    pub queue_size: u64,
    /// What its workflow did.
    pub workflow_history: Option<Bytes>,
    /// Whether it has a workflow.
    pub is_workflow_enabled: bool,
    /// Its tabs.
    pub tab_config: Vec<TabConfigEntry>,
    /// What it does later.
    pub schedules: Vec<Schedule>,
}

fn text(out: &mut Writer, text: &str) {
    out.text(text);
}

fn optional_text(out: &mut Writer, value: Option<&String>) {
    out.optional(value, |out, text| out.text(text));
}

fn optional_uint(out: &mut Writer, value: Option<u64>) {
    out.optional(value, Writer::uint);
}

pub(super) fn optional_data(out: &mut Writer, value: Option<&Bytes>) {
    out.optional(value, |out, data| out.data(data));
}

impl Connection {
    pub(super) fn read(from: &mut Reader) -> Result<Self, ProtocolError> {
        Ok(Self { id: from.text()?, details: from.data()? })
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.text(&self.id).data(&self.details);
    }
}

impl QueueStatus {
    pub(super) fn read(from: &mut Reader) -> Result<Self, ProtocolError> {
        Ok(Self {
            size: from.uint()?,
            max_size: from.uint()?,
            messages: from.list(|from| {
                Ok(QueueMessage {
                    id: from.uint()?,
                    name: from.text()?,
                    created_at_ms: from.uint()?,
                })
            })?,
            truncated: from.flag()?,
        })
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.uint(self.size).uint(self.max_size);
        out.list(&self.messages, |out, message| {
            out.uint(message.id).text(&message.name).uint(message.created_at_ms);
        });
        out.flag(self.truncated);
    }
}

impl TabConfigEntry {
    fn read(from: &mut Reader) -> Result<Self, ProtocolError> {
        Ok(Self {
            id: from.text()?,
            label: from.optional(Reader::text)?,
            icon: from.optional(Reader::text)?,
            hidden: from.flag()?,
        })
    }

    fn write(&self, out: &mut Writer) {
        out.text(&self.id);
        optional_text(out, self.label.as_ref());
        optional_text(out, self.icon.as_ref());
        out.flag(self.hidden);
    }
}

impl Schedule {
    pub(super) fn read(from: &mut Reader) -> Result<Self, ProtocolError> {
        let (id, name) = (from.text()?, from.optional(Reader::text)?);
        let kind = match from.text()?.as_str() {
            "at" => "at",
            "cron" => "cron",
            "every" => "every",
            other => {
                let tag = other.chars().take(64).collect();
                return Err(ProtocolError::UnknownTag { tag });
            }
        };
        Ok(Self {
            id,
            name,
            kind,
            action: from.text()?,
            args: from.data()?,
            next_run_at: from.uint()?,
            last_run_at: from.optional(Reader::uint)?,
            expression: from.optional(Reader::text)?,
            timezone: from.optional(Reader::text)?,
            interval_ms: from.optional(Reader::uint)?,
            max_history: from.optional(Reader::uint)?,
        })
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.text(&self.id);
        optional_text(out, self.name.as_ref());
        out.text(self.kind).text(&self.action).data(&self.args).uint(self.next_run_at);
        optional_uint(out, self.last_run_at);
        optional_text(out, self.expression.as_ref());
        optional_text(out, self.timezone.as_ref());
        optional_uint(out, self.interval_ms);
        optional_uint(out, self.max_history);
    }
}

impl ScheduleFire {
    pub(super) fn read(from: &mut Reader) -> Result<Self, ProtocolError> {
        Ok(Self {
            action: from.text()?,
            scheduled_at: from.uint()?,
            fired_at: from.uint()?,
            finished_at: from.optional(Reader::uint)?,
            result: from.text()?,
            error: from.optional(|from| {
                Ok(FireError {
                    group: from.text()?,
                    code: from.text()?,
                    message: from.text()?,
                    metadata: from.optional(Reader::data)?,
                })
            })?,
        })
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.text(&self.action).uint(self.scheduled_at).uint(self.fired_at);
        optional_uint(out, self.finished_at);
        out.text(&self.result);
        out.optional(self.error.as_ref(), |out, error| {
            out.text(&error.group).text(&error.code).text(&error.message);
            optional_data(out, error.metadata.as_ref());
            out
        });
    }
}

impl Init {
    pub(super) fn read(version: Version, from: &mut Reader) -> Result<Self, ProtocolError> {
        let connections = from.list(Connection::read)?;
        if version == Version::V1 {
            skip_events(from)?;
        }
        let mut init = Self {
            connections,
            state: from.optional(Reader::data)?,
            is_state_enabled: from.flag()?,
            rpcs: from.list(Reader::text)?,
            is_database_enabled: from.flag()?,
            ..Self::default()
        };
        if version >= Version::V2 {
            init.queue_size = from.uint()?;
            init.workflow_history = from.optional(Reader::data)?;
            init.is_workflow_enabled = from.flag()?;
        }
        if version >= Version::V5 {
            init.tab_config = from.list(TabConfigEntry::read)?;
        }
        if version >= Version::V6 {
            init.schedules = from.list(Schedule::read)?;
        }
        Ok(init)
    }

    pub(super) fn write(&self, version: Version, out: &mut Writer) {
        out.list(&self.connections, |out, connection| connection.write(out));
        if version == Version::V1 {
            // No events are kept.
            out.uint(0);
        }
        optional_data(out, self.state.as_ref());
        out.flag(self.is_state_enabled);
        out.list(&self.rpcs, |out, name| text(out, name));
        out.flag(self.is_database_enabled);
        if version >= Version::V2 {
            out.uint(self.queue_size);
            optional_data(out, self.workflow_history.as_ref());
            out.flag(self.is_workflow_enabled);
        }
        if version >= Version::V5 {
            out.list(&self.tab_config, |out, tab| tab.write(out));
        }
        if version >= Version::V6 {
            out.list(&self.schedules, |out, schedule| schedule.write(out));
        }
    }
}

/// Passes over the events of the first version, which nobody reads any more.
pub(super) fn skip_events(from: &mut Reader) -> Result<(), ProtocolError> {
    from.list(|from| {
        let tag = from.uint()?;
        from.text()?;
        match tag {
            // An action, and an event that was sent to a client.
            0 | 4 => {
                from.data()?;
                from.text()?;
            }
            // An event that was broadcast.
            1 => drop(from.data()?),
            // A client that begins and one that ends to listen.
            2 | 3 => drop(from.text()?),
            _ => return Err(super::unknown(tag)),
        }
        Ok(())
    })
    .map(drop)
}
