//! BARE against another implementation of it.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_bare::Uint;

use super::samples::{args, payload};
use crate::protocol::http::{QueueSendRequest, SendPolicy};
use crate::protocol::{ActorBody, Encoding, ErrorBody, ToClient, ToServer, Wire};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Server {
    ActionRequest { id: Uint, name: String, args: Vec<u8> },
    SubscriptionRequest { event_name: String, subscribe: bool },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Client {
    Init { actor_id: String, connection_id: String },
    Error(Failure),
    ActionResponse { id: Uint, output: Vec<u8> },
    Event { name: String, args: Vec<u8> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Failure {
    group: String,
    code: String,
    message: String,
    metadata: Option<Vec<u8>>,
    action_id: Option<Uint>,
    actor: Option<Actor>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Actor {
    actor_id: String,
    generation: Uint,
    key: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct QueueSend {
    body: Vec<u8>,
    name: Option<String>,
    wait: Option<bool>,
    timeout: Option<u64>,
}

/// What the other implementation writes, and whether it reads what we write.
fn agree<T>(theirs: &T, ours: &[u8])
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq + std::fmt::Debug,
{
    let expected = [vec![4, 0], serde_bare::to_vec(theirs).unwrap()].concat();
    assert_eq!(ours, expected);
    assert_eq!(&serde_bare::from_slice::<T>(&ours[2..]).unwrap(), theirs);
}

proptest! {
    #[test]
    fn another_implementation_writes_and_reads_the_same_bytes(
        id in any::<u64>(),
        name in ".{0,200}",
        key in proptest::option::of(".{0,9}"),
        item in "[a-z]{0,23}",
        wait in proptest::option::of(any::<bool>()),
        timeout in proptest::option::of(any::<u64>()),
    ) {
        let list = [&[0x81, 0x60 + item.len() as u8], item.as_bytes()].concat();

        let request = ToServer::ActionRequest { id, name: name.clone(), args: args(&list) };
        agree(
            &Server::ActionRequest { id: Uint(id), name: name.clone(), args: list.clone() },
            &request.encode(Encoding::Bare).unwrap(),
        );
        let request = ToServer::SubscriptionRequest { event_name: name.clone(), subscribe: true };
        agree(
            &Server::SubscriptionRequest { event_name: name.clone(), subscribe: true },
            &request.encode(Encoding::Bare).unwrap(),
        );
        let init = ToClient::Init { actor_id: name.clone(), connection_id: item.clone() };
        agree(
            &Client::Init { actor_id: name.clone(), connection_id: item.clone() },
            &init.encode(Encoding::Bare).unwrap(),
        );
        let response = ToClient::ActionResponse { id, output: payload(&list) };
        agree(
            &Client::ActionResponse { id: Uint(id), output: list.clone() },
            &response.encode(Encoding::Bare).unwrap(),
        );
        let event = ToClient::Event { name: name.clone(), args: args(&list) };
        agree(
            &Client::Event { name: name.clone(), args: list.clone() },
            &event.encode(Encoding::Bare).unwrap(),
        );
        let error = ToClient::Error {
            action_id: timeout,
            error: ErrorBody {
                group: name.clone(),
                code: item.clone(),
                message: name.clone(),
                metadata: wait.map(|_| payload(&list)),
                actor: Some(ActorBody {
                    actor_id: item.clone(),
                    generation: id,
                    key: key.clone(),
                }),
            },
        };
        agree(
            &Client::Error(Failure {
                group: name.clone(),
                code: item.clone(),
                message: name,
                metadata: wait.map(|_| list.clone()),
                action_id: timeout.map(Uint),
                actor: Some(Actor { actor_id: item, generation: Uint(id), key: key.clone() }),
            }),
            &error.encode(Encoding::Bare).unwrap(),
        );
        let send =
            QueueSendRequest { body: payload(&list), name: key.clone(), wait, timeout_ms: timeout, policy: SendPolicy::default() };
        agree(
            &QueueSend { body: list, name: key, wait, timeout },
            &send.encode(Encoding::Bare).unwrap(),
        );
    }
}
