//! What holds of every message, and of every sequence of bytes.

use std::fmt::Debug;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::protocol::http::{
    ActionRequest, ActionResponse, QueueSendRequest, QueueSendResponse, ResolveResponse,
    SendPolicy, SendStatus,
};
use crate::protocol::{
    ActorBody, Args, Encoding, ErrorBody, Payload, ToClient, ToServer, Wire, fuzz,
};

/// Values that JSON has, as JSON text.
fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((".{0,6}", inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Payloads that go through all three encodings unchanged.
fn payload() -> impl Strategy<Value = Payload> {
    json().prop_map(|value| Payload::try_from(&value).unwrap())
}

/// Any well-formed item, in any of its forms.
fn cbor() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        any::<u8>().prop_map(|n| vec![0x18, n]),
        any::<u64>().prop_map(|n| [&[0x1b][..], &n.to_be_bytes()].concat()),
        any::<u32>().prop_map(|n| [&[0x3a][..], &n.to_be_bytes()].concat()),
        any::<u64>().prop_map(|n| [&[0x3b][..], &n.to_be_bytes()].concat()),
        any::<u16>().prop_map(|n| [&[0xf9][..], &n.to_be_bytes()].concat()),
        any::<u64>().prop_map(|n| [&[0xfb][..], &n.to_be_bytes()].concat()),
        (0xf4_u8..=0xf7).prop_map(|n| vec![n]),
        (32_u8..).prop_map(|n| vec![0xf8, n]),
        vec(any::<u8>(), 0..20).prop_map(|b| [vec![0x58, b.len() as u8], b].concat()),
        ".{0,9}".prop_map(|t| [&[0x7f, 0x78, t.len() as u8], t.as_bytes(), &[0xff]].concat()),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let pairs = vec((".{0,6}", inner.clone()), 0..6).prop_map(|pairs| {
            let parts = pairs
                .into_iter()
                .flat_map(|(key, value)| [vec![0x78, key.len() as u8], key.into_bytes(), value]);
            [vec![0xbf], parts.flatten().collect(), vec![0xff]].concat()
        });
        prop_oneof![
            vec(inner.clone(), 0..6)
                .prop_map(|items| [vec![0x9f], items.concat(), vec![0xff]].concat()),
            vec(inner.clone(), 0..6).prop_map(|items| [
                vec![0x98, items.len() as u8],
                items.concat()
            ]
            .concat()),
            pairs,
            (prop_oneof![0_u8..4, 24_u8..], inner)
                .prop_map(|(tag, item)| { [vec![0xd8, tag], item].concat() }),
        ]
    })
}

fn args() -> impl Strategy<Value = Args> {
    payload().prop_map(|value| Args::try_from(value).unwrap())
}

fn error() -> impl Strategy<Value = ErrorBody> {
    let actor = (".{0,9}", any::<u64>(), option::of(".{0,9}"))
        .prop_map(|(actor_id, generation, key)| ActorBody { actor_id, generation, key });
    (".{0,9}", ".{0,9}", ".{0,40}", option::of(payload()), option::of(actor)).prop_map(
        |(group, code, message, metadata, actor)| ErrorBody {
            group,
            code,
            message,
            metadata,
            actor,
        },
    )
}

fn to_client() -> impl Strategy<Value = ToClient> {
    prop_oneof![
        (".{0,40}", ".{0,40}")
            .prop_map(|(actor_id, connection_id)| ToClient::Init { actor_id, connection_id }),
        (option::of(any::<u64>()), error())
            .prop_map(|(action_id, error)| ToClient::Error { action_id, error }),
        (any::<u64>(), payload()).prop_map(|(id, output)| ToClient::ActionResponse { id, output }),
        (".{0,9}", args()).prop_map(|(name, args)| ToClient::Event { name, args }),
    ]
}

fn to_server() -> impl Strategy<Value = ToServer> {
    prop_oneof![
        (any::<u64>(), ".{0,9}", args()).prop_map(|(id, name, args)| ToServer::ActionRequest {
            id,
            name,
            args
        }),
        (".{0,9}", any::<bool>()).prop_map(|(event_name, subscribe)| {
            ToServer::SubscriptionRequest { event_name, subscribe }
        }),
    ]
}

fn queue_send() -> impl Strategy<Value = QueueSendRequest> {
    let rest = (option::of(".{0,9}"), option::of(any::<bool>()), option::of(any::<u64>()));
    (payload(), rest).prop_map(|(body, (name, wait, timeout_ms))| QueueSendRequest {
        body,
        name,
        wait,
        timeout_ms,
        policy: SendPolicy::default(),
    })
}

fn comes_back<M: Wire + Debug + PartialEq>(message: &M) {
    for encoding in Encoding::ALL {
        let bytes = message.encode(encoding).unwrap();
        assert_eq!(&M::decode(encoding, bytes).unwrap(), message, "{encoding:?}");
    }
}

proptest! {
    #[test]
    fn a_frame_to_a_client_comes_back_in_every_encoding(message in to_client()) {
        comes_back(&message);
    }

    #[test]
    fn a_frame_to_a_server_comes_back_in_every_encoding(message in to_server()) {
        comes_back(&message);
    }

    #[test]
    fn a_body_comes_back_in_every_encoding(
        args in args(),
        output in payload(),
        send in queue_send(),
        response in option::of(payload()),
        completed in any::<bool>(),
        error in error(),
        actor_id in ".{0,9}",
    ) {
        let status = if completed { SendStatus::Completed } else { SendStatus::TimedOut };
        comes_back(&ActionRequest { args });
        comes_back(&ActionResponse { output });
        comes_back(&send);
        comes_back(&QueueSendResponse { status, response });
        comes_back(&error);
        comes_back(&ResolveResponse { actor_id });
    }

    #[test]
    fn json_comes_back_as_it_went(value in json()) {
        let text = value.to_string();

        let written = Payload::from_json(text.as_bytes()).unwrap().to_json().unwrap();

        // As floats, since a whole one is written without its fraction.
        prop_assert_eq!(floats(serde_json::from_str(&written).unwrap()), floats(value));
    }

    #[test]
    fn an_item_of_any_form_is_a_payload_and_a_broken_one_does_no_harm(
        item in cbor(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        prop_assert!(Payload::new(Bytes::from(item.clone())).is_ok());
        fuzz::payloads(&item);
        fuzz::payloads(&item[..cut.index(item.len())]);
        let mut broken = item;
        let at = at.index(broken.len());
        broken[at] = byte;
        fuzz::payloads(&broken);
    }

    #[test]
    fn an_item_that_ends_early_or_goes_on_is_refused(
        item in cbor(),
        cut in any::<prop::sample::Index>(),
        more in any::<u8>(),
    ) {
        let short = Bytes::copy_from_slice(&item[..cut.index(item.len())]);
        prop_assume!(!short.is_empty());
        prop_assert!(Payload::new(short).is_err());
        prop_assert!(Payload::new([item, vec![more]].concat().into()).is_err());
    }

    #[test]
    fn what_an_author_made_is_passed_on_byte_by_byte(item in cbor()) {
        let output = Payload::new(item.into()).unwrap();
        let response = ToClient::ActionResponse { id: 1, output };

        for encoding in [Encoding::Cbor, Encoding::Bare] {
            let bytes = response.encode(encoding).unwrap();
            prop_assert_eq!(&ToClient::decode(encoding, bytes).unwrap(), &response);
        }
    }

    #[test]
    fn a_message_that_a_byte_was_changed_in_does_no_harm(
        to_client in to_client(),
        to_server in to_server(),
        queue_send in queue_send(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        for encoding in Encoding::ALL {
            let messages = [
                to_client.encode(encoding).unwrap(),
                to_server.encode(encoding).unwrap(),
                queue_send.encode(encoding).unwrap(),
            ];
            for message in messages {
                let mut bytes = message.to_vec();
                let at = at.index(bytes.len());
                bytes[at] = byte;
                fuzz::messages(&bytes);
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(
        bytes in vec(any::<u8>(), 0..64),
        version in 0_u8..6,
        // Most of what BARE is made of: tags, flags and lengths.
        small in vec(0_u8..4, 0..24),
    ) {
        fuzz::messages(&bytes);
        fuzz::messages(&[&[version, 0], &bytes[..]].concat());
        fuzz::messages(&[&[version, 0], &small[..]].concat());
        fuzz::payloads(&bytes);
    }
}

fn floats(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) => Value::from(number.as_f64().map(|number| number + 0.0)),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(pairs) => {
            pairs.into_iter().map(|(key, value)| (key, floats(value))).collect()
        }
        other => other,
    }
}
