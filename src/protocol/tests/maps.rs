//! JSON and CBOR: the same fields.

use std::fmt::Debug;

use bytes::Bytes;

use super::samples::{args, error, hex, object, payload, short_error};
use crate::protocol::http::{
    ActionRequest, ActionResponse, ActorMetadata, Deployment, QueueSendRequest, QueueSendResponse,
    ResolveResponse, SendPolicy, SendStatus,
};
use crate::protocol::{Args, Encoding, ErrorBody, Payload, ToClient, ToServer, Wire};

fn is_written_as<M: Wire + Debug + PartialEq>(message: M, text: &str) {
    let written = message.encode(Encoding::Json).unwrap();
    assert_eq!(std::str::from_utf8(&written).unwrap(), text);
    assert_eq!(M::decode(Encoding::Json, written).unwrap(), message);
    let cbor = message.encode(Encoding::Cbor).unwrap();
    assert_eq!(M::decode(Encoding::Cbor, cbor).unwrap(), message);
}

fn read<M: Wire>(text: &str) -> M {
    M::decode(Encoding::Json, Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

/// §3.3 and §3.4.
#[test]
fn frames_are_written_in_json_as_the_clients_read_them() {
    is_written_as(
        ToClient::Init { actor_id: "act1".into(), connection_id: "c1".into() },
        r#"{"body":{"tag":"Init","val":{"actorId":"act1","connectionId":"c1"}}}"#,
    );
    is_written_as(
        ToClient::Error { action_id: Some(7), error: error() },
        concat!(
            r#"{"body":{"tag":"Error","val":{"group":"user","code":"no","message":"m","#,
            r#""metadata":{"k":1},"actor":{"actorId":"act1","generation":300,"key":"a/b"},"#,
            r#""actionId":["$BigInt","7"]}}}"#
        ),
    );
    is_written_as(
        ToClient::Error { action_id: None, error: short_error() },
        concat!(
            r#"{"body":{"tag":"Error","val":{"group":"user","code":"no","message":"m","#,
            r#""actionId":null}}}"#
        ),
    );
    is_written_as(
        ToClient::ActionResponse { id: u64::MAX, output: payload(&[0xf6]) },
        r#"{"body":{"tag":"ActionResponse","val":{"id":["$BigInt","18446744073709551615"],"output":null}}}"#,
    );
    is_written_as(
        ToClient::Event { name: "ev".into(), args: args(&[0x81, 5]) },
        r#"{"body":{"tag":"Event","val":{"name":"ev","args":[5]}}}"#,
    );
    is_written_as(
        ToServer::ActionRequest { id: 0, name: "increment".into(), args: args(&[0x81, 5]) },
        r#"{"body":{"tag":"ActionRequest","val":{"id":["$BigInt","0"],"name":"increment","args":[5]}}}"#,
    );
    is_written_as(
        ToServer::SubscriptionRequest { event_name: "ev".into(), subscribe: true },
        r#"{"body":{"tag":"SubscriptionRequest","val":{"eventName":"ev","subscribe":true}}}"#,
    );
}

/// §4.3, §4.4 and §7.1.
#[test]
fn bodies_are_written_in_json_as_the_clients_read_them() {
    is_written_as(ActionRequest { args: args(&[0x81, 1]) }, r#"{"args":[1]}"#);
    is_written_as(ActionResponse { output: payload(&[7]) }, r#"{"output":7}"#);
    is_written_as(
        QueueSendRequest {
            body: object(),
            name: Some("q".into()),
            wait: Some(true),
            timeout_ms: Some(1_000),
            policy: SendPolicy::default(),
        },
        r#"{"body":{"k":1},"name":"q","wait":true,"timeout":1000}"#,
    );
    is_written_as(
        QueueSendRequest {
            body: object(),
            name: None,
            wait: None,
            timeout_ms: None,
            policy: SendPolicy { dedupe_key: Some("d".into()), delay_ms: Some(9) },
        },
        r#"{"body":{"k":1},"dedupeKey":"d","delay":9}"#,
    );
    is_written_as(
        QueueSendResponse { status: SendStatus::Completed, response: Some(Payload::null()) },
        r#"{"status":"completed","response":null}"#,
    );
    is_written_as(
        QueueSendResponse { status: SendStatus::TimedOut, response: None },
        r#"{"status":"timedOut"}"#,
    );
    is_written_as(
        error(),
        concat!(
            r#"{"group":"user","code":"no","message":"m","metadata":{"k":1},"#,
            r#""actor":{"actorId":"act1","generation":300,"key":"a/b"}}"#
        ),
    );
    is_written_as(short_error(), r#"{"group":"user","code":"no","message":"m"}"#);
    is_written_as(ResolveResponse { actor_id: "act1".into() }, r#"{"actorId":"act1"}"#);
}

/// §4.1.
#[test]
fn the_metadata_of_an_actor_are_json() {
    let metadata = |deployment| {
        let version = "1.2".into();
        serde_json::to_string(&ActorMetadata { runtime: "rivetkit", version, deployment }).unwrap()
    };

    assert_eq!(
        metadata(Deployment::Local),
        r#"{"runtime":"rivetkit","version":"1.2","type":"local"}"#
    );
    assert_eq!(
        metadata(Deployment::Deployed),
        r#"{"runtime":"rivetkit","version":"1.2","type":"deployed"}"#
    );
}

/// §3.5.
#[test]
fn an_id_has_eight_bytes_in_cbor_and_what_an_author_returned_is_spliced_in() {
    let response = ToClient::ActionResponse { id: 5, output: object() };

    assert_eq!(
        response.encode(Encoding::Cbor).unwrap(),
        [
            &b"\xa1\x64body\xa2\x63tag\x6eActionResponse\x63val\xa2\x62id\x1b"[..],
            &5u64.to_be_bytes(),
            b"\x66output\xa1\x61k\x01",
        ]
        .concat()
    );
}

/// §3.5.
#[test]
fn the_generation_of_an_actor_is_a_number_in_cbor_and_never_a_bigint() {
    let actor = |generation| {
        let mut error = error();
        error.metadata = None;
        error.actor.as_mut().unwrap().generation = generation;
        error.encode(Encoding::Cbor).unwrap()
    };
    let holds = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|found| found == part);

    assert!(holds(&actor(300), b"\x6ageneration\x19\x01\x2c"));
    assert!(holds(&actor(1 << 32), b"\x6ageneration\xfb\x41\xf0\0\0\0\0\0\0"));
}

/// §3.5: the bytes of the published client's encoder, whose maps have heads of sixteen bits.
#[test]
fn a_frame_of_the_client_s_encoder_is_read() {
    let bytes = hex(concat!(
        "b90001 64626f6479 b90002 63746167 6d416374696f6e52657175657374 6376616c b90003 ",
        "626964 1b0000000000000000 646e616d65 69696e6372656d656e74 6461726773 8105"
    ));

    assert_eq!(
        ToServer::decode(Encoding::Cbor, bytes).unwrap(),
        ToServer::ActionRequest { id: 0, name: "increment".into(), args: args(&[0x81, 5]) }
    );
}

/// §3.5: any legal form.
#[test]
fn lengths_may_be_indefinite_and_texts_in_pieces() {
    let bytes = [
        &b"\xbf\x64body\xbf\x7f\x61t\x62ag\xff\x73SubscriptionRequest\x63val"[..],
        b"\xbf\x69eventName\x7f\x61e\x61v\xff\x69subscribe\xf5\xff\xff\xff",
    ]
    .concat();

    assert_eq!(
        ToServer::decode(Encoding::Cbor, bytes.into()).unwrap(),
        ToServer::SubscriptionRequest { event_name: "ev".into(), subscribe: true }
    );
}

#[test]
fn pieces_of_a_text_are_texts_of_a_known_length() {
    let read = |name: &[u8]| {
        let bytes = [
            &b"\xa1\x64body\xa2\x63tag\x73SubscriptionRequest\x63val\xa2\x69subscribe\xf5"[..],
            b"\x69eventName",
            name,
        ];
        ToServer::decode(Encoding::Cbor, bytes.concat().into()).is_ok()
    };

    assert!(read(b"\x7f\x62\xc3\xa4\x60\x61b\xff"));
    assert!(read(b"\x7f\xff"));
    for refused in [
        &b"\x7f\x61\xc3\x61\xa4\xff"[..],
        b"\x7f\x41a\xff",
        b"\x7f\x7f\x61a\xff\xff",
        b"\x7f\x61a",
        b"\x7f\x78",
    ] {
        assert!(!read(refused), "{refused:02x?}");
    }
}

#[test]
fn the_order_of_fields_is_free_unknown_ones_are_skipped_and_the_last_of_a_name_counts() {
    let message: ToServer = read(concat!(
        r#"{"more":[{}],"body":{"val":{"subscribe":false,"x":{"subscribe":1},"#,
        r#""eventName":"a","eventName":"ev","subscribe":true},"y":0,"tag":"SubscriptionRequest"}}"#
    ));

    assert_eq!(message, ToServer::SubscriptionRequest { event_name: "ev".into(), subscribe: true });
}

/// §3.4.
#[test]
fn an_id_in_json_may_be_a_plain_number() {
    let id = |id: &str| {
        let text = format!(
            r#"{{"body":{{"tag":"ActionRequest","val":{{"id":{id},"name":"a","args":[]}}}}}}"#
        );
        match ToServer::decode(Encoding::Json, text.into()) {
            Ok(ToServer::ActionRequest { id, .. }) => Some(id),
            _ => None,
        }
    };

    assert_eq!(id("7"), Some(7));
    assert_eq!(id("4294967296"), Some(1 << 32));
    assert_eq!(id(r#"["$BigInt","18446744073709551615"]"#), Some(u64::MAX));
    for refused in [
        "-1",
        "1.5",
        "1e300",
        "null",
        r#""7""#,
        "[]",
        r#"["$BigInt","-1"]"#,
        r#"["$BigInt","+1"]"#,
        r#"["$BigInt",""]"#,
        r#"["$BigInt","1",2]"#,
        r#"["$BigInt","18446744073709551616"]"#,
        r#"["$Undefined",0]"#,
    ] {
        assert_eq!(id(refused), None, "{refused}");
    }
}

/// §4.3.
#[test]
fn arguments_that_are_missing_are_none_and_one_that_is_no_array_is_the_only_one() {
    let args_of = |text| read::<ActionRequest>(text).args;

    assert_eq!(args_of("{}"), Args::none());
    assert_eq!(args_of(r#"{"args":null}"#), Args::none());
    assert_eq!(args_of(r#"{"args":5}"#), args(&[0x81, 5]));
    assert_eq!(args_of(r#"{"args":[]}"#), args(&[0x80]));
}

/// §3.4.
#[test]
fn pairs_with_a_meaning_for_javascript_only_are_passed_on() {
    let request: ActionRequest = read(r#"{"args":[["$BigInt","5"],["$Undefined",0]]}"#);

    assert_eq!(request.args, args(b"\x82\x82\x67$BigInt\x615\x82\x6a$Undefined\x00"));
}

/// §4.4.
#[test]
fn undefined_is_absent_in_the_request_of_a_queue_and_null_is_a_message() {
    let bytes =
        [&b"\xb9\x00\x04\x64body\xf6\x64wait\xf4"[..], b"\x67timeout\xf7\x64name\xf7"].concat();

    assert_eq!(
        QueueSendRequest::decode(Encoding::Cbor, bytes.into()).unwrap(),
        QueueSendRequest {
            body: Payload::null(),
            name: None,
            wait: Some(false),
            timeout_ms: None,
            policy: SendPolicy::default()
        }
    );
}

#[test]
fn part_of_a_millisecond_counts_as_a_whole_one() {
    let timeout = |text| read::<QueueSendRequest>(text).timeout_ms;

    assert_eq!(timeout(r#"{"body":1,"timeout":0.5}"#), Some(1));
    assert_eq!(timeout(r#"{"body":1,"timeout":4294967296}"#), Some(1 << 32));
}

#[test]
fn metadata_may_be_null_but_not_undefined() {
    let metadata = |cbor: &[u8]| {
        let bytes = [&b"\xa4\x65group\x61a\x64code\x61b\x67message\x61c\x68metadata"[..], cbor];
        ErrorBody::decode(Encoding::Cbor, bytes.concat().into()).unwrap().metadata
    };

    assert_eq!(metadata(&[0xf6]), Some(Payload::null()));
    assert_eq!(metadata(&[0xf7]), None);
}
