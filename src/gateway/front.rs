//! What every request goes through, whoever it is for.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;

use super::admission::{admit, authenticate, bearer};
use super::answer::{Answer, Failure, add, empty};
use super::{Shared, actor, application, manager, public, upgrade};

use crate::core::spawner::panic_text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::protocol::manager::ManagerError;
use crate::protocol::route::{Hints, RouteError, Target, route};
use crate::protocol::{cors, header};

/// The longest ray id that is taken from a client, in bytes.
const MAX_RAY_ID: usize = 30;

/// The length of a ray id that is made here, as observed (O§1).
const RAY_ID: usize = 30;

/// What browsers say of the page that calls.
const ORIGIN: &str = "origin";

/// Answers a request, and says with the answer whose it is (invariant 8 of the gateway).
pub(super) async fn front(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let (asker, admitted) = Asker::of(&shared, &request);
    if shared.options.application_only {
        let answer = AssertUnwindSafe(authors_answer(&shared, request, &asker.ray_id));
        let panicked = |panic: Box<dyn Any + Send>| Err(Error::internal(panic_text(&*panic)));
        let answer = answer.catch_unwind().await.unwrap_or_else(panicked);
        return match answer {
            Ok(response) => response,
            Err(error) => asker.told(&shared, Failure::gateway(error)),
        };
    }
    let ray_id = &asker.ray_id;
    let mut request = request;
    let asked = admitted.clone().map_err(Error::from);
    let answer = match (upgrade::answer(&shared, &mut request, asked, ray_id), admitted) {
        (Some(response), _) => Ok(response),
        (None, Err(error)) => Err(Failure::gateway(error)),
        (None, Ok(())) => {
            let answer = AssertUnwindSafe(answer(&shared, request, next, ray_id)).catch_unwind();
            answer.await.unwrap_or_else(|panic| {
                Err(Failure::gateway(Error::internal(panic_text(panic.as_ref()))))
            })
        }
    };
    let failure = match answer {
        Ok(mut response) => response.extensions_mut().remove().ok_or(response),
        Err(failure) => Ok(failure),
    };
    match failure {
        Ok(failure) => asker.told(&shared, failure),
        Err(response) => asker.answered(response),
    }
}

/// What whoever asks has with every answer (invariant 8 of the gateway).
pub(super) struct Asker {
    ray_id: String,
    origin: Option<String>,
    is_refused: bool,
}

impl Asker {
    /// Who sent a request, and whether it is answered.
    pub(super) fn of(shared: &Shared, request: &Request) -> (Self, Result<(), ManagerError>) {
        let admitted = admit(&shared.options, request.uri(), request.headers());
        let asker = Self {
            ray_id: ray_id(request.headers(), shared.host.runtime().ids()),
            origin: text(request.headers(), ORIGIN).map(str::to_owned),
            is_refused: admitted.is_err(),
        };
        (asker, admitted)
    }

    /// A failure, as it is told.
    pub(super) fn told(self, shared: &Shared, failure: Failure) -> Response {
        let response = failure.respond(shared.options.disclosure, &self.ray_id);
        self.answered(response)
    }

    fn answered(self, mut response: Response) -> Response {
        let is_authors = response.extensions_mut().remove::<Authors>().is_some();
        if !self.is_refused && !is_authors {
            add(&mut response, cors::response(self.origin.as_deref()));
        }
        add(&mut response, [(header::RAY_ID, self.ray_id)]);
        response
    }
}

/// Marks what is the author's own: which pages may read it is the author's matter, since it
/// is answered without the token.
#[derive(Clone, Copy)]
struct Authors;

fn authors(mut response: Response) -> Response {
    response.extensions_mut().insert(Authors);
    response
}

/// An answer of a server that has nothing but the author's files and application.
async fn authors_answer(
    shared: &Shared,
    request: Request,
    ray_id: &str,
) -> Result<Response, Error> {
    if let Some(folder) = &shared.options.public_dir
        && let Some(file) = public::answer(folder, &request).await
    {
        return Ok(file);
    }
    match &shared.options.application {
        Some(application) => application::answer(shared, application, request, ray_id).await,
        None => Ok(empty(StatusCode::NOT_FOUND)),
    }
}

async fn answer(shared: &Arc<Shared>, request: Request, next: Next, ray_id: &str) -> Answer {
    let target = routed(&request);
    let is_for_actor = !matches!(target, Ok(None));
    let options = &shared.options;
    if !is_for_actor {
        if let Some(folder) = &options.public_dir
            && let Some(file) = public::answer(folder, &request).await
        {
            return Ok(authors(file));
        }
        if let Some(application) = &options.application
            && !manager::has(shared, request.uri().path())
        {
            let answered = application::answer(shared, application, request, ray_id).await;
            return answered.map(authors).map_err(Failure::gateway);
        }
    }
    if request.method() == Method::OPTIONS {
        return Ok(preflight(request.headers(), !is_for_actor));
    }
    let target = target.map_err(Failure::gateway)?;
    let is_open = !is_for_actor && matches!(request.uri().path(), "/health" | "/metadata");
    if !is_open {
        let named = target.as_ref().and_then(|target| target.token.as_deref());
        let given = named.or_else(|| bearer(request.headers()));
        authenticate(options, given).map_err(Failure::gateway)?;
    }
    match target {
        Some(target) => actor::answer(shared, target, request, ray_id).await,
        None if shared.is_unguarded()
            && manager::manages(shared, request.method(), request.uri()) =>
        {
            Err(Failure::gateway(ManagerError::Unauthorized))
        }
        None => Ok(next.run(request).await),
    }
}

/// The actor that a request is for (§6.4).
fn routed(request: &Request) -> Result<Option<Target>, RouteError> {
    let uri = request.uri().path_and_query().map_or("/", |uri| uri.as_str());
    route(uri, &Hints::of_call(|name| text(request.headers(), name)))
}

/// The answer to what a browser asks before it sends a request (§6.7).
fn preflight(headers: &HeaderMap, is_managers: bool) -> Response {
    let asked = cors::Preflight {
        origin: text(headers, ORIGIN),
        method: text(headers, "access-control-request-method"),
        headers: text(headers, "access-control-request-headers"),
    };
    let (status, headers) = if is_managers { asked.of_manager() } else { asked.of_gateway() };
    let mut response = empty(StatusCode::from_u16(status).unwrap_or(StatusCode::OK));
    add(&mut response, headers);
    response
}

/// The id that the client gave the request, if it is one, else a new one.
fn ray_id(headers: &HeaderMap, ids: &IdSource) -> String {
    let fits = |id: &&str| {
        let may = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=MAX_RAY_ID).contains(&id.len()) && id.bytes().all(may)
    };
    match text(headers, header::RAY_ID).filter(fits) {
        Some(id) => id.to_owned(),
        None => ids.uuid().chars().filter(|char| *char != '-').take(RAY_ID).collect(),
    }
}

/// The value of a header, the first if there are several, if it is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Router, middleware};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::gateway::GatewayOptions;
    use crate::host::embedded::{EmbeddedHost, EnvironmentId, OpenOptions};
    use crate::store::StoreLocation;
    use crate::time::Clock;

    async fn boom() {
        panic!("a secret");
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_that_says_nothing_of_it() {
        let (clock, handle) = (Clock::manual(0).clock(), tokio::runtime::Handle::current());
        let options = OpenOptions::new(StoreLocation::Memory, EnvironmentId(1), clock, handle);
        let host = EmbeddedHost::open(options).await.unwrap();
        let shared = Arc::new(Shared::new(host, GatewayOptions::default(), true));
        let router = Router::new()
            .route("/boom", get(boom))
            .layer(middleware::from_fn_with_state(shared, front));
        let request = Request::get("/boom")
            .header("host", "localhost")
            .header("origin", "http://localhost")
            .body(axum::body::Body::empty())
            .unwrap();

        let response = TowerToHyperService::new(router).call(request).await.unwrap();

        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key(header::RAY_ID));
        assert_eq!(response.headers()["access-control-allow-origin"], "http://localhost");
        let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
        let text = std::str::from_utf8(&body).unwrap();
        assert!(text.contains("internal_error") && !text.contains("secret"), "{text}");
    }
}
