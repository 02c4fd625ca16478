//! The files of tabs that authors add to the inspector, which need no token: whoever shows them
//! has it in their URL, so they are told to say nothing of that.

use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tower_http::services::ServeFile;

use super::look::invalid;
use crate::error::{Error, Result};
use crate::gateway::Shared;
use crate::gateway::answer::body;
use crate::ids::ActorName;
use crate::inspector::InspectorError;
use crate::protocol::percent_decode;

/// What stands in front of the id of a tab.
const TABS: &str = "/inspector/custom-tabs/";

/// The page of a folder.
const INDEX: &str = "index.html";

/// The most of a path that an error repeats, in characters.
const SHOWN: usize = 64;

/// What tabs may use, so that they look as the inspector does.
const STYLES: &str = include_str!("tab.css");

/// A file for everybody.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum File<'a> {
    /// Of the inspector's own page, which there is none of.
    Page(&'a str),
    /// The shared styles.
    Styles,
    /// Of a tab.
    OfTab {
        /// The tab.
        id: &'a str,
        /// The path in its folder.
        path: &'a str,
    },
}

impl<'a> File<'a> {
    /// The file of a path within an actor, if it is for one.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        if path == "/inspector/tab.css" {
            return Some(Self::Styles);
        }
        if let Some(rest) = path.strip_prefix("/inspector/ui")
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return Some(Self::Page(rest.strip_prefix('/').unwrap_or_default()));
        }
        let rest = path.strip_prefix(TABS)?;
        let (id, path) = rest.split_once('/').unwrap_or((rest, ""));
        Some(Self::OfTab { id, path })
    }
}

/// Answers a request for a file.
///
/// # Errors
///
/// `inspector/*` where there is none.
pub(super) async fn answer(
    shared: &Shared,
    name: &ActorName,
    file: File<'_>,
    head: &Parts,
) -> Result<Response> {
    let mut response = match file {
        File::Page(path) => {
            return Err(InspectorError::UiAssetNotFound { path: shown(path) }.into());
        }
        File::Styles => body(StatusCode::OK, "text/css; charset=utf-8", STYLES.into()),
        File::OfTab { id, path } => {
            let config = shared.host.config(name).unwrap_or_default();
            let tab = config.inspector_tabs.iter().find(|tab| tab.id == id && !tab.hidden);
            let source = tab.and_then(|tab| tab.source.as_deref());
            let Some(source) = source else {
                return Err(InspectorError::TabNotFound { id: shown(id) }.into());
            };
            let found = found(Path::new(source), id, path).await?;
            serve(&found, head).await.ok_or_else(|| missing(id, path))?
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// The file of a path in a folder, wherever that is by now. Links may lead anywhere within
/// the folder and nowhere else.
async fn found(folder: &Path, id: &str, path: &str) -> Result<PathBuf> {
    let root = tokio::fs::canonicalize(folder).await.map_err(|_| missing(id, path))?;
    let path = percent_decode(path).map_err(|_| invalid("the path is not percent-encoded"))?;
    let mut asked = root.clone();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        // A backslash and a colon lead elsewhere on some systems.
        if matches!(segment, "." | "..") || segment.contains(['\\', ':', '\0']) {
            return Err(invalid("the path leads out of the folder of the tab"));
        }
        asked.push(segment);
    }
    if path.is_empty() || path.ends_with('/') {
        asked.push(INDEX);
    }
    let found = tokio::fs::canonicalize(&asked).await.map_err(|_| missing(id, &path))?;
    if !found.starts_with(&root) {
        return Err(invalid("the path leads out of the folder of the tab"));
    }
    let is_file = tokio::fs::metadata(&found).await.is_ok_and(|found| found.is_file());
    if is_file { Ok(found) } else { Err(missing(id, &path)) }
}

async fn serve(file: &Path, head: &Parts) -> Option<Response> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    request.headers_mut().clone_from(&head.headers);
    let response = match TowerToHyperService::new(ServeFile::new(file)).call(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    };
    (response.status() != StatusCode::NOT_FOUND).then_some(response)
}

fn missing(id: &str, path: &str) -> Error {
    InspectorError::TabAssetNotFound { id: shown(id), path: shown(path) }.into()
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_or_none() {
        let tab = |id, path| Some(File::OfTab { id, path });

        assert_eq!(File::of("/inspector/tab.css"), Some(File::Styles));
        assert_eq!(File::of("/inspector/ui"), Some(File::Page("")));
        assert_eq!(File::of("/inspector/ui/a/b.js"), Some(File::Page("a/b.js")));
        assert_eq!(File::of("/inspector/uix"), None);
        assert_eq!(File::of("/inspector/custom-tabs/t"), tab("t", ""));
        assert_eq!(File::of("/inspector/custom-tabs/t/a/b.js"), tab("t", "a/b.js"));
        assert_eq!(File::of("/inspector/state"), None);
    }

    #[tokio::test]
    async fn a_file_is_found_within_its_folder_and_nowhere_else() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tab");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        for (path, text) in [("tab/index.html", "home"), ("tab/sub/a b.js", "b"), ("secret", "no")]
        {
            std::fs::write(parent.path().join(path), text).unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(parent.path().join("secret"), folder.join("out")).unwrap();
            symlink(folder.join("index.html"), folder.join("in")).unwrap();
        }
        let code = |path: &'static str| {
            let folder = folder.clone();
            async move {
                match found(&folder, "t", path).await {
                    Ok(found) => std::fs::read_to_string(found).unwrap(),
                    Err(error) => error.code.to_string(),
                }
            }
        };

        assert_eq!(code("").await, "home");
        assert_eq!(code("index.html").await, "home");
        assert_eq!(code("sub/a%20b.js").await, "b");
        for path in ["sub", "sub/", "none.js"] {
            assert_eq!(code(path).await, "custom_tab_asset_not_found", "{path}");
        }
        for path in ["../secret", "%2e%2e/secret", "sub/..%2f..%2fsecret", ".", "a\\b", "%zz"] {
            assert_eq!(code(path).await, "invalid_request", "{path}");
        }
        if cfg!(unix) {
            assert_eq!(code("out").await, "invalid_request");
            assert_eq!(code("in").await, "home");
        }
    }
}
