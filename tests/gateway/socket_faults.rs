//! Sockets whose clients do what they should not, or vanish.

use greenroom::core::config::ClientLimits;
use greenroom::core::connections::ConnHooks;
use greenroom::gateway::{Bounds, GatewayOptions, Token};
use greenroom::protocol::{Encoding, ToClient};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;

use crate::fixture::{Front, SECOND};
use crate::place::within;
use crate::socket::{Socket, connect_uri, echoed, fault, number_args};
use crate::sockets::front;

async fn gone(front: &Front, times: usize) {
    front.place.until(|| front.script().count("on_disconnect") == times).await;
    assert_eq!(front.script().newest().connections().len(), 0);
    assert_eq!(front.host().session_count(), 0);
}

fn address(front: &Front) -> std::net::SocketAddr {
    front.gateway.address().expect("it listens")
}

fn reason(end: (u16, String)) -> (u16, String) {
    (end.0, end.1.split('#').next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_message_that_is_too_long_closes_the_socket() {
    for encoding in Encoding::ALL {
        let front = front().await;
        let mut socket = Socket::connected(&front, encoding).await;

        socket.send(Message::Binary(vec![0; 65_537].into())).await;

        let expected = (1011, "message.incoming_too_long".to_owned());
        assert_eq!(reason(socket.end().await), expected);
        gone(&front, 1).await;
    }
}

#[tokio::test]
async fn a_message_of_the_limit_is_read() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Json).await;
    socket.next().await;
    let frame = |filling: usize| {
        let id = r#"["$BigInt","7"]"#;
        let text = "a".repeat(filling);
        format!(
            r#"{{"body":{{"tag":"ActionRequest","val":{{"id":{id},"name":"echo","args":["{text}"]}}}}}}"#
        )
    };
    let rest = 65_536 - frame(0).len();

    socket.send(Message::text(frame(rest))).await;

    assert!(matches!(socket.next().await, ToClient::ActionResponse { id: 7, .. }));
}

#[tokio::test]
async fn what_is_no_message_closes_the_socket() {
    for encoding in Encoding::ALL {
        let front = front().await;
        let mut socket = Socket::connected(&front, encoding).await;

        socket.send(Message::Binary(b"\xff\x00nonsense".to_vec().into())).await;

        let expected = (1011, "actor.invalid_request".to_owned());
        assert_eq!(reason(socket.end().await), expected);
        gone(&front, 1).await;
    }
}

#[tokio::test]
async fn frames_that_break_the_protocol_of_sockets_close_it() {
    let cases: [(&[u8], (u16, &str)); 3] = [
        // Not masked.
        (b"\x81\x01a", (1002, "ws.protocol_error")),
        // A kind of frame that there is not.
        (b"\x83\x81\0\0\0\0a", (1002, "ws.protocol_error")),
        // A text that is none.
        (b"\x81\x81\0\0\0\0\xff", (1007, "message.invalid_utf8")),
    ];
    for (bytes, expected) in cases {
        let front = front().await;
        let mut socket = Socket::connected(&front, Encoding::Bare).await;

        within(socket.stream.get_mut().write_all(bytes)).await.unwrap();

        assert_eq!(reason(socket.end().await), (expected.0, expected.1.to_owned()));
        gone(&front, 1).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_call_alone_and_an_event_ends_the_socket() {
    let front = Front::new().await;
    front.author(ConnHooks { disconnect: true, ..ConnHooks::NONE }, |config| {
        config.max_outgoing_message_size = 200;
    });
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    let long =
        greenroom::protocol::Payload::from_json(format!("[\"{}\"]", "a".repeat(300)).as_bytes());
    let long = greenroom::protocol::Args::try_from(long.unwrap()).unwrap();

    socket.request(1, "echo", long.clone()).await;
    let error = socket.next().await;
    assert_eq!(fault(&error), (Some(1), "message.outgoing_too_long".to_owned()));
    assert_eq!(socket.call("echo", 5).await, echoed(7, 5));
    socket.subscribe("shout", true).await;
    socket.request(2, "shout", long).await;

    let expected = (1011, "message.outgoing_too_long".to_owned());
    assert_eq!(reason(socket.end().await), expected);
    gone(&front, 1).await;
}

#[tokio::test]
async fn a_subscription_that_its_hook_refuses_closes_the_socket() {
    let front = Front::new().await;
    front.author(ConnHooks::ALL, |_| {});
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    front.script().fail("on_before_subscribe", Some(crate::sockets::refusal()));

    socket.subscribe("shout", true).await;

    assert_eq!(reason(socket.end().await), (1011, "user.no".to_owned()));
    gone(&front, 1).await;
}

#[tokio::test]
async fn clients_that_vanish_are_gone_for_the_actor() {
    let front = front().await;
    let mut says = Socket::connected(&front, Encoding::Bare).await;
    let silent = Socket::connected(&front, Encoding::Bare).await;

    within(says.stream.close(None)).await.unwrap();
    drop(silent);

    gone(&front, 2).await;
}

#[tokio::test]
async fn a_client_that_closes_is_answered() {
    for uri in [connect_uri(), connect_uri().replace("/connect", "/websocket/")] {
        let front = front().await;
        let mut socket = Socket::open(address(&front), &uri, "rivet").await;
        front.place.until(|| front.script().count("on_connect") == 1).await;
        // The acceptance has left when what follows has.
        front.place.settle().await;
        let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
            code: 1_000.into(),
            reason: "bye".into(),
        };

        socket.send(Message::Close(Some(frame))).await;

        assert_eq!(socket.end().await.0, 1_000, "{uri}");
        gone(&front, 1).await;
    }
}

#[tokio::test]
async fn a_client_that_goes_while_its_call_runs_leaves_no_connection() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    front.script().hold("hold");
    socket.request(1, "hold", number_args(1)).await;
    front.place.until(|| front.script().waiting("hold") == 1).await;

    drop(socket);
    gone(&front, 1).await;

    front.script().release("hold");
    front.place.settle().await;
}

#[tokio::test]
async fn a_client_that_gives_no_sign_of_life_is_gone_and_one_that_does_stays() {
    let front = front().await;
    let mut alive = Socket::connected(&front, Encoding::Bare).await;
    alive.next().await;
    let mut half_open = Socket::connected(&front, Encoding::Bare).await;
    half_open.next().await;

    for _ in 0..2 {
        front.pass(30 * SECOND).await;
        // It answers pings while it reads.
        assert_eq!(alive.call("echo", 1).await, echoed(7, 1));
    }

    front.place.until(|| front.script().count("on_disconnect") == 1).await;
    assert_eq!(front.script().newest().connections().len(), 1);
    assert_eq!(alive.call("echo", 1).await, echoed(7, 1));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let front = Front::new().await;
    front.author(ConnHooks { disconnect: true, ..ConnHooks::NONE }, |_| {});
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    socket.subscribe("shout", true).await;
    assert_eq!(socket.call("echo", 1).await, echoed(7, 1));
    let actor = front.script().newest();
    let mut long = vec![0x81, 0x5a, 0, 0x08, 0, 0];
    long.resize(long.len() + 512 * 1024, 0);

    // More than the sockets of both sides take in.
    for _ in 0..200 {
        actor.broadcast("shout", long.clone().into());
        front.place.settle().await;
        if front.script().count("on_disconnect") == 1 {
            break;
        }
    }

    gone(&front, 1).await;
}

#[tokio::test]
async fn a_flood_of_messages_is_cut_off_where_that_is_asked_for() {
    let front = Front::new().await;
    front.author(ConnHooks { disconnect: true, ..ConnHooks::NONE }, |config| {
        config.client_limits =
            ClientLimits { messages_per_second: Some(2), burst: Some(3), ..Default::default() };
    });
    let mut socket = Socket::connected(&front, Encoding::Bare).await;

    for n in 1..=3 {
        assert_eq!(socket.call("echo", n).await, echoed(7, n));
    }
    front.clock().advance(SECOND);
    for n in 4..=5 {
        assert_eq!(socket.call("echo", n).await, echoed(7, n));
    }
    socket.request(1, "echo", number_args(6)).await;

    assert_eq!(reason(socket.end().await), (1008, "guard.rate_limit".to_owned()));
    assert_eq!(front.script().count("echo \u{fffd}\u{6}"), 0);
    gone(&front, 1).await;
}

#[tokio::test]
async fn an_address_has_so_many_sockets_at_an_actor() {
    let front = Front::new().await;
    front.author(ConnHooks { disconnect: true, ..ConnHooks::NONE }, |config| {
        config.client_limits.connections_per_ip = Some(2);
    });
    let first = Socket::connected(&front, Encoding::Bare).await;
    let _second = Socket::connected(&front, Encoding::Bare).await;

    let mut third = Socket::connecting(&front, Encoding::Bare).await;
    let expected = (1008, "guard.too_many_connections".to_owned());
    assert_eq!(reason(third.end().await), expected);
    drop(first);
    front.place.until(|| front.script().count("on_disconnect") == 1).await;
    front.place.settle().await;

    Socket::connected(&front, Encoding::Bare).await;
}

#[tokio::test]
async fn an_actor_takes_so_many_clients_and_a_gateway_so_many_sockets() {
    let front = Front::new().await;
    front.configure(|config| config.max_connections = 1);
    let _one = Socket::connected(&front, Encoding::Bare).await;
    let mut more = Socket::connecting(&front, Encoding::Bare).await;
    assert_eq!(reason(more.end().await), (1011, "connection.too_many".to_owned()));

    let front = Front::bounded(Bounds { sockets: 1, ..Bounds::default() }).await;
    let _one = Socket::connected(&front, Encoding::Bare).await;
    let mut more = Socket::connecting(&front, Encoding::Bare).await;
    assert_eq!(reason(more.end().await), (1011, "guard.service_unavailable".to_owned()));
    assert_eq!(front.call("echo", "{}").await.status, 200);
}

#[tokio::test]
async fn sockets_do_not_take_the_places_of_requests() {
    let front = Front::bounded(Bounds { connections: 1, ..Bounds::default() }).await;

    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(Socket::connected(&front, Encoding::Bare).await);
    }

    assert_eq!(front.call("echo", "{}").await.status, 200);
}

#[tokio::test]
async fn an_actor_that_does_not_accept_in_time_is_given_up() {
    let front = Front::new().await;
    front.author(ConnHooks::ALL, |config| config.on_connect_timeout = 60 * SECOND);
    front.script().hold("on_connect");
    let mut socket = Socket::connecting(&front, Encoding::Bare).await;
    front.place.until(|| front.script().waiting("on_connect") == 1).await;

    front.pass(30 * SECOND).await;

    assert_eq!(reason(socket.end().await), (1011, "guard.actor_ready_timeout".to_owned()));
    gone(&front, 1).await;
}

#[tokio::test]
async fn without_the_token_or_from_another_page_a_socket_is_closed() {
    let options = GatewayOptions { token: Token::new("t"), ..GatewayOptions::default() };
    let front = Front::with(options).await;
    let address = front.gateway.address().expect("it listens");
    let mut refused = Socket::open(address, &connect_uri(), "rivet").await;
    assert_eq!(reason(refused.end().await), (1011, "api.unauthorized".to_owned()));
    let mut admitted = Socket::open(address, &connect_uri(), "rivet, rivet_token.t").await;
    assert!(matches!(admitted.next().await, ToClient::Init { .. }));

    let front = Front::new().await;
    let origin = [("origin", "https://evil.example")];
    let mut refused = Socket::open_with(
        front.gateway.address().expect("it listens"),
        &connect_uri(),
        "rivet",
        &origin,
    )
    .await;
    assert_eq!(reason(refused.end().await), (1011, "api.forbidden".to_owned()));
    assert_eq!(front.script().alive(), 0);
}

#[tokio::test]
async fn the_end_of_the_gateway_and_of_the_host_close_sockets() {
    let front = front().await;
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    let (end, ()) = tokio::join!(socket.end(), front.stop(SECOND));
    assert_eq!(end, (1001, "guard.service_unavailable".to_owned()));
    gone(&front, 1).await;

    let front = self::front().await;
    let mut socket = Socket::connected(&front, Encoding::Bare).await;
    within(front.host().shutdown(SECOND)).await;
    assert_eq!(reason(socket.end().await), (1011, "registry.shut_down".to_owned()));
}
