//! Sockets whose clients do not read, or a little at a time.

use std::io::ErrorKind;

use greenroom::core::connections::ConnHooks;
use greenroom::gateway::Bounds;
use greenroom::protocol::Encoding;
use socket2::SockRef;
use tokio::io::AsyncReadExt as _;

use crate::fixture::{Front, SECOND};
use crate::place::within;
use crate::socket::{Socket, echoed};

const MIB: usize = 1024 * 1024;

/// A client whose system keeps little of what it does not read.
async fn slow(front: &Front) -> Socket {
    front.author(ConnHooks { disconnect: true, ..ConnHooks::NONE }, |config| {
        config.max_outgoing_message_size = 32 * 1024 * 1024;
    });
    let mut socket = Socket::connected(front, Encoding::Bare).await;
    SockRef::from(socket.stream.get_ref()).set_recv_buffer_size(64 * 1024).expect("it is open");
    socket.subscribe("shout", true).await;
    assert_eq!(socket.call("echo", 1).await, echoed(7, 1));
    socket
}

/// A string of bytes in an array, as arguments are encoded.
fn long(length: usize) -> Vec<u8> {
    let count = u32::try_from(length).expect("it is short").to_be_bytes();
    let mut args = [&[0x81, 0x5a][..], &count].concat();
    args.resize(args.len() + length, 7);
    args
}

#[tokio::test]
async fn a_client_that_takes_a_long_message_slowly_stays() {
    let front = Front::new().await;
    let mut socket = slow(&front).await;
    front.script().newest().broadcast("shout", long(24 * MIB).into());
    let mut part = vec![0; 4 * MIB];

    for _ in 0..6 {
        front.pass(20 * SECOND).await;
        within(socket.stream.get_mut().read_exact(&mut part)).await.unwrap();
        front.place.settle().await;
    }

    assert_eq!(front.script().count("on_disconnect"), 0);
}

#[tokio::test]
async fn the_end_reaches_a_client_that_takes_what_is_before_it_slowly() {
    let front = Front::new().await;
    let mut socket = slow(&front).await;
    let actor = front.script().newest();
    actor.broadcast("shout", long(24 * MIB).into());
    front.place.settle().await;
    actor.connections()[0].disconnect("enough").await.unwrap();
    let (mut part, mut tail) = (vec![0; 4 * MIB], Vec::new());

    for _ in 0..6 {
        front.pass(20 * SECOND).await;
        within(socket.stream.get_mut().read_exact(&mut part)).await.unwrap();
        front.place.settle().await;
    }
    let mut rest = vec![0; 1024];
    while !tail.ends_with(b"enough") {
        let count = within(socket.stream.get_mut().read(&mut rest)).await.unwrap();
        assert!(count > 0, "it is cut off");
        tail.extend_from_slice(&rest[..count]);
    }
}

#[tokio::test]
async fn a_client_that_asks_for_signs_of_life_and_reads_none_is_stopped_and_cut_off() {
    let front = Front::new().await;
    let socket = slow(&front).await;
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[7; 125]].concat();
    let pings = ping.repeat(500);
    let (mut sent, mut refused) = (0, 0);

    // Until nothing more of it is taken. In between frames may be cut, so they go on there.
    let mut at = 0;
    while refused < 20 {
        match socket.stream.get_ref().try_write(&pings[at..]) {
            Ok(count) => {
                (sent, refused) = (sent + count, 0);
                at = (at + count) % pings.len();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                refused += 1;
                front.place.settle().await;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 64 * MIB, "all of it is taken");
    }
    assert_eq!(front.script().count("on_disconnect"), 0);

    front.pass(30 * SECOND).await;
    front.place.until(|| front.script().count("on_disconnect") == 1).await;
}

#[tokio::test]
async fn a_client_that_has_something_to_take_first_is_not_asked_for_a_sign_of_life() {
    let bounds = Bounds { write_timeout: 600 * SECOND, ..Bounds::default() };
    let front = Front::bounded(bounds).await;
    let mut socket = slow(&front).await;
    front.script().newest().broadcast("shout", long(24 * MIB).into());

    for _ in 0..4 {
        front.pass(30 * SECOND).await;
    }
    front.place.settle().await;

    assert_eq!(front.script().count("on_disconnect"), 0);
    let mut part = vec![0; 24 * MIB];
    within(socket.stream.get_mut().read_exact(&mut part)).await.unwrap();
}
