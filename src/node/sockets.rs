//! What authors say over raw sockets; what they hear comes as calls. The contract's
//! `WebSocket` is the same as an object, of which the JavaScript half makes what is heard
//! events (`ts/native/web-socket.ts`).
//!
//! # Invariants
//!
//! 1. What is said is an output of the actor: it waits for the changes made before it.
//! 2. Bytes are copied in before the call returns.

use bytes::Bytes;
use napi::Env;
use napi_derive::napi;

use super::env::{self, number};
use super::error::{invalid_argument, thrown};
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

/// A raw socket of a client.
#[napi]
pub struct WebSocket {
    actor: f64,
    socket: f64,
}

#[napi]
impl WebSocket {
    /// Sends a message, as bytes or as text. Nothing is sent once the socket is closed.
    /// Throws where text is no UTF-8.
    #[napi(catch_unwind)]
    pub fn send(&self, env: &Env, data: &[u8], binary: bool) -> napi::Result<()> {
        trip();
        if !binary && let Err(error) = std::str::from_utf8(data) {
            return Err(thrown(env, invalid_argument("data", error)));
        }
        web_socket_send(self.actor, self.socket, data, !binary);
        Ok(())
    }
}

/// The raw socket of a number, which an actor was handed.
#[napi(catch_unwind)]
pub fn web_socket(actor: f64, socket: f64) -> WebSocket {
    trip();
    WebSocket { actor, socket }
}
