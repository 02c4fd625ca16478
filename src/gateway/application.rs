//! What answers requests that are for no actor, no file and not for the manager: a function
//! of the author's.

use std::fmt::Debug;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;

use super::Shared;
use super::head;
use super::raw::RawRequest;
use crate::core::behavior::Reply;
use crate::error::Error;

/// The author's function, which is told of requests as actors are (`raw`).
pub trait Application: Debug + Send + Sync + 'static {
    /// Has it answer. Returns at once. What this returns is dropped when the client has its
    /// answer, or goes away before.
    fn answer(&self, request: Bytes, reply: Reply<Bytes>) -> Box<dyn Send + Sync>;
}

/// Has the author answer a request.
///
/// # Errors
///
/// What the author threw, and those of a body that does not come.
pub(super) async fn answer(
    shared: &Shared,
    application: &Arc<dyn Application>,
    request: Request,
    ray_id: &str,
) -> Result<Response, Error> {
    let (head, body) = request.into_parts();
    let uri = head.uri.path_and_query().map_or("/", |uri| uri.as_str());
    let seen = if shared.options.application_only {
        head::of_server(&head, uri, ray_id)
    } else {
        head::of_actor(&head, uri, ray_id, None)
    };
    let request = RawRequest::take(shared, &seen, body).await?;
    let (reply, answered) = Reply::channel();
    let asked = application.answer(request.args.clone(), reply);
    let answer = answered.await?;
    Ok(request.respond(&answer, Asked(asked))?)
}

/// Tells the author's side that nobody waits any more when it is dropped.
struct Asked(#[expect(dead_code, reason = "dropped with its request")] Box<dyn Send + Sync>);
