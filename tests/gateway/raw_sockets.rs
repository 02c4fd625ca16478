//! Sockets for the author's own code.

use futures::StreamExt as _;
use greenroom::core::connections::ConnHooks;
use tokio_tungstenite::tungstenite::Message;

use crate::fixture::{Front, QUERY, SECOND};
use crate::place::within;
use crate::socket::Socket;
use crate::sockets::refusal;

const OPEN: &str = "\u{3}open";
const MESSAGE: &str = "\u{3}message";
const CLOSED: &str = "\u{3}closed";

async fn front(hibernates: bool) -> Front {
    let front = Front::new().await;
    front.author(ConnHooks { before_subscribe: false, ..ConnHooks::ALL }, |config| {
        config.can_hibernate_websocket = hibernates;
    });
    front.script().take_sockets();
    front
}

async fn open(front: &Front) -> Socket {
    let uri = format!("/gateway/counter/websocket/a/b?{QUERY}&rvt-key=a&x=y");
    Socket::open(front.gateway.address().expect("it listens"), &uri, "rivet, rivet_encoding.bare")
        .await
}

async fn told(socket: &mut Socket) -> Message {
    within(socket.stream.next()).await.expect("more").expect("a message")
}

async fn echo(socket: &mut Socket, message: Message) {
    socket.send(message.clone()).await;
    assert_eq!(told(socket).await, message);
}

#[tokio::test]
async fn text_and_bytes_come_and_go_over_a_connection_with_all_hooks() {
    let front = front(false).await;
    let mut socket = open(&front).await;

    echo(&mut socket, Message::text("hällo")).await;
    echo(&mut socket, Message::binary(vec![0; 100_000])).await;
    echo(&mut socket, Message::text("")).await;

    assert_eq!(socket.protocol.as_deref(), Some("rivet"));
    let connection = front.script().newest().connections().remove(0);
    assert_eq!(connection.request().unwrap().path, "/websocket/a/b?x=y");
    assert!(!connection.is_hibernatable());
    assert_eq!(front.script().seen(OPEN).len(), 1);
    assert!(front.script().seen(OPEN)[0].contains("\"restored\":false"));
    for hook in ["on_before_connect", "create_conn_state", "on_connect"] {
        assert_eq!(front.script().count(hook), 1, "{hook}");
    }
}

#[tokio::test]
async fn a_close_of_the_client_reaches_the_author_with_its_reason_and_then_the_hook() {
    let front = front(false).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("a")).await;

    let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: 3_001.into(),
        reason: "bye".into(),
    };
    within(socket.stream.close(Some(frame))).await.unwrap();
    front.place.until(|| front.script().count("on_disconnect") == 1).await;

    let closed = front.script().seen(CLOSED).remove(0);
    assert!(closed.contains("\"code\":3001,\"reason\":\"bye\""), "{closed}");
    assert!(closed.ends_with("\"wasClean\":false}"), "{closed}");
    let log = front.script().seen("");
    let at = |what: &str| log.iter().position(|seen| seen.starts_with(what));
    assert!(at(CLOSED) < at("on_disconnect"));
    assert_eq!(front.script().newest().connections().len(), 0);
}

#[tokio::test]
async fn the_author_closes_with_a_code_and_hears_of_the_end() {
    let front = front(false).await;
    let mut socket = open(&front).await;

    socket.send(Message::text("close")).await;

    assert_eq!(socket.end().await, (4_000, "enough".to_owned()));
    front.place.until(|| front.script().count("on_disconnect") == 1).await;
    assert!(front.script().seen(CLOSED)[0].contains("\"code\":4000"));
}

#[tokio::test]
async fn a_hook_that_refuses_closes_it_with_its_code_and_no_frame() {
    let front = front(false).await;
    front.script().fail("on_before_connect", Some(refusal()));
    let mut socket = open(&front).await;

    let end = told(&mut socket).await;

    let Message::Close(Some(frame)) = end else { panic!("{end:?}") };
    assert_eq!(u16::from(frame.code), 1011);
    assert_eq!(frame.reason.split('#').next(), Some("user.no"));
    assert_eq!(front.script().seen(OPEN), [""; 0]);
}

#[tokio::test]
async fn without_a_handler_it_stays_open_and_silent() {
    let front = Front::new().await;
    let mut socket = open(&front).await;
    socket.send(Message::text("a")).await;
    front.place.until(|| front.script().seen(OPEN).len() == 1).await;
    socket.send(Message::text("b")).await;
    socket.send(Message::Ping(b"x".to_vec().into())).await;

    assert_eq!(told(&mut socket).await, Message::Pong(b"x".to_vec().into()));
}

#[tokio::test]
async fn one_that_does_not_hibernate_is_closed_by_a_sleep() {
    let front = front(false).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("a")).await;
    let id = front.script().newest().actor_id();

    front.place.sleep(id).await.unwrap();

    assert_eq!(socket.end().await, (1000, "actor.stopping".to_owned()));
}

#[tokio::test]
async fn a_generation_that_wakes_is_handed_the_socket_before_what_came_over_it() {
    let front = front(true).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("1")).await;
    let id = front.script().newest().actor_id();

    for n in 2..4 {
        front.place.sleep(id).await.unwrap();
        assert_eq!(front.script().alive(), 0);
        echo(&mut socket, Message::text(n.to_string())).await;

        let opened = front.script().seen(OPEN);
        assert_eq!(opened.len(), n);
        assert!(opened[n - 1].contains("\"restored\":true"));
        let last: Vec<_> = front.script().seen("\u{3}");
        assert!(last[last.len() - 2].starts_with(OPEN));
        assert!(last[last.len() - 1].starts_with(MESSAGE));
    }

    assert_eq!(front.script().count("on_connect"), 1);
    // The numbers of the messages go on.
    let numbers: Vec<_> = front
        .script()
        .seen(MESSAGE)
        .iter()
        .map(|seen| {
            let bytes = seen.as_bytes();
            bytes[MESSAGE.len() + 1 + 8]
        })
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test]
async fn a_sleep_that_nobody_ends_wakes_nobody() {
    let front = front(true).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("1")).await;
    let id = front.script().newest().actor_id();

    for _ in 0..2 {
        front.place.sleep(id).await.unwrap();
        front.place.settle().await;
        assert_eq!(front.script().alive(), 0);
        front.call("echo", "{}").await;
    }

    assert_eq!(front.script().seen(OPEN).len(), 3);
}

#[tokio::test]
async fn a_close_while_the_actor_sleeps_is_delivered_to_the_next_generation() {
    let front = front(true).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("1")).await;
    let id = front.script().newest().actor_id();
    front.place.sleep(id).await.unwrap();

    let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: 1_000.into(),
        reason: "done".into(),
    };
    within(socket.stream.close(Some(frame))).await.unwrap();
    front.place.until(|| front.script().count("on_disconnect") == 1).await;

    let seen = front.script().seen("\u{3}");
    assert!(seen[seen.len() - 2].starts_with(OPEN));
    assert!(seen[seen.len() - 1].contains("\"code\":1000,\"reason\":\"done\""));
    assert!(seen[seen.len() - 1].ends_with("\"wasClean\":true}"));
    assert_eq!(front.host().session_count(), 0);
}

#[tokio::test]
async fn a_client_that_vanishes_is_closed_without_a_word() {
    let front = front(false).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("1")).await;

    drop(socket);
    front.place.until(|| front.script().count("on_disconnect") == 1).await;

    assert!(front.script().seen(CLOSED)[0].contains("\"code\":1006"));
}

#[tokio::test]
async fn the_end_of_the_gateway_closes_it() {
    let front = front(false).await;
    let mut socket = open(&front).await;
    echo(&mut socket, Message::text("1")).await;

    let (end, ()) = tokio::join!(socket.end(), front.stop(SECOND));

    assert_eq!(end, (1001, "guard.service_unavailable".to_owned()));
}
