//! One message of each kind.

use bytes::Bytes;

use crate::inspector::{
    Connection, FireError, Init, QueueMessage, QueueStatus, Schedule, ScheduleFire, TabConfigEntry,
    ToClient, ToServer,
};

fn data(bytes: &'static [u8]) -> Bytes {
    Bytes::from_static(bytes)
}

pub(super) fn connection() -> Connection {
    Connection { id: "c1".into(), details: data(&[0xa0]) }
}

pub(super) fn schedule() -> Schedule {
    Schedule {
        id: "daily".into(),
        name: Some("daily".into()),
        kind: "cron",
        action: "tick".into(),
        args: data(&[0x80]),
        next_run_at: 300,
        last_run_at: None,
        expression: Some("0 0 * * *".into()),
        timezone: Some("UTC".into()),
        interval_ms: None,
        max_history: Some(10),
    }
}

pub(super) fn init() -> Init {
    Init {
        connections: vec![connection()],
        state: Some(data(&[0x05])),
        is_state_enabled: true,
        rpcs: vec!["add".into()],
        is_database_enabled: false,
        queue_size: 2,
        workflow_history: None,
        is_workflow_enabled: false,
        tab_config: vec![TabConfigEntry {
            id: "t".into(),
            label: Some("T".into()),
            icon: None,
            hidden: false,
        }],
        schedules: vec![schedule()],
    }
}

pub(super) fn to_server() -> Vec<ToServer> {
    vec![
        ToServer::PatchState { state: data(&[0x18, 42]) },
        ToServer::State { id: 1 },
        ToServer::Connections { id: 2 },
        ToServer::Action { id: 3, name: "add".into(), args: data(&[0x81, 0x05]) },
        ToServer::RpcsList { id: 4 },
        ToServer::TraceQuery { id: 5, start_ms: 1, end_ms: 2, limit: 3 },
        ToServer::Queue { id: 6, limit: 200 },
        ToServer::WorkflowHistory { id: 7 },
        ToServer::WorkflowReplay { id: 8, entry_id: Some("e".into()) },
        ToServer::DatabaseSchema { id: 9 },
        ToServer::DatabaseTableRows { id: 10, table: "t".into(), limit: 1, offset: 0 },
        ToServer::Schedules { id: 11 },
        ToServer::ScheduleHistory { id: 12, schedule_id: "daily".into(), limit: 9 },
        ToServer::ScheduleDelete { id: 13, schedule_id: "daily".into(), kind: "cron".into() },
    ]
}

pub(super) fn to_client() -> Vec<ToClient> {
    let messages = vec![QueueMessage { id: 1, name: "jobs".into(), created_at_ms: 5 }];
    let error = FireError {
        group: "user".into(),
        code: "bad".into(),
        message: "no".into(),
        metadata: Some(data(&[0xf6])),
    };
    let fire = ScheduleFire {
        action: "tick".into(),
        scheduled_at: 1,
        fired_at: 2,
        finished_at: Some(3),
        result: "error".into(),
        error: Some(error),
    };
    vec![
        ToClient::StateResponse { rid: 1, state: Some(data(&[0x05])), is_state_enabled: true },
        ToClient::ConnectionsResponse { rid: 2, connections: vec![connection()] },
        ToClient::ActionResponse { rid: 3, output: data(&[0x0f]) },
        ToClient::ConnectionsUpdated { connections: Vec::new() },
        ToClient::QueueUpdated { queue_size: 300 },
        ToClient::StateUpdated { state: data(&[0x18, 42]) },
        ToClient::WorkflowHistoryUpdated { history: data(&[1, 2]) },
        ToClient::SchedulesUpdated { schedules: vec![schedule()] },
        ToClient::RpcsListResponse { rid: 4, rpcs: vec!["add".into(), "get".into()] },
        ToClient::TraceQueryResponse { rid: 5, payload: Bytes::new() },
        ToClient::QueueResponse {
            rid: 6,
            status: QueueStatus { size: 2, max_size: 1_000, messages, truncated: true },
        },
        ToClient::WorkflowHistoryResponse { rid: 7, history: None, is_workflow_enabled: false },
        ToClient::WorkflowReplayResponse {
            rid: 8,
            history: Some(data(&[1])),
            is_workflow_enabled: true,
        },
        ToClient::SchedulesResponse { rid: 9, schedules: Vec::new() },
        ToClient::ScheduleHistoryResponse {
            rid: 10,
            schedule_id: "daily".into(),
            history: vec![fire],
        },
        ToClient::ScheduleDeleteResponse { rid: 11, schedule_id: "daily".into(), deleted: true },
        ToClient::Error { message: "oh".into() },
        ToClient::Init(Box::new(init())),
        ToClient::DatabaseSchemaResponse { rid: 12, schema: data(&[0xa0]) },
        ToClient::DatabaseTableRowsResponse { rid: 13, result: data(&[0x80]) },
    ]
}
