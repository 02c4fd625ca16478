//! Answers as HTTP responses.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header as http};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::error::Error;
use crate::protocol::cors::Header;
use crate::protocol::{ActorBody, Disclosure, ErrorResponse, Origin, header};

/// A request that failed, and who says so. What the client reads of it is made in one
/// place, [`Failure::respond`], which a response of this leads to.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub error: Error,
    pub origin: Origin,
}

/// What a request comes to.
pub(super) type Answer = Result<Response, Failure>;

impl Failure {
    /// A failure of the gateway.
    pub(super) fn gateway(error: impl Into<Error>) -> Self {
        Self { error: error.into(), origin: Origin::Gateway }
    }

    /// A failure of a call of the manager.
    pub(super) fn manager(error: impl Into<Error>) -> Self {
        Self { error: error.into(), origin: Origin::Manager }
    }

    /// The response that it is. An error that nobody meant for users is logged here, once.
    pub(super) fn respond(mut self, disclosure: Disclosure, ray_id: &str) -> Response {
        if !self.error.is_public() && self.error.detail().is_some() {
            tracing::error!(ray_id, error = %self.error, "a request failed");
        }
        if self.error.is("registry", "shut_down") {
            // Published clients try again elsewhere, or later.
            self.error.status_code.get_or_insert(503);
        }
        let shown = ErrorResponse::new(&self.error, disclosure, self.origin);
        let status =
            StatusCode::from_u16(shown.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = body(status, shown.content_type, shown.body);
        let mut headers: Vec<Header> = Vec::new();
        headers.extend(shown.error_header.map(|fault| (header::ERROR, fault)));
        if let (Origin::Actor(_), Some(actor)) = (self.origin, &self.error.actor) {
            headers.extend(header::of_actor(&ActorBody::from(actor)));
        }
        add(&mut response, headers);
        response
    }
}

/// Carries it to where it becomes the response that the client reads.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::default();
        response.extensions_mut().insert(self);
        response
    }
}

/// A response with a body.
pub(super) fn body(status: StatusCode, content_type: &'static str, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(http::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A response of the manager: JSON.
pub(super) fn json(bytes: Bytes) -> Response {
    body(StatusCode::OK, "application/json", bytes)
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

/// Adds headers, in the place of such that are there. A value that no header can have is
/// left out.
pub(super) fn add(response: &mut Response, headers: impl IntoIterator<Item = Header>) {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
}
