//! Clients over sockets: what they are told, and in which order.

use greenroom::core::connections::ConnHooks;
use greenroom::error::{Error, ErrorCode};
use greenroom::protocol::{Args, Encoding, ToClient};

use crate::fixture::{Front, QUERY};
use crate::place::{code, get};
use crate::socket::{Socket, connect_uri, echoed, fault, number_args};

pub async fn front() -> Front {
    let front = Front::new().await;
    front.author(ConnHooks { before_subscribe: false, ..ConnHooks::ALL }, |_| {});
    front
}

pub fn refusal() -> Error {
    Error::new(ErrorCode::new("user", "no"), "not today")
}

fn event(name: &str, args: Args) -> ToClient {
    ToClient::Event { name: name.to_owned(), args }
}

#[tokio::test]
async fn a_client_hears_init_then_what_on_connect_sent_then_its_answers() {
    for encoding in Encoding::ALL {
        let front = front().await;
        let mut socket = Socket::connecting(&front, encoding).await;

        let ToClient::Init { actor_id, connection_id } = socket.next().await else {
            panic!("init comes first")
        };
        assert_eq!(socket.protocol.as_deref(), Some("rivet"));
        let actor = front.script().newest();
        assert_eq!(actor_id, actor.actor_id().to_string());
        assert_eq!(connection_id, actor.connections()[0].id().as_str());
        assert_eq!(socket.next().await, event("hello", number_args(1)));
        assert_eq!(socket.call("echo", 5).await, echoed(7, 5));
    }
}

#[tokio::test]
async fn calls_run_at_once_and_are_answered_as_they_end() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    socket.next().await;
    front.script().hold("hold");

    socket.request(1, "hold", number_args(1)).await;
    socket.request(2, "echo", number_args(2)).await;
    assert_eq!(socket.next().await, echoed(2, 2));
    front.script().release("hold");

    assert_eq!(socket.next().await, echoed(1, 1));
}

#[tokio::test]
async fn events_reach_those_who_want_them_in_their_encoding() {
    let front = front().await;
    let mut sockets = Vec::new();
    for encoding in Encoding::ALL {
        let mut socket = Socket::connected(&front, encoding).await;
        socket.next().await;
        socket.subscribe("shout", true).await;
        assert_eq!(socket.call("echo", 1).await, echoed(7, 1));
        sockets.push(socket);
    }

    for n in [5, 8] {
        front.call("shout", &format!("{{\"args\":[{n}]}}")).await;
        for socket in &mut sockets {
            assert_eq!(socket.next().await, event("shout", number_args(n)));
        }
    }
    let mut last = sockets.pop().unwrap();
    last.subscribe("shout", false).await;
    assert_eq!(last.call("echo", 1).await, echoed(7, 1));
    front.call("shout", "{\"args\":[9]}").await;

    assert_eq!(last.call("echo", 2).await, echoed(7, 2));
}

#[tokio::test]
async fn an_error_of_an_action_names_it_and_is_masked_and_the_socket_stays() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Json).await;
    socket.next().await;

    let unknown = socket.call("nothing", 1).await;
    assert_eq!(fault(&unknown), (Some(7), "actor.action_not_found".to_owned()));
    let ToClient::Error { error, .. } = &unknown else { unreachable!() };
    assert_eq!(error.actor.as_ref().unwrap().key.as_deref(), Some("a"));
    let control = socket.call("\u{1}send", 1).await;
    assert_eq!(fault(&control), (Some(7), "actor.action_not_found".to_owned()));

    assert_eq!(socket.call("echo", 5).await, echoed(7, 5));
}

#[tokio::test]
async fn a_client_that_a_hook_refuses_reads_an_error_and_the_end() {
    for hook in ["on_before_connect", "create_conn_state", "on_connect"] {
        let front = front().await;
        front.script().fail(hook, Some(refusal()));

        let mut socket = Socket::connecting(&front, Encoding::Bare).await;

        assert_eq!(fault(&socket.next().await), (None, "user.no".to_owned()), "{hook}");
        let (code, reason) = socket.end().await;
        assert_eq!(code, 1011);
        assert_eq!(reason.split('#').next(), Some("user.no"));
        assert_eq!(front.script().count("on_disconnect"), 0);
        assert_eq!(front.script().newest().connections().len(), 0);
        assert_eq!(front.host().session_count(), 0);
    }
}

#[tokio::test]
async fn hooks_that_refuse_every_second_client_leave_the_others_alone() {
    let front = front().await;
    let mut sockets = Vec::new();

    for n in 0..6 {
        let refuses = n % 2 == 1;
        front.script().fail("create_conn_state", refuses.then(refusal));
        let mut socket = Socket::connecting(&front, Encoding::Cbor).await;
        match refuses {
            true => drop(socket.end().await),
            false => {
                socket.next().await;
                sockets.push(socket);
            }
        }
    }

    assert_eq!(front.script().newest().connections().len(), 3);
    for mut socket in sockets {
        socket.next().await;
        assert_eq!(socket.call("echo", 5).await, echoed(7, 5));
    }
    front.place.until(|| front.script().count("on_disconnect") == 3).await;
    assert_eq!(front.script().newest().connections().len(), 0);
    assert_eq!(front.host().session_count(), 0);
}

#[tokio::test]
async fn what_is_wrong_with_an_upgrade_is_the_reason_of_its_end() {
    let front = front().await;
    front.call("echo", "{}").await;
    let id = front.script().newest().actor_id();
    let missing = "/gateway/counter/connect?rvt-namespace=default&rvt-method=get&rvt-key=nobody";
    let unknown = format!("/gateway/other/connect?{QUERY}");
    let cases = [
        (missing, "rivet", 1011, "actor.not_found"),
        (&unknown, "rivet", 1011, "actor.not_registered"),
        (&connect_uri(), "rivet, rivet_encoding.xml", 1003, "actor.unsupported_websocket_encoding"),
        (&connect_uri(), "rivet, rivet_conn_params.%7B", 1011, "actor.invalid_request"),
        ("/gateway/counter/connect?rvt-bogus=1", "rivet", 1011, "guard.query_invalid_params"),
        ("/health", "rivet", 1011, "guard.no_route"),
        ("/connect", "rivet, rivet_target.actor", 1011, "guard.missing_header"),
        (&format!("/gateway/{id}x/connect"), "rivet", 1011, "actor.not_found"),
    ];

    for (uri, offer, code, reason) in cases {
        let mut socket =
            Socket::open(front.gateway.address().expect("it listens"), uri, offer).await;
        let end = socket.end().await;
        assert_eq!(socket.protocol.as_deref(), Some("rivet"));
        let (fault, ray) = end.1.split_once('#').expect("the id of the request");
        assert_eq!((end.0, fault), (code, reason), "{uri} {offer}");
        assert!(!ray.is_empty());
    }
    assert_eq!(code(front.place.resolve(get("nobody")).await), "actor/not_found");
}

#[tokio::test]
async fn all_forms_of_the_url_lead_to_the_actor() {
    let front = front().await;
    front.call("echo", "{}").await;
    let id = front.script().newest().actor_id();
    let cases = [
        (format!("/gateway/{id}/connect"), "rivet".to_owned()),
        (format!("/gateway/{id}@token/connect"), "rivet".to_owned()),
        ("/connect".to_owned(), format!("rivet, rivet_target.actor, rivet_actor.{id}")),
        (connect_uri(), String::new()),
    ];

    for (uri, offer) in cases {
        let mut socket =
            Socket::open(front.gateway.address().expect("it listens"), &uri, &offer).await;
        assert!(matches!(socket.next().await, ToClient::Init { .. }), "{uri}");
        assert_eq!(socket.protocol.is_some(), !offer.is_empty());
    }
}

#[tokio::test]
async fn the_parameters_and_the_head_of_the_request_reach_the_connection() {
    let front = front().await;
    let offer = "rivet, rivet_encoding.bare, rivet_conn_params.%5B5%5D, rivet_token.t";
    let uri = format!("{}&a=b", connect_uri());
    let headers = [("x-mine", "1")];

    let mut socket =
        Socket::open_with(front.gateway.address().expect("it listens"), &uri, offer, &headers)
            .await;
    socket.next().await;

    let connection = front.script().newest().connections().remove(0);
    assert_eq!(connection.params()[..], [0x81, 5]);
    let head = connection.request().unwrap();
    assert_eq!((&*head.method, &*head.path), ("GET", "/connect?a=b"));
    let header = |name: &str| head.headers.iter().find(|(found, _)| found == name);
    assert_eq!(header("x-mine").unwrap().1, "1");
    assert!(header("x-rivet-ray-id").is_some());
    assert!(!header("sec-websocket-protocol").unwrap().1.contains("rivet_token"));
    assert!(connection.is_hibernatable());
}

#[tokio::test]
async fn a_message_on_a_socket_whose_actor_sleeps_wakes_it() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    socket.next().await;
    socket.subscribe("shout", true).await;
    assert_eq!(socket.call("echo", 1).await, echoed(7, 1));
    let id = front.script().newest().actor_id();

    for n in 2..4 {
        front.place.sleep(id).await.unwrap();
        assert_eq!(front.script().alive(), 0);
        assert_eq!(socket.call("echo", n).await, echoed(7, n));
        front.call("shout", &format!("{{\"args\":[{n}]}}")).await;
        assert_eq!(socket.next().await, event("shout", number_args(n)));
    }

    // One is that of the calls over HTTP, each of which has a connection of its own.
    assert_eq!(front.script().count("on_connect"), 3);
    assert_eq!(front.script().newest().connections().len(), 1);
}

#[tokio::test]
async fn a_type_whose_connections_do_not_hibernate_closes_them_when_it_sleeps() {
    let front = Front::new().await;
    front.author(ConnHooks::NONE, |config| config.hibernates_connections = false);
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    let id = front.script().newest().actor_id();

    front.place.sleep(id).await.unwrap();

    assert_eq!(socket.end().await, (1000, "actor.stopping".to_owned()));
}

#[tokio::test]
async fn an_author_and_a_destroy_close_sockets_with_their_reasons() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    socket.request(1, "leave", Args::none()).await;
    assert_eq!(socket.end().await, (1000, "left".to_owned()));

    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    let id = front.script().newest().actor_id();
    front.place.sleep(id).await.unwrap();
    assert!(front.place.destroy(get("a")).await.unwrap());

    assert_eq!(socket.end().await, (1000, "actor.destroying".to_owned()));
    assert_eq!(front.host().session_count(), 0);
}
