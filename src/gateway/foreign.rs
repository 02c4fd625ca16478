//! Requests and connections of somebody else's server, which has read the head of them.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderName, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use super::bodies::Exchange;
use super::error::GatewayError;
use super::raw::{AnswerHead, INLINE, pack, value_of};
use super::server::Gateway;

/// What is known of a request.
#[derive(Debug, Deserialize)]
pub struct ForeignRequest {
    /// The method, in upper case.
    pub method: String,
    /// The path and the query.
    pub uri: String,
    /// The headers, each character a byte.
    pub headers: Vec<(String, String)>,
}

/// How far either side of a tunnel may be ahead of the other, in bytes.
const TUNNEL: usize = 64 * 1024;

/// How much is read from a tunnel at a time, in bytes.
const PIECE: usize = 16 * 1024;

/// A connection whose bytes somebody else carries.
#[derive(Debug)]
pub struct Tunnel {
    from_gateway: tokio::sync::Mutex<ReadHalf<DuplexStream>>,
    to_gateway: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    /// The client has gone: both halves are to end.
    cut: CancellationToken,
}

impl Gateway {
    /// Answers a request whose body is there already, or without one is written to the
    /// exchange. The future gives the head of the answer as JSON with its length in front,
    /// and a small body behind it; another one is read from the exchange, which has to be
    /// kept until then.
    ///
    /// # Errors
    ///
    /// [`GatewayError::BodyBroken`] of a head that is none of HTTP.
    pub fn ask(
        &self,
        request: &ForeignRequest,
        body: Option<Bytes>,
    ) -> Result<
        (Arc<Exchange>, impl Future<Output = Result<Bytes, GatewayError>> + Send + use<>),
        GatewayError,
    > {
        let mut asked = Request::new(Body::empty());
        *asked.method_mut() =
            Method::from_bytes(request.method.as_bytes()).map_err(|error| broken(&error))?;
        *asked.uri_mut() = Uri::try_from(&request.uri).map_err(|error| broken(&error))?;
        for (name, value) in &request.headers {
            let known = HeaderName::try_from(name).map_err(|error| broken(&error))?;
            let value = value_of(value).ok_or_else(|| broken(&"a header cannot be sent"))?;
            asked.headers_mut().append(known, value);
        }
        let (clock, patience) = self.patience();
        let (exchange, pieces) = Exchange::begin(None, clock, patience);
        *asked.body_mut() = match body {
            Some(bytes) => Body::from(bytes),
            None => pieces.into_body(Arc::clone(&exchange), ()),
        };
        let answered = self.answer(asked);
        let kept = Arc::clone(&exchange);
        Ok((exchange, async move { told(answered.await, &kept).await }))
    }

    /// A connection from `from` whose bytes are carried by whoever asks.
    ///
    /// # Errors
    ///
    /// [`GatewayError::TooManyConnections`].
    pub fn tunnel(&self, from: IpAddr) -> Result<Tunnel, GatewayError> {
        let (ours, theirs) = tokio::io::duplex(TUNNEL);
        self.serve_once(ours, from)?;
        let (from_gateway, to_gateway) = tokio::io::split(theirs);
        Ok(Tunnel {
            from_gateway: tokio::sync::Mutex::new(from_gateway),
            to_gateway: tokio::sync::Mutex::new(to_gateway),
            cut: CancellationToken::new(),
        })
    }
}

impl Tunnel {
    /// What the gateway sends; `None` at the end.
    pub async fn read(&self) -> Option<Bytes> {
        let mut piece = vec![0; PIECE];
        let mut from_gateway = self.from_gateway.lock().await;
        let length = tokio::select! {
            biased;
            () = self.cut.cancelled() => 0,
            read = from_gateway.read(&mut piece) => read.unwrap_or(0),
        };
        piece.truncate(length);
        (length > 0).then(|| Bytes::from(piece))
    }

    /// Hands over what the client sends, as soon as there is room.
    ///
    /// # Errors
    ///
    /// [`GatewayError::AnswerEnded`] when the gateway has ended the connection.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), GatewayError> {
        let mut to_gateway = self.to_gateway.lock().await;
        tokio::select! {
            biased;
            () = self.cut.cancelled() => Err(GatewayError::AnswerEnded),
            written = to_gateway.write_all(bytes) => written.map_err(|_| GatewayError::AnswerEnded),
        }
    }

    /// The client has gone: whoever reads or writes ends, and with the last of them the
    /// connection.
    pub fn cut(&self) {
        self.cut.cancel();
    }

    /// The client sends nothing more.
    pub async fn end(&self) {
        // It fails where the gateway has ended the connection already.
        drop(self.to_gateway.lock().await.shutdown().await);
    }
}

async fn told(response: Response, exchange: &Exchange) -> Result<Bytes, GatewayError> {
    let (head, body) = response.into_parts();
    let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect();
    let headers = head.headers.iter();
    let headers =
        headers.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
    let is_small = body.size_hint().exact().is_some_and(|length| length <= INLINE);
    let small = if is_small {
        body.collect().await.map_err(|_| GatewayError::AnswerBroken)?.to_bytes()
    } else {
        exchange.receive(body).await;
        Bytes::new()
    };
    pack(&AnswerHead { status: head.status.as_u16(), headers, streams: !is_small }, &small)
}

fn broken(reason: &dyn std::fmt::Display) -> GatewayError {
    GatewayError::BodyBroken { reason: reason.to_string() }
}
