//! What a dashboard asks over its socket, and what it is answered (§8.3).

use bytes::Bytes;

use super::look::Look;
use crate::error::Result;
use crate::inspector::{ToClient, ToServer};
use crate::protocol::Payload;

/// The most messages of a queue that are shown.
const MAX_MESSAGES: u64 = 200;

/// The answer to a request; `None` where it is what is told of the change.
pub(super) async fn answer(look: &Look, request: ToServer) -> Option<ToClient> {
    let answered = match request {
        ToServer::PatchState { state } => match look.patch(&state).await {
            Ok(()) => return None,
            Err(error) => Err(error),
        },
        request => answered(look, request).await,
    };
    Some(answered.unwrap_or_else(|error| {
        // It may read anything of an actor that it looks into.
        let message = error.detail().unwrap_or(&error.message).to_owned();
        ToClient::Error { message }
    }))
}

async fn answered(look: &Look, request: ToServer) -> Result<ToClient> {
    Ok(match request {
        // Answered before.
        ToServer::PatchState { .. } => ToClient::Error { message: String::new() },
        ToServer::State { id: rid } => ToClient::StateResponse {
            rid,
            state: look.state().await?,
            is_state_enabled: look.config().has_state,
        },
        ToServer::Connections { id: rid } => {
            ToClient::ConnectionsResponse { rid, connections: look.connections().await? }
        }
        ToServer::Action { id: rid, name, args } => {
            let output = look.act(name, Payload::new(args)?).await?.cbor().clone();
            ToClient::ActionResponse { rid, output }
        }
        ToServer::RpcsList { id: rid } => ToClient::RpcsListResponse { rid, rpcs: look.rpcs() },
        ToServer::TraceQuery { id: rid, .. } => {
            ToClient::TraceQueryResponse { rid, payload: Bytes::new() }
        }
        ToServer::Queue { id: rid, limit } => {
            let limit = usize::try_from(limit.min(MAX_MESSAGES)).unwrap_or_default();
            ToClient::QueueResponse { rid, status: look.queue(limit) }
        }
        ToServer::WorkflowHistory { id: rid } => {
            let history = look.history().await?;
            ToClient::WorkflowHistoryResponse {
                rid,
                history: history.bytes,
                is_workflow_enabled: history.is_enabled,
            }
        }
        ToServer::WorkflowReplay { id: rid, entry_id } => {
            let history = look.replay(entry_id.as_deref()).await?;
            ToClient::WorkflowReplayResponse {
                rid,
                history: history.bytes,
                is_workflow_enabled: history.is_enabled,
            }
        }
        ToServer::DatabaseSchema { id: rid } => {
            ToClient::DatabaseSchemaResponse { rid, schema: look.schema().await? }
        }
        ToServer::DatabaseTableRows { id: rid, table, limit, offset } => {
            let result = look.rows(&table, limit, offset).await?;
            ToClient::DatabaseTableRowsResponse { rid, result }
        }
        ToServer::Schedules { id: rid } => {
            ToClient::SchedulesResponse { rid, schedules: look.schedules().await? }
        }
        ToServer::ScheduleHistory { id: rid, schedule_id, limit } => {
            let history = look.schedule_history(&schedule_id, limit).await?;
            ToClient::ScheduleHistoryResponse { rid, schedule_id, history }
        }
        ToServer::ScheduleDelete { id: rid, schedule_id, kind } => {
            let deleted = look.end_schedule(&schedule_id, &kind).await?;
            ToClient::ScheduleDeleteResponse { rid, schedule_id, deleted }
        }
    })
}
