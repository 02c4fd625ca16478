//! What a dashboard says.

use bytes::Bytes;

use super::tags::{Since, kind_of, tag_of};
use super::{InspectorError, Version, unknown};
use crate::protocol::bare::{Reader, Writer};

/// A message of a dashboard. The `id` comes back with the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToServer {
    /// Puts another state in the place of the actor's.
    PatchState {
        /// The state, in CBOR.
        state: Bytes,
    },
    /// Asks for the state.
    State {
        /// See [`ToServer`].
        id: u64,
    },
    /// Asks who is connected.
    Connections {
        /// See [`ToServer`].
        id: u64,
    },
    /// Calls an action.
    Action {
        /// See [`ToServer`].
        id: u64,
        /// The action.
        name: String,
        /// Its arguments, in CBOR.
        args: Bytes,
    },
    /// Asks for the names of the actions.
    RpcsList {
        /// See [`ToServer`].
        id: u64,
    },
    /// Asks for traces, which nobody keeps.
    TraceQuery {
        /// See [`ToServer`].
        id: u64,
        /// From when, in milliseconds since the Unix epoch.
        start_ms: u64,
        /// Until when.
        end_ms: u64,
        /// How many.
        limit: u64,
    },
    /// Asks for messages that wait.
    Queue {
        /// See [`ToServer`].
        id: u64,
        /// How many.
        limit: u64,
    },
    /// Asks what the workflow did.
    WorkflowHistory {
        /// See [`ToServer`].
        id: u64,
    },
    /// Has the workflow run again.
    WorkflowReplay {
        /// See [`ToServer`].
        id: u64,
        /// From which entry of its history; from the beginning without one.
        entry_id: Option<String>,
    },
    /// Asks for the tables.
    DatabaseSchema {
        /// See [`ToServer`].
        id: u64,
    },
    /// Asks for rows of a table.
    DatabaseTableRows {
        /// See [`ToServer`].
        id: u64,
        /// The table.
        table: String,
        /// How many.
        limit: u64,
        /// From which on.
        offset: u64,
    },
    /// Asks for the schedules.
    Schedules {
        /// See [`ToServer`].
        id: u64,
    },
    /// Asks how a schedule went.
    ScheduleHistory {
        /// See [`ToServer`].
        id: u64,
        /// Which one.
        schedule_id: String,
        /// How many of its runs.
        limit: u64,
    },
    /// Ends a schedule.
    ScheduleDelete {
        /// See [`ToServer`].
        id: u64,
        /// Which one.
        schedule_id: String,
        /// `at`, `cron` or `every`.
        kind: String,
    },
}

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PatchState,
    State,
    Connections,
    Action,
    Events,
    ClearEvents,
    RpcsList,
    TraceQuery,
    Queue,
    WorkflowHistory,
    WorkflowReplay,
    DatabaseSchema,
    DatabaseTableRows,
    Schedules,
    ScheduleHistory,
    ScheduleDelete,
}

const FIRST: [Kind; 7] = [
    Kind::PatchState,
    Kind::State,
    Kind::Connections,
    Kind::Action,
    Kind::Events,
    Kind::ClearEvents,
    Kind::RpcsList,
];

const NEWEST: [Since<Kind>; 14] = [
    (Kind::PatchState, Version::V1),
    (Kind::State, Version::V1),
    (Kind::Connections, Version::V1),
    (Kind::Action, Version::V1),
    (Kind::RpcsList, Version::V1),
    (Kind::TraceQuery, Version::V2),
    (Kind::Queue, Version::V2),
    (Kind::WorkflowHistory, Version::V2),
    (Kind::WorkflowReplay, Version::V4),
    (Kind::DatabaseSchema, Version::V3),
    (Kind::DatabaseTableRows, Version::V3),
    (Kind::Schedules, Version::V6),
    (Kind::ScheduleHistory, Version::V6),
    (Kind::ScheduleDelete, Version::V6),
];

impl ToServer {
    /// Reads a message of a version, without the version in front.
    ///
    /// # Errors
    ///
    /// [`InspectorError::Message`], [`InspectorError::EventsDropped`].
    pub fn decode(version: Version, bytes: Bytes) -> Result<Self, InspectorError> {
        let mut from = Reader::bare(bytes);
        let tag = from.uint()?;
        let kind = kind_of(&NEWEST, &FIRST, version, tag).ok_or_else(|| unknown(tag))?;
        let message = match kind {
            Kind::PatchState => Self::PatchState { state: from.data()? },
            Kind::State => Self::State { id: from.uint()? },
            Kind::Connections => Self::Connections { id: from.uint()? },
            Kind::Action => {
                Self::Action { id: from.uint()?, name: from.text()?, args: from.data()? }
            }
            Kind::Events | Kind::ClearEvents => return Err(InspectorError::EventsDropped),
            Kind::RpcsList => Self::RpcsList { id: from.uint()? },
            Kind::TraceQuery => Self::TraceQuery {
                id: from.uint()?,
                start_ms: from.uint()?,
                end_ms: from.uint()?,
                limit: from.uint()?,
            },
            Kind::Queue => Self::Queue { id: from.uint()?, limit: from.uint()? },
            Kind::WorkflowHistory => Self::WorkflowHistory { id: from.uint()? },
            Kind::WorkflowReplay => {
                Self::WorkflowReplay { id: from.uint()?, entry_id: from.optional(Reader::text)? }
            }
            Kind::DatabaseSchema => Self::DatabaseSchema { id: from.uint()? },
            Kind::DatabaseTableRows => Self::DatabaseTableRows {
                id: from.uint()?,
                table: from.text()?,
                limit: from.uint()?,
                offset: from.uint()?,
            },
            Kind::Schedules => Self::Schedules { id: from.uint()? },
            Kind::ScheduleHistory => Self::ScheduleHistory {
                id: from.uint()?,
                schedule_id: from.text()?,
                limit: from.uint()?,
            },
            Kind::ScheduleDelete => Self::ScheduleDelete {
                id: from.uint()?,
                schedule_id: from.text()?,
                kind: from.text()?,
            },
        };
        from.end()?;
        Ok(message)
    }

    /// Writes it as a version has it.
    ///
    /// # Errors
    ///
    /// [`InspectorError::NotInVersion`].
    pub fn encode(&self, version: Version) -> Result<Vec<u8>, InspectorError> {
        let (kind, message) = self.kind();
        let tag = tag_of(&NEWEST, &FIRST, version, kind);
        let tag = tag.ok_or(InspectorError::NotInVersion { version: version.number(), message })?;
        let mut out = Writer::bare();
        out.uint(tag);
        match self {
            Self::PatchState { state } => out.data(state),
            Self::State { id }
            | Self::Connections { id }
            | Self::RpcsList { id }
            | Self::WorkflowHistory { id }
            | Self::DatabaseSchema { id }
            | Self::Schedules { id } => out.uint(*id),
            Self::Action { id, name, args } => out.uint(*id).text(name).data(args),
            Self::TraceQuery { id, start_ms, end_ms, limit } => {
                out.uint(*id).uint(*start_ms).uint(*end_ms).uint(*limit)
            }
            Self::Queue { id, limit } => out.uint(*id).uint(*limit),
            Self::WorkflowReplay { id, entry_id } => {
                out.uint(*id).optional(entry_id.as_ref(), |out, text| out.text(text))
            }
            Self::DatabaseTableRows { id, table, limit, offset } => {
                out.uint(*id).text(table).uint(*limit).uint(*offset)
            }
            Self::ScheduleHistory { id, schedule_id, limit } => {
                out.uint(*id).text(schedule_id).uint(*limit)
            }
            Self::ScheduleDelete { id, schedule_id, kind } => {
                out.uint(*id).text(schedule_id).text(kind)
            }
        };
        Ok(out.into_bytes())
    }

    fn kind(&self) -> (Kind, &'static str) {
        match self {
            Self::PatchState { .. } => (Kind::PatchState, "PatchStateRequest"),
            Self::State { .. } => (Kind::State, "StateRequest"),
            Self::Connections { .. } => (Kind::Connections, "ConnectionsRequest"),
            Self::Action { .. } => (Kind::Action, "ActionRequest"),
            Self::RpcsList { .. } => (Kind::RpcsList, "RpcsListRequest"),
            Self::TraceQuery { .. } => (Kind::TraceQuery, "TraceQueryRequest"),
            Self::Queue { .. } => (Kind::Queue, "QueueRequest"),
            Self::WorkflowHistory { .. } => (Kind::WorkflowHistory, "WorkflowHistoryRequest"),
            Self::WorkflowReplay { .. } => (Kind::WorkflowReplay, "WorkflowReplayRequest"),
            Self::DatabaseSchema { .. } => (Kind::DatabaseSchema, "DatabaseSchemaRequest"),
            Self::DatabaseTableRows { .. } => (Kind::DatabaseTableRows, "DatabaseTableRowsRequest"),
            Self::Schedules { .. } => (Kind::Schedules, "SchedulesRequest"),
            Self::ScheduleHistory { .. } => (Kind::ScheduleHistory, "ScheduleHistoryRequest"),
            Self::ScheduleDelete { .. } => (Kind::ScheduleDelete, "ScheduleDeleteRequest"),
        }
    }
}
