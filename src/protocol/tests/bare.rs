//! BARE byte by byte. The bytes are those that the published clients' codec, 2.3.19,
//! writes for the same message.

use std::fmt::Debug;

use super::samples::{args, error, hex, object, payload, short_error};
use crate::protocol::http::{
    ActionRequest, ActionResponse, QueueSendRequest, QueueSendResponse, ResolveResponse,
    SendPolicy, SendStatus,
};
use crate::protocol::{ActorBody, Encoding, ErrorBody, ToClient, ToServer, Version, Wire};

fn is_written_as<M: Wire + Debug + PartialEq>(message: M, bytes: &str) {
    let bytes = hex(bytes);
    assert_eq!(message.encode(Encoding::Bare).unwrap(), bytes, "{message:?}");
    assert_eq!(M::decode(Encoding::Bare, bytes).unwrap(), message);
}

fn init() -> ToClient {
    ToClient::Init { actor_id: "act1".into(), connection_id: "c1".into() }
}

/// §3.6.
#[test]
fn frames_to_clients_have_the_bytes_of_version_4() {
    is_written_as(init(), "0400 00 0461637431 026331");
    is_written_as(
        ToClient::Error { action_id: Some(7), error: error() },
        "0400 01 0475736572 026e6f 016d 01 04a1616b01 01 07 01 0461637431 ac02 01 03612f62",
    );
    is_written_as(
        ToClient::Error { action_id: None, error: short_error() },
        "0400 01 0475736572 026e6f 016d 00 00 00",
    );
    is_written_as(ToClient::ActionResponse { id: 300, output: payload(&[7]) }, "0400 02 ac02 0107");
    is_written_as(
        ToClient::ActionResponse { id: u64::MAX, output: payload(&[0xf6]) },
        "0400 02 ffffffffffffffffff01 01f6",
    );
    is_written_as(
        ToClient::Event { name: "ev".into(), args: args(&[0x81, 5]) },
        "0400 03 026576 028105",
    );
}

/// §3.6.
#[test]
fn an_actor_without_a_key_is_written_without_it() {
    let actor = ActorBody { actor_id: "act1".into(), generation: 300, key: None };
    let error = ErrorBody { actor: Some(actor), ..short_error() };

    is_written_as(
        ToClient::Error { action_id: None, error },
        "0400 01 0475736572 026e6f 016d 00 00 01 0461637431 ac02 00",
    );
}

/// §3.6.
#[test]
fn frames_to_servers_have_the_bytes_of_version_4() {
    is_written_as(
        ToServer::ActionRequest { id: 0, name: "increment".into(), args: args(&[0x81, 5]) },
        "0400 00 00 09696e6372656d656e74 028105",
    );
    is_written_as(
        ToServer::SubscriptionRequest { event_name: "ev".into(), subscribe: true },
        "0400 01 026576 01",
    );
    is_written_as(
        ToServer::SubscriptionRequest { event_name: "ev".into(), subscribe: false },
        "0400 01 026576 00",
    );
}

/// §3.6.
#[test]
fn bodies_have_the_bytes_of_version_4() {
    is_written_as(ActionRequest { args: args(&[0x81, 1]) }, "0400 028101");
    is_written_as(ActionResponse { output: payload(&[7]) }, "0400 0107");
    is_written_as(
        QueueSendRequest {
            body: object(),
            name: Some("q".into()),
            wait: Some(true),
            timeout_ms: Some(1_000),
            policy: SendPolicy::default(),
        },
        "0400 04a1616b01 010171 0101 01e803000000000000",
    );
    is_written_as(
        QueueSendRequest {
            body: payload(&[1]),
            name: None,
            wait: None,
            timeout_ms: None,
            policy: SendPolicy::default(),
        },
        "0400 0101 00 00 00",
    );
    is_written_as(
        // As the client writes a map: with a head of sixteen bits.
        QueueSendRequest {
            body: payload(b"\xb9\x00\x01\x61k\x01"),
            name: Some("q".into()),
            wait: Some(false),
            timeout_ms: None,
            policy: SendPolicy::default(),
        },
        "0400 06 b90001616b01 010171 0100 00",
    );
    is_written_as(
        QueueSendResponse { status: SendStatus::Completed, response: Some(payload(&[7])) },
        "0400 09636f6d706c65746564 010107",
    );
    is_written_as(
        QueueSendResponse { status: SendStatus::TimedOut, response: None },
        "0400 0874696d65644f7574 00",
    );
    is_written_as(
        ErrorBody { metadata: None, ..error() },
        "0400 0475736572 026e6f 016d 00 01 0461637431 ac02 01 03612f62",
    );
    is_written_as(ResolveResponse { actor_id: "act1".into() }, "0400 0461637431");
}

/// §3.6, the table of versions.
#[test]
fn older_versions_lack_what_they_did_not_have() {
    let written = |message: &ToClient, version| message.encode_bare(version).unwrap();
    let failed = ToClient::Error { action_id: Some(7), error: error() };

    assert_eq!(written(&init(), Version::V1), hex("0100 00 0461637431 026331 00"));
    assert_eq!(written(&init(), Version::V2), hex("0200 00 0461637431 026331"));
    for version in [Version::V1, Version::V2, Version::V3] {
        let number = version.number();
        let frame = format!("0{number}00 01 0475736572 026e6f 016d 01 04a1616b01 01 07");
        assert_eq!(written(&failed, version), hex(&frame));
        let body = format!("0{number}00 0475736572 026e6f 016d 01 04a1616b01");
        assert_eq!(error().encode_bare(version).unwrap(), hex(&body));
    }
}

/// §3.6: versions 1 to 4 are accepted.
#[test]
fn every_version_is_read() {
    let read = |bytes| ToClient::decode(Encoding::Bare, bytes).unwrap();
    let failed = ToClient::Error { action_id: Some(7), error: error() };
    let without_actor = ErrorBody { actor: None, ..error() };

    for version in Version::ALL {
        assert_eq!(read(init().encode_bare(version).unwrap()), init());
        let expected = if version < Version::V4 { &without_actor } else { &error() };
        assert_eq!(
            read(failed.encode_bare(version).unwrap()),
            ToClient::Error { action_id: Some(7), error: expected.clone() }
        );
    }
    // A token that an old server gave is skipped.
    assert_eq!(read(hex("0100 00 0461637431 026331 03 746f6b")), init());
}

/// §3.6, the table of versions.
#[test]
fn queues_came_with_version_3() {
    let request = QueueSendRequest {
        body: payload(&[1]),
        name: None,
        wait: None,
        timeout_ms: None,
        policy: SendPolicy::default(),
    };

    assert_eq!(request.encode_bare(Version::V3).unwrap(), hex("0300 0101 00 00 00"));
    assert!(request.encode_bare(Version::V2).is_err());
    assert!(QueueSendRequest::decode(Encoding::Bare, hex("0200 0101 00 00 00")).is_err());
    assert!(QueueSendResponse::decode(Encoding::Bare, hex("0200 0874696d65644f7574 00")).is_err());
}

/// §3.6. No bytes are `undefined`, too.
#[test]
fn undefined_is_absent_where_a_value_may_be() {
    for undefined in ["0100", "0101f7"] {
        let body = format!("0400 0475736572 026e6f 016d {undefined} 00");
        assert_eq!(ErrorBody::decode(Encoding::Bare, hex(&body)), Ok(short_error()));
        let body = format!("0400 0874696d65644f7574 {undefined}");
        assert_eq!(
            QueueSendResponse::decode(Encoding::Bare, hex(&body)),
            Ok(QueueSendResponse { status: SendStatus::TimedOut, response: None })
        );
    }
}
