//! A client of a WebSocket that speaks the protocol.

use std::net::SocketAddr;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use greenroom::protocol::{Args, Encoding, Payload, ToClient, ToServer, Wire as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::fixture::{Front, QUERY};
use crate::place::within;

/// One client.
pub struct Socket {
    pub stream: WebSocketStream<TcpStream>,
    pub encoding: Encoding,
    pub protocol: Option<String>,
}

/// The path of a connection to an actor of the key `a`, which is made if need be.
pub fn connect_uri() -> String {
    format!("/gateway/counter/connect?{QUERY}&rvt-key=a")
}

impl Socket {
    /// Opens a socket with an offer, and whatever follows.
    pub async fn open(address: SocketAddr, uri: &str, offer: &str) -> Self {
        Self::open_with(address, uri, offer, &[]).await
    }

    pub async fn open_with(
        address: SocketAddr,
        uri: &str,
        offer: &str,
        headers: &[(&'static str, &str)],
    ) -> Self {
        let mut request = format!("ws://{address}{uri}").into_client_request().expect("a URL");
        if !offer.is_empty() {
            request.headers_mut().insert("sec-websocket-protocol", offer.parse().expect("a value"));
        }
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a value"));
        }
        let tcp = within(TcpStream::connect(address)).await.expect("somebody listens");
        let (stream, response) = within(client_async(request, tcp)).await.expect("it opens");
        let protocol = response.headers().get("sec-websocket-protocol");
        let protocol = protocol.map(|value| value.to_str().expect("text").to_owned());
        let encoding = Encoding::ALL.into_iter().find(|encoding| offer.contains(encoding.name()));
        Self { stream, encoding: encoding.unwrap_or_default(), protocol }
    }

    /// Connects to the actor of the key `a` in an encoding, and reads the init.
    pub async fn connected(front: &Front, encoding: Encoding) -> Self {
        let mut socket = Self::connecting(front, encoding).await;
        assert!(matches!(socket.next().await, ToClient::Init { .. }));
        socket
    }

    pub async fn connecting(front: &Front, encoding: Encoding) -> Self {
        let offer = format!("rivet, rivet_encoding.{}", encoding.name());
        Self::open(front.gateway.address().expect("it listens"), &connect_uri(), &offer).await
    }

    pub async fn send(&mut self, message: Message) {
        within(self.stream.send(message)).await.expect("somebody reads");
    }

    pub async fn tell(&mut self, message: &ToServer) {
        let bytes = message.encode(self.encoding).expect("it has a form");
        let message = match self.encoding.is_text() {
            true => Message::Text(bytes.try_into().expect("text")),
            false => Message::Binary(bytes),
        };
        self.send(message).await;
    }

    pub async fn request(&mut self, id: u64, name: &str, args: Args) {
        self.tell(&ToServer::ActionRequest { id, name: name.to_owned(), args }).await;
    }

    pub async fn subscribe(&mut self, event: &str, subscribe: bool) {
        let event_name = event.to_owned();
        self.tell(&ToServer::SubscriptionRequest { event_name, subscribe }).await;
    }

    /// Calls an action with one number and reads the next message.
    pub async fn call(&mut self, name: &str, number: u8) -> ToClient {
        self.request(7, name, number_args(number)).await;
        self.next().await
    }

    /// The next message.
    pub async fn next(&mut self) -> ToClient {
        loop {
            let bytes = match within(self.stream.next()).await.expect("more").expect("a message") {
                Message::Text(text) => Bytes::from(text),
                Message::Binary(bytes) => bytes,
                Message::Ping(_) | Message::Pong(_) => continue,
                other => panic!("no message of the protocol: {other:?}"),
            };
            return ToClient::decode(self.encoding, bytes).expect("a message of the protocol");
        }
    }

    /// Reads on until the end, of which it gives code and reason.
    pub async fn end(&mut self) -> (u16, String) {
        loop {
            match within(self.stream.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    // The answer to it leaves while more is read.
                    drop(within(self.stream.next()).await);
                    return (frame.code.into(), frame.reason.as_str().to_owned());
                }
                Some(Ok(Message::Close(None))) => return (1005, String::new()),
                Some(Ok(_)) => {}
                Some(Err(SocketError::ConnectionClosed)) | None => return (1006, String::new()),
                Some(Err(error)) => panic!("the end comes without a reason: {error}"),
            }
        }
    }
}

pub fn number(n: u8) -> Payload {
    assert!(n < 24, "one byte of CBOR");
    Payload::new(vec![n].into()).expect("a number")
}

pub fn number_args(n: u8) -> Args {
    Args::try_from(number(n)).expect("an array")
}

/// `[n]`, as an action that echoes its arguments answers them.
pub fn echoed(id: u64, n: u8) -> ToClient {
    ToClient::ActionResponse { id, output: number_args(n).payload().clone() }
}

/// `group.code` of an error.
pub fn fault(message: &ToClient) -> (Option<u64>, String) {
    match message {
        ToClient::Error { action_id, error } => {
            (*action_id, format!("{}.{}", error.group, error.code))
        }
        other => panic!("no error: {other:?}"),
    }
}
