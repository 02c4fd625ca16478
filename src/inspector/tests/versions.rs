//! What a version has, and what becomes of what it has not.

use bytes::Bytes;

use super::samples;
use crate::error::Coded as _;
use crate::inspector::{
    Init, InspectorError, ToClient, ToServer, Version, downgrade_response, upgrade_request,
};

/// The places of the samples among the messages to a dashboard, and what stands for them.
fn dropped(version: Version) -> Vec<(usize, &'static str)> {
    let mut out = Vec::new();
    if version < Version::V6 {
        out.extend([7, 13, 14, 15].map(|at| (at, "inspector.schedules_dropped")));
    }
    if version < Version::V4 {
        out.push((12, "inspector.workflow_history_dropped"));
    }
    if version < Version::V3 {
        out.extend([18, 19].map(|at| (at, "inspector.database_dropped")));
    }
    if version < Version::V2 {
        out.extend([4, 10].map(|at| (at, "inspector.queue_dropped")));
        out.extend([6, 11].map(|at| (at, "inspector.workflow_history_dropped")));
        out.push((9, "inspector.trace_dropped"));
    }
    out
}

fn init_of(version: Version) -> ToClient {
    let mut init = samples::init();
    if version < Version::V6 {
        init.schedules = Vec::new();
    }
    if version < Version::V5 {
        init.tab_config = Vec::new();
    }
    if version < Version::V2 {
        init = Init { queue_size: 0, workflow_history: None, is_workflow_enabled: false, ..init };
    }
    ToClient::Init(Box::new(init))
}

#[test]
fn a_message_to_a_dashboard_comes_back_or_says_what_its_version_has_not() {
    for version in Version::ALL {
        for (at, message) in samples::to_client().into_iter().enumerate() {
            let read = ToClient::decode(version, message.encode(version).into()).unwrap();

            let lost = dropped(version).into_iter().find(|(lost, _)| *lost == at);
            let expected = match (lost, &message) {
                (Some((_, text)), _) => ToClient::Error { message: text.into() },
                (None, ToClient::Init(_)) => init_of(version),
                (None, _) => message,
            };
            assert_eq!(read, expected, "{version:?}");
        }
    }
}

#[test]
fn a_message_of_a_dashboard_comes_back_in_every_version_that_has_it() {
    let since = |message: &ToServer| match message {
        ToServer::Schedules { .. }
        | ToServer::ScheduleHistory { .. }
        | ToServer::ScheduleDelete { .. } => Version::V6,
        ToServer::WorkflowReplay { .. } => Version::V4,
        ToServer::DatabaseSchema { .. } | ToServer::DatabaseTableRows { .. } => Version::V3,
        ToServer::TraceQuery { .. } | ToServer::Queue { .. } | ToServer::WorkflowHistory { .. } => {
            Version::V2
        }
        _ => Version::V1,
    };

    for version in Version::ALL {
        for message in samples::to_server() {
            let encoded = message.encode(version);
            if version < since(&message) {
                assert!(matches!(encoded, Err(InspectorError::NotInVersion { .. })), "{message:?}");
                continue;
            }
            let encoded = Bytes::from(encoded.unwrap());
            assert_eq!(ToServer::decode(version, encoded.clone()).as_ref(), Ok(&message));
            let upgraded = upgrade_request(encoded, version.number().into()).unwrap();
            assert_eq!(upgraded, message.encode(Version::CURRENT).unwrap());
        }
    }
}

#[test]
fn a_message_that_is_cut_off_or_has_more_behind_it_is_refused() {
    for version in Version::ALL {
        for message in samples::to_server() {
            let Ok(encoded) = message.encode(version) else { continue };
            for end in 0..encoded.len() {
                let cut = Bytes::copy_from_slice(&encoded[..end]);
                assert!(ToServer::decode(version, cut).is_err(), "{message:?} cut at {end}");
            }
            let longer = [encoded, vec![0]].concat();
            assert!(ToServer::decode(version, longer.into()).is_err(), "{message:?} and more");
        }
        for message in samples::to_client() {
            let encoded = message.encode(version);
            for end in 0..encoded.len() {
                let cut = Bytes::copy_from_slice(&encoded[..end]);
                assert!(ToClient::decode(version, cut).is_err(), "{message:?} cut at {end}");
            }
        }
    }
}

#[test]
fn events_of_the_first_version_are_dropped_and_said_to_be() {
    for tag in [4, 5] {
        let refused = ToServer::decode(Version::V1, Bytes::from(vec![tag, 1])).unwrap_err();
        assert_eq!(refused.to_string(), "inspector.events_dropped");
    }
    // One of each kind of event, in a response and in an update.
    let events = b"\x05\x00\x01a\x01\xf6\x01c\x01\x01e\x01\xf6\x02\x01e\x01c\x03\x01e\x01c\x04\x01e\x01\xf6\x01c";
    for head in [&[2, 9][..], &[6]] {
        let bytes = Bytes::from([head, events].concat());
        assert_eq!(
            ToClient::decode(Version::V1, bytes),
            Ok(ToClient::Error { message: "inspector.events_dropped".into() })
        );
    }
}

#[test]
fn a_version_that_nobody_speaks_is_named() {
    for number in [0, 7, 65_535] {
        let refused = upgrade_request(Bytes::from_static(&[1, 1]), number).unwrap_err();
        assert_eq!(refused.code().code, "invalid_protocol_version");
        assert!(downgrade_response(Bytes::from_static(&[16, 0]), number).is_err());
    }
    let state = ToClient::StateUpdated { state: Bytes::from_static(&[5]) };
    let downgraded = downgrade_response(state.encode(Version::V6).into(), 1).unwrap();
    assert_eq!(downgraded, [7, 1, 5]);
}
