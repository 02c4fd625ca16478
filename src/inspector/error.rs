//! What can go wrong between a dashboard and an actor.

use serde_json::Value;

use crate::error::{Coded, ErrorCode};
use crate::protocol::ProtocolError;

/// A fault of a request of a dashboard.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InspectorError {
    /// Nobody speaks this version.
    #[error("the inspector's protocol has no version {version}")]
    UnknownVersion {
        /// What was asked for, shortened when long.
        version: String,
    },
    /// The bytes are not the message that they should be.
    #[error(transparent)]
    Message(#[from] ProtocolError),
    /// A dashboard asks for events, which only the first version had.
    #[error("inspector.events_dropped")]
    EventsDropped,
    /// A version has no such message.
    #[error("version {version} has no `{message}`")]
    NotInVersion {
        /// The version.
        version: u16,
        /// The name of the message.
        message: &'static str,
    },
    /// Nobody let the dashboard in.
    #[error("Inspector request requires a valid bearer token")]
    Unauthorized,
    /// What a dashboard asks cannot be meant.
    #[error("{reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The actor has no state.
    #[error("the actor has no state")]
    StateNotEnabled,
    /// The actor has no database.
    #[error("the actor has no database")]
    DatabaseNotEnabled,
    /// The page of the inspector has no such file.
    #[error("the inspector has no file `{path}`")]
    UiAssetNotFound {
        /// The path, shortened when long.
        path: String,
    },
    /// The actor's type has no such tab.
    #[error("there is no custom tab `{id}`")]
    TabNotFound {
        /// The id, shortened when long.
        id: String,
    },
    /// A tab has no such file.
    #[error("the custom tab `{id}` has no file `{path}`")]
    TabAssetNotFound {
        /// The id of the tab.
        id: String,
        /// The path, shortened when long.
        path: String,
    },
}

impl Coded for InspectorError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownVersion { .. } => ErrorCode::new("inspector", "invalid_protocol_version"),
            Self::Message(error) => error.code(),
            Self::EventsDropped => ErrorCode::new("inspector", "events_dropped"),
            Self::NotInVersion { .. } | Self::Invalid { .. } => {
                ErrorCode::new("inspector", "invalid_request")
            }
            Self::Unauthorized => ErrorCode::new("inspector", "unauthorized"),
            Self::StateNotEnabled => ErrorCode::new("actor", "state_not_enabled"),
            Self::DatabaseNotEnabled => ErrorCode::new("database", "not_enabled"),
            Self::UiAssetNotFound { .. } => ErrorCode::new("inspector", "ui_asset_not_found"),
            Self::TabNotFound { .. } => ErrorCode::new("inspector", "custom_tab_not_found"),
            Self::TabAssetNotFound { .. } => {
                ErrorCode::new("inspector", "custom_tab_asset_not_found")
            }
        }
    }

    fn metadata(&self) -> Option<Value> {
        None
    }

    /// A dashboard may read what is wrong with its own request.
    fn public_status(&self) -> Option<u16> {
        Some(match self {
            Self::Unauthorized => 401,
            Self::UiAssetNotFound { .. }
            | Self::TabNotFound { .. }
            | Self::TabAssetNotFound { .. } => 404,
            _ => 400,
        })
    }
}
