//! What authors say over raw sockets; what they hear comes as calls.
//!
//! # Invariants
//!
//! 1. What is said is an output of the actor: it waits for the changes made before it.
//! 2. Bytes are copied in before the call returns.

use bytes::Bytes;
use napi_derive::napi;

use super::env::{self, number};
use super::guard::trip;
use crate::gateway::raw_socket::RawSocket;

/// Sends a message over a raw socket. False when the generation or the socket is over.
#[napi(catch_unwind)]
pub fn web_socket_send(actor: f64, socket: f64, bytes: &[u8], is_text: bool) -> bool {
    trip();
    let (Some(context), Some(socket)) = (env::context(actor), RawSocket::find(number(socket)))
    else {
        return false;
    };
    socket.send(&context, Bytes::copy_from_slice(bytes), is_text);
    true
}

/// Closes a raw socket behind everything that was sent over it. False as above.
#[napi(catch_unwind)]
pub fn web_socket_close(actor: f64, socket: f64, code: u32, reason: String) -> bool {
    trip();
    let (Some(context), Some(socket)) = (env::context(actor), RawSocket::find(number(socket)))
    else {
        return false;
    };
    socket.close(&context, u16::try_from(code).unwrap_or(u16::MAX), &reason);
    true
}
