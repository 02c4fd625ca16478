//! Requests for the author's own `onRequest` (§4.5).
//!
//! One reaches the actor as a call under a name that no action can have, so the same holds
//! for it as for calls: when it is taken, its timeout, that its answer waits for what was
//! changed before. The head crosses as JSON, with the body behind it where that is small;
//! otherwise as the number of an [`Exchange`].

use std::io;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, HttpBody as _};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::actor::ELSEWHERE;
use super::answer::{add, empty};
use super::bodies::{Exchange, MAX_BODY, Pieces};
use super::body::{Read, read};
use super::error::GatewayError;
use crate::core::behavior::{Caller, Reply};
use crate::core::connections::RequestHead as SeenHead;
use crate::core::context::CallRequest;
use crate::error::Error;
use crate::host::embedded::Address;
use crate::host::embedded::sessions::{RequestOutcome, SessionRequest};
use crate::ids::ActorName;
use crate::protocol::{ActorBody, header};

/// The name under which requests travel. Names of actions have no control characters.
pub const REQUEST: &str = "\u{2}request";

/// The longest body that goes along with its head, in bytes.
pub(super) const INLINE: u64 = 64 * 1024;

/// How long the number is that says how long the head behind it is, in bytes.
const HEAD_LENGTH: usize = 4;

/// What the author's side is told of a request.
#[derive(Serialize)]
struct RequestHead<'a> {
    method: &'a str,
    /// The path and the query, without what led to the actor.
    uri: &'a str,
    headers: &'a [(String, String)],
    /// The number of its exchange.
    exchange: u64,
    /// Whether the body comes through that.
    streams: bool,
}

/// What is told of an answer, by the author's side or to it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct AnswerHead {
    pub status: u16,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Whether the body comes through the exchange.
    #[serde(default)]
    pub streams: bool,
}

/// A request on its way to the author's side.
pub(super) struct RawRequest {
    /// What the call takes along.
    pub args: Bytes,
    exchange: Arc<Exchange>,
    pieces: Pieces,
    has_no_body: bool,
}

/// Whom a request is for.
pub(super) struct Recipient {
    pub address: Address,
    pub name: ActorName,
    /// What the author sees of its head.
    pub seen: Arc<SeenHead>,
}

/// Has the author's side answer a request.
///
/// # Errors
///
/// What the author threw, or why nobody was there to answer.
pub(super) async fn answer(
    shared: &Shared,
    recipient: Recipient,
    head: &Parts,
    body: Body,
) -> Result<Response, Error> {
    let Recipient { address, name, seen } = recipient;
    let params = header::params(head.headers.get(header::PARAMS).map(|value| value.as_bytes()))?;
    let request = RawRequest::take(shared, &seen, body).await?;
    let (action, args) = (REQUEST.to_owned(), request.args.clone());
    let connects = shared.host.config(&name).is_some_and(|config| config.connects_requests);
    let (outcome, connection) = if connects {
        let connect = SessionRequest {
            params: params.cbor().clone(),
            request: Some(seen),
            hibernatable: false,
        };
        let called =
            shared.host.call_over_new(&address, &connect, action, args, Caller::Client, ELSEWHERE);
        called.await
    } else {
        let (reply, result) = Reply::channel();
        let taken_by = Arc::new(OnceLock::new());
        let call = CallRequest {
            name: action,
            args,
            caller: Caller::Client,
            origin: 0,
            taken_by: Some(Arc::clone(&taken_by)),
            reply,
        };
        shared.host.call(address, call, ELSEWHERE);
        let result = result.await;
        (RequestOutcome { result, taken_by: taken_by.get().cloned() }, None)
    };
    let RequestOutcome { result, taken_by } = outcome;
    let mut response = match result {
        Ok(answer) => request.respond(&answer, connection)?,
        Err(error) if error.is("actor", "action_not_found") => empty(StatusCode::NOT_FOUND),
        Err(error) => return Err(error),
    };
    if let Some(actor) = &taken_by {
        add(&mut response, header::of_actor(&ActorBody::from(actor)));
    }
    Ok(response)
}

impl RawRequest {
    /// Takes a request over.
    ///
    /// # Errors
    ///
    /// Those of a body that does not come, or is too long.
    pub async fn take(shared: &Shared, seen: &SeenHead, body: Body) -> Result<Self, GatewayError> {
        let hint = body.size_hint();
        if hint.lower() > MAX_BODY as u64 {
            return Err(GatewayError::BodyTooLong { limit: MAX_BODY });
        }
        let patience = shared.options.bounds.body_timeout;
        let clock = shared.clock();
        let is_small = hint.exact().is_some_and(|length| length <= INLINE);
        let (small, streamed) = if is_small {
            match read(body, MAX_BODY, clock, patience).await? {
                Read::Whole(bytes) => (bytes, None),
                Read::TooLong(_) => return Err(GatewayError::BodyTooLong { limit: MAX_BODY }),
            }
        } else {
            (Bytes::new(), Some(body))
        };
        let streams = streamed.is_some();
        let (exchange, pieces) = Exchange::begin(streamed, clock.clone(), patience);
        let told = RequestHead {
            method: &seen.method,
            uri: &seen.path,
            headers: &seen.headers,
            exchange: exchange.number(),
            streams,
        };
        let args = pack(&told, &small)?;
        let has_no_body = seen.method == "HEAD";
        Ok(Self { args, exchange, pieces, has_no_body })
    }

    /// The response that an answer means. It keeps `guard` for as long as its body is sent.
    ///
    /// # Errors
    ///
    /// [`GatewayError::AnswerInvalid`].
    pub fn respond<G: Send + Unpin + 'static>(
        self,
        answer: &Bytes,
        guard: G,
    ) -> Result<Response, GatewayError> {
        let (head, body) = unpack(answer)?;
        let status = StatusCode::from_u16(head.status)
            .ok()
            .filter(|status| !status.is_informational())
            .ok_or_else(|| invalid(format_args!("its status is {}", head.status)))?;
        let is_empty =
            self.has_no_body || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        // Of what GET would be answered with; where that is not known, nobody may say 0.
        let length = (self.has_no_body && !head.streams).then_some(body.len());
        let body = match (is_empty, head.streams) {
            (true, true) if self.has_no_body => {
                Body::from_stream(stream::empty::<io::Result<Bytes>>())
            }
            (true, _) => Body::empty(),
            (false, true) => self.pieces.into_body(self.exchange, guard),
            (false, false) => Body::from(body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        if let Some(length) = length {
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        for (name, value) in head.headers {
            let (Ok(known), Some(value)) = (HeaderName::try_from(&name), value_of(&value)) else {
                return Err(invalid(format_args!("it has a header `{name}` that none can have")));
            };
            if !is_of_the_connection(&known) {
                response.headers_mut().append(known, value);
            }
        }
        Ok(response)
    }
}

/// Headers that speak of one connection, which is the server's matter.
fn is_of_the_connection(name: &HeaderName) -> bool {
    use axum::http::header::{CONNECTION, TRANSFER_ENCODING, UPGRADE};
    [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE].contains(name)
}

/// Each character is a byte, as the Fetch standard has it.
pub(super) fn value_of(text: &str) -> Option<HeaderValue> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    HeaderValue::from_bytes(&bytes.ok()?).ok()
}

pub(super) fn pack(head: &impl Serialize, body: &Bytes) -> Result<Bytes, GatewayError> {
    let json = serde_json::to_vec(head).map_err(invalid)?;
    let length = u32::try_from(json.len()).map_err(invalid)?;
    let mut packed = BytesMut::with_capacity(HEAD_LENGTH + json.len() + body.len());
    packed.put_u32_le(length);
    packed.extend_from_slice(&json);
    packed.extend_from_slice(body);
    Ok(packed.freeze())
}

fn unpack(packed: &Bytes) -> Result<(AnswerHead, Bytes), GatewayError> {
    let cut = || invalid("it is cut off");
    let length = packed.first_chunk::<HEAD_LENGTH>().ok_or_else(cut)?;
    let end = usize::try_from(u32::from_le_bytes(*length)).map_err(invalid)? + HEAD_LENGTH;
    let json = packed.get(HEAD_LENGTH..end).ok_or_else(cut)?;
    let head = serde_json::from_slice(json).map_err(invalid)?;
    Ok((head, packed.slice(end..)))
}

fn invalid(reason: impl std::fmt::Display) -> GatewayError {
    GatewayError::AnswerInvalid { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_off_or_no_json_is_named() {
        for bytes in
            [&b""[..], b"\x05\0\0", b"\x05\0\0\0{}", b"\x02\0\0\0[]", b"\xff\xff\xff\xff{}"]
        {
            let refused = unpack(&Bytes::copy_from_slice(bytes)).unwrap_err();

            assert!(matches!(refused, GatewayError::AnswerInvalid { .. }), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let head = serde_json::json!({ "status": 201, "headers": [["a", "b"]] });
        let packed = pack(&head, &Bytes::from_static(b"body")).unwrap();

        let (head, body) = unpack(&packed).unwrap();

        assert_eq!((head.status, head.streams, &*body), (201, false, &b"body"[..]));
        assert_eq!(head.headers, [("a".to_owned(), "b".to_owned())]);
    }
}
