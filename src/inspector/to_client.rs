//! What a dashboard is told.

use bytes::Bytes;

use super::parts::{Connection, Init, QueueStatus, Schedule, ScheduleFire};
use super::parts::{optional_data, skip_events};
use super::tags::{Since, kind_of, tag_of};
use super::{InspectorError, Version, unknown};
use crate::protocol::bare::{Reader, Writer};

/// A message to a dashboard. `rid` is the id of the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named as the requests and parts that they are of")]
pub enum ToClient {
    /// The state; absent without one and for no bytes.
    StateResponse { rid: u64, state: Option<Bytes>, is_state_enabled: bool },
    /// Who is connected.
    ConnectionsResponse { rid: u64, connections: Vec<Connection> },
    /// What an action returned.
    ActionResponse { rid: u64, output: Bytes },
    /// Somebody has come or gone.
    ConnectionsUpdated { connections: Vec<Connection> },
    /// How many messages wait by now.
    QueueUpdated { queue_size: u64 },
    /// The state has changed.
    StateUpdated { state: Bytes },
    /// The workflow has gone on.
    WorkflowHistoryUpdated { history: Bytes },
    /// The schedules have changed.
    SchedulesUpdated { schedules: Vec<Schedule> },
    /// The names of the actions.
    RpcsListResponse { rid: u64, rpcs: Vec<String> },
    /// Traces, in a form of their own.
    TraceQueryResponse { rid: u64, payload: Bytes },
    /// Messages that wait.
    QueueResponse { rid: u64, status: QueueStatus },
    /// What the workflow did.
    WorkflowHistoryResponse { rid: u64, history: Option<Bytes>, is_workflow_enabled: bool },
    /// What the workflow did, now that it is to run again.
    WorkflowReplayResponse { rid: u64, history: Option<Bytes>, is_workflow_enabled: bool },
    /// The schedules.
    SchedulesResponse { rid: u64, schedules: Vec<Schedule> },
    /// How a schedule went, the newest run first.
    ScheduleHistoryResponse { rid: u64, schedule_id: String, history: Vec<ScheduleFire> },
    /// Whether there was such a schedule.
    ScheduleDeleteResponse { rid: u64, schedule_id: String, deleted: bool },
    /// What went wrong.
    Error { message: String },
    /// The first message.
    Init(Box<Init>),
    /// The tables, in CBOR.
    DatabaseSchemaResponse { rid: u64, schema: Bytes },
    /// Rows of a table, in CBOR.
    DatabaseTableRowsResponse { rid: u64, result: Bytes },
}

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    State,
    Connections,
    Events,
    Action,
    ConnectionsUpdated,
    EventsUpdated,
    QueueUpdated,
    StateUpdated,
    WorkflowHistoryUpdated,
    SchedulesUpdated,
    RpcsList,
    TraceQuery,
    Queue,
    WorkflowHistory,
    WorkflowReplay,
    Schedules,
    ScheduleHistory,
    ScheduleDelete,
    Error,
    Init,
    DatabaseSchema,
    DatabaseTableRows,
}

const FIRST: [Kind; 10] = [
    Kind::State,
    Kind::Connections,
    Kind::Events,
    Kind::Action,
    Kind::RpcsList,
    Kind::ConnectionsUpdated,
    Kind::EventsUpdated,
    Kind::StateUpdated,
    Kind::Error,
    Kind::Init,
];

const NEWEST: [Since<Kind>; 20] = [
    (Kind::State, Version::V1),
    (Kind::Connections, Version::V1),
    (Kind::Action, Version::V1),
    (Kind::ConnectionsUpdated, Version::V1),
    (Kind::QueueUpdated, Version::V2),
    (Kind::StateUpdated, Version::V1),
    (Kind::WorkflowHistoryUpdated, Version::V2),
    (Kind::SchedulesUpdated, Version::V6),
    (Kind::RpcsList, Version::V1),
    (Kind::TraceQuery, Version::V2),
    (Kind::Queue, Version::V2),
    (Kind::WorkflowHistory, Version::V2),
    (Kind::WorkflowReplay, Version::V4),
    (Kind::Schedules, Version::V6),
    (Kind::ScheduleHistory, Version::V6),
    (Kind::ScheduleDelete, Version::V6),
    (Kind::Error, Version::V1),
    (Kind::Init, Version::V1),
    (Kind::DatabaseSchema, Version::V3),
    (Kind::DatabaseTableRows, Version::V3),
];

impl ToClient {
    /// Reads a message of a version, without the version in front.
    ///
    /// # Errors
    ///
    /// [`InspectorError::Message`].
    pub fn decode(version: Version, bytes: Bytes) -> Result<Self, InspectorError> {
        let from = &mut Reader::bare(bytes);
        let tag = from.uint()?;
        let kind = kind_of(&NEWEST, &FIRST, version, tag).ok_or_else(|| unknown(tag))?;
        let message = match kind {
            Kind::State => Self::StateResponse {
                rid: from.uint()?,
                state: from.optional(Reader::data)?,
                is_state_enabled: from.flag()?,
            },
            Kind::Connections => Self::ConnectionsResponse {
                rid: from.uint()?,
                connections: from.list(Connection::read)?,
            },
            Kind::Events => {
                from.uint()?;
                skip_events(from)?;
                events_dropped()
            }
            Kind::Action => Self::ActionResponse { rid: from.uint()?, output: from.data()? },
            Kind::ConnectionsUpdated => {
                Self::ConnectionsUpdated { connections: from.list(Connection::read)? }
            }
            Kind::EventsUpdated => {
                skip_events(from)?;
                events_dropped()
            }
            Kind::QueueUpdated => Self::QueueUpdated { queue_size: from.uint()? },
            Kind::StateUpdated => Self::StateUpdated { state: from.data()? },
            Kind::WorkflowHistoryUpdated => Self::WorkflowHistoryUpdated { history: from.data()? },
            Kind::SchedulesUpdated => {
                Self::SchedulesUpdated { schedules: from.list(Schedule::read)? }
            }
            Kind::RpcsList => {
                Self::RpcsListResponse { rid: from.uint()?, rpcs: from.list(Reader::text)? }
            }
            Kind::TraceQuery => {
                Self::TraceQueryResponse { rid: from.uint()?, payload: from.data()? }
            }
            Kind::Queue => {
                Self::QueueResponse { rid: from.uint()?, status: QueueStatus::read(from)? }
            }
            Kind::WorkflowHistory => Self::WorkflowHistoryResponse {
                rid: from.uint()?,
                history: from.optional(Reader::data)?,
                is_workflow_enabled: from.flag()?,
            },
            Kind::WorkflowReplay => Self::WorkflowReplayResponse {
                rid: from.uint()?,
                history: from.optional(Reader::data)?,
                is_workflow_enabled: from.flag()?,
            },
            Kind::Schedules => {
                Self::SchedulesResponse { rid: from.uint()?, schedules: from.list(Schedule::read)? }
            }
            Kind::ScheduleHistory => Self::ScheduleHistoryResponse {
                rid: from.uint()?,
                schedule_id: from.text()?,
                history: from.list(ScheduleFire::read)?,
            },
            Kind::ScheduleDelete => Self::ScheduleDeleteResponse {
                rid: from.uint()?,
                schedule_id: from.text()?,
                deleted: from.flag()?,
            },
            Kind::Error => Self::Error { message: from.text()? },
            Kind::Init => Self::Init(Box::new(Init::read(version, from)?)),
            Kind::DatabaseSchema => {
                Self::DatabaseSchemaResponse { rid: from.uint()?, schema: from.data()? }
            }
            Kind::DatabaseTableRows => {
                Self::DatabaseTableRowsResponse { rid: from.uint()?, result: from.data()? }
            }
        };
        from.check_end()?;
        Ok(message)
    }

    /// Writes it as a version has it, or the error that stands for it there.
    pub fn encode(&self, version: Version) -> Vec<u8> {
        let kind = self.kind();
        let mut out = Writer::bare();
        let Some(tag) = tag_of(&NEWEST, &FIRST, version, kind) else {
            return Self::Error { message: dropped(kind).to_owned() }.encode(version);
        };
        out.uint(tag);
        self.write(version, &mut out);
        out.into_bytes()
    }

    fn write(&self, version: Version, out: &mut Writer) {
        match self {
            Self::StateResponse { rid, state, is_state_enabled: is_enabled }
            | Self::WorkflowHistoryResponse {
                rid,
                history: state,
                is_workflow_enabled: is_enabled,
            }
            | Self::WorkflowReplayResponse {
                rid,
                history: state,
                is_workflow_enabled: is_enabled,
            } => {
                out.uint(*rid);
                optional_data(out, state.as_ref());
                out.flag(*is_enabled);
            }
            Self::ConnectionsResponse { rid, connections } => {
                out.uint(*rid).list(connections, |out, connection| connection.write(out));
            }
            Self::ActionResponse { rid, output: data }
            | Self::TraceQueryResponse { rid, payload: data }
            | Self::DatabaseSchemaResponse { rid, schema: data }
            | Self::DatabaseTableRowsResponse { rid, result: data } => {
                out.uint(*rid).data(data);
            }
            Self::ConnectionsUpdated { connections } => {
                out.list(connections, |out, connection| connection.write(out));
            }
            Self::QueueUpdated { queue_size } => {
                out.uint(*queue_size);
            }
            Self::StateUpdated { state: data } | Self::WorkflowHistoryUpdated { history: data } => {
                out.data(data);
            }
            Self::SchedulesUpdated { schedules } => {
                out.list(schedules, |out, schedule| schedule.write(out));
            }
            Self::RpcsListResponse { rid, rpcs } => {
                out.uint(*rid).list(rpcs, |out, name| {
                    out.text(name);
                });
            }
            Self::QueueResponse { rid, status } => status.write(out.uint(*rid)),
            Self::SchedulesResponse { rid, schedules } => {
                out.uint(*rid).list(schedules, |out, schedule| schedule.write(out));
            }
            Self::ScheduleHistoryResponse { rid, schedule_id, history } => {
                out.uint(*rid).text(schedule_id).list(history, |out, fire| fire.write(out));
            }
            Self::ScheduleDeleteResponse { rid, schedule_id, deleted } => {
                out.uint(*rid).text(schedule_id).flag(*deleted);
            }
            Self::Error { message } => {
                out.text(message);
            }
            Self::Init(init) => init.write(version, out),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::StateResponse { .. } => Kind::State,
            Self::ConnectionsResponse { .. } => Kind::Connections,
            Self::ActionResponse { .. } => Kind::Action,
            Self::ConnectionsUpdated { .. } => Kind::ConnectionsUpdated,
            Self::QueueUpdated { .. } => Kind::QueueUpdated,
            Self::StateUpdated { .. } => Kind::StateUpdated,
            Self::WorkflowHistoryUpdated { .. } => Kind::WorkflowHistoryUpdated,
            Self::SchedulesUpdated { .. } => Kind::SchedulesUpdated,
            Self::RpcsListResponse { .. } => Kind::RpcsList,
            Self::TraceQueryResponse { .. } => Kind::TraceQuery,
            Self::QueueResponse { .. } => Kind::Queue,
            Self::WorkflowHistoryResponse { .. } => Kind::WorkflowHistory,
            Self::WorkflowReplayResponse { .. } => Kind::WorkflowReplay,
            Self::SchedulesResponse { .. } => Kind::Schedules,
            Self::ScheduleHistoryResponse { .. } => Kind::ScheduleHistory,
            Self::ScheduleDeleteResponse { .. } => Kind::ScheduleDelete,
            Self::Error { .. } => Kind::Error,
            Self::Init(_) => Kind::Init,
            Self::DatabaseSchemaResponse { .. } => Kind::DatabaseSchema,
            Self::DatabaseTableRowsResponse { .. } => Kind::DatabaseTableRows,
        }
    }
}

fn events_dropped() -> ToClient {
    ToClient::Error { message: InspectorError::EventsDropped.to_string() }
}

/// What a dashboard reads in the place of a message that its version has not. The rest is in
/// every version.
fn dropped(kind: Kind) -> &'static str {
    match kind {
        Kind::QueueUpdated | Kind::Queue => "inspector.queue_dropped",
        Kind::WorkflowHistoryUpdated | Kind::WorkflowHistory | Kind::WorkflowReplay => {
            "inspector.workflow_history_dropped"
        }
        Kind::TraceQuery => "inspector.trace_dropped",
        Kind::DatabaseSchema | Kind::DatabaseTableRows => "inspector.database_dropped",
        Kind::SchedulesUpdated | Kind::Schedules | Kind::ScheduleHistory | Kind::ScheduleDelete => {
            "inspector.schedules_dropped"
        }
        Kind::State
        | Kind::Connections
        | Kind::Events
        | Kind::Action
        | Kind::ConnectionsUpdated
        | Kind::EventsUpdated
        | Kind::StateUpdated
        | Kind::RpcsList
        | Kind::Error
        | Kind::Init => "inspector.events_dropped",
    }
}
