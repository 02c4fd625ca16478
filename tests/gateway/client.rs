//! A client that sends the bytes that it is told to, and reads what comes back.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::place::within;

/// One connection.
pub struct Client {
    stream: TcpStream,
    /// What came and was not read.
    rest: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = within(TcpStream::connect(address)).await.expect("somebody listens");
        Self { stream, rest: Vec::new() }
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.expect("somebody reads");
    }

    /// Sends a request, with `host` unless `headers` have one, and reads the response.
    pub async fn ask(
        &mut self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.send(request(method, uri, headers, body)).await;
        self.response().await
    }

    /// The next response.
    pub async fn response(&mut self) -> Response {
        self.try_response().await.expect("a response comes")
    }

    /// The next response; `None` if the connection ends before one begins.
    pub async fn try_response(&mut self) -> Option<Response> {
        let end = loop {
            if let Some(at) = self.rest.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if !self.more().await {
                assert!(self.rest.is_empty(), "half a response");
                return None;
            }
        };
        let head = String::from_utf8(self.rest.drain(..end + 4).collect()).expect("text");
        let status = head[9..12].parse().expect("a status");
        let mut response = Response { status, head, body: Vec::new() };
        let length =
            response.header("content-length").map_or(0, |text| text.parse().expect("a length"));
        while self.rest.len() < length {
            assert!(self.more().await, "half a body");
        }
        response.body = self.rest.drain(..length).collect();
        Some(response)
    }

    /// Whether the other side has closed the connection, with nothing more to read.
    pub async fn is_over(&mut self) -> bool {
        self.rest.is_empty() && !self.more().await
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        // A reset is an end, too.
        let count = within(self.stream.read(&mut buffer)).await.unwrap_or(0);
        self.rest.extend_from_slice(&buffer[..count]);
        count > 0
    }
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Status, group and code of an error in JSON.
    pub fn fault(&self) -> (u16, String) {
        let body = self.json();
        let text = |field: &str| body[field].as_str().expect("text").to_owned();
        (self.status, format!("{}.{}", text("group"), text("code")))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// A request in bytes.
pub fn request(method: &str, uri: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = format!("{method} {uri} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        out.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || method == "POST" {
        out.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    out.push_str("\r\n");
    [out.as_bytes(), body].concat()
}
