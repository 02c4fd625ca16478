//! The files of an author (`publicDir`).

use std::path::Path;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tower_http::services::ServeDir;

/// The file that a request is for; `None` if it is for none, or cannot be for one. Of a
/// folder it is `index.html`.
pub(super) fn answer(
    folder: &Path,
    request: &Request,
) -> impl Future<Output = Option<Response>> + Send + use<> {
    let is_asked = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut asked = Request::new(Body::empty());
    asked.method_mut().clone_from(request.method());
    asked.uri_mut().clone_from(request.uri());
    asked.headers_mut().clone_from(request.headers());
    let files = TowerToHyperService::new(ServeDir::new(folder));
    async move {
        if !is_asked {
            return None;
        }
        let response = match files.call(asked).await {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        };
        (response.status() != StatusCode::NOT_FOUND).then_some(response)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn get(folder: &Path, method: Method, uri: &str) -> Option<(u16, String)> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().unwrap();
        let response = answer(folder, &request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Some((status, String::from_utf8(body.to_vec()).unwrap()))
    }

    #[tokio::test]
    async fn files_are_found_by_their_paths_and_nothing_outside_of_the_folder() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("public");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(parent.path().join("secret"), "no").unwrap();
        std::fs::write(folder.join("index.html"), "home").unwrap();
        std::fs::write(folder.join("sub/a b.txt"), "text").unwrap();
        let found = |text: &str| Some((200, text.to_owned()));

        for (uri, expected) in [
            ("/", found("home")),
            ("/index.html?x=1", found("home")),
            ("/sub/a%20b.txt", found("text")),
            ("/nothing", None),
            ("/../secret", None),
            ("/%2e%2e/secret", None),
            ("/sub/..%2f..%2fsecret", None),
        ] {
            assert_eq!(get(&folder, Method::GET, uri).await, expected, "{uri}");
        }
        assert_eq!(get(&folder, Method::HEAD, "/").await, found(""));
        assert_eq!(get(&folder, Method::POST, "/").await, None);
        assert_eq!(get(&parent.path().join("none"), Method::GET, "/").await, None);
    }
}
