//! What the hooks of a connection see of the request that it came by.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderName;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::admission::bearer;
use super::options::Token;
use crate::core::connections::RequestHead;
use crate::protocol::{Offer, header};

/// What tokens are offered as, which no actor is to see: what is stored of a connection
/// holds its headers.
const OFFERED_TOKENS: [&str; 2] = ["rivet_token.", "rivet_inspector_token."];

/// The head of a request as an actor sees it: the path within it, and the headers with
/// those of the same name joined, without what the client authenticates with here. What it
/// authenticates with at the actor stays. A byte above ASCII is the character of its
/// number, as the Fetch standard has it.
pub(super) fn of_actor(
    head: &Parts,
    path: &str,
    ray_id: &str,
    token: Option<&Token>,
) -> Arc<RequestHead> {
    let is_ours =
        bearer(&head.headers).is_some_and(|given| token.is_some_and(|token| token.is(given)));
    joined(head, path, ray_id, |name, value| match name.as_str() {
        header::TOKEN => None,
        Offer::HEADER => Some(without_token(&value)),
        _ if name == AUTHORIZATION && is_ours => None,
        _ => Some(value),
    })
}

/// The same where nobody authenticates here: all of it is the author's.
pub(super) fn of_server(head: &Parts, path: &str, ray_id: &str) -> Arc<RequestHead> {
    joined(head, path, ray_id, |_, value| Some(value))
}

fn joined(
    head: &Parts,
    path: &str,
    ray_id: &str,
    shown: impl Fn(&HeaderName, String) -> Option<String>,
) -> Arc<RequestHead> {
    let mut seen = BTreeMap::<&str, String>::new();
    for (name, value) in &head.headers {
        let value = value.as_bytes().iter().map(|&byte| char::from(byte)).collect();
        let Some(value) = shown(name, value) else { continue };
        seen.entry(name.as_str())
            .and_modify(|before| {
                before.push_str(", ");
                before.push_str(&value);
            })
            .or_insert(value);
    }
    seen.entry(header::RAY_ID).or_insert_with(|| ray_id.to_owned());
    let headers = seen.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Arc::new(RequestHead {
        method: head.method.as_str().to_owned(),
        path: path.to_owned(),
        headers,
    })
}

fn without_token(offer: &str) -> String {
    let tokens = offer.split(',').map(str::trim);
    let is_secret = |token: &&str| OFFERED_TOKENS.iter().any(|secret| token.starts_with(secret));
    tokens.filter(|token| !is_secret(token)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(given: &[(&'static str, &'static str)]) -> Parts {
        let mut request = axum::http::Request::new(());
        for (name, value) in given {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        request.into_parts().0
    }

    #[test]
    fn an_actor_sees_all_headers_once_but_no_token_of_the_gateway() {
        let head = headers(&[
            ("x-b", "1"),
            ("x-b", "2"),
            ("authorization", "Bearer t"),
            ("x-rivet-token", "t"),
            (
                "sec-websocket-protocol",
                "rivet, rivet_token.t,rivet_inspector_token.i,rivet_encoding.bare",
            ),
        ]);

        let head = of_actor(&head, "/connect", "ray", Token::new("t").as_ref());

        let expected = [
            ("sec-websocket-protocol", "rivet, rivet_encoding.bare"),
            ("x-b", "1, 2"),
            ("x-rivet-ray-id", "ray"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(head.headers, expected);
        assert_eq!((&*head.method, &*head.path), ("GET", "/connect"));
    }

    #[test]
    fn an_author_s_own_server_gets_all_of_it() {
        let given = [("x-rivet-token", "t"), ("sec-websocket-protocol", "rivet_token.t")];

        let head = of_server(&headers(&given), "/a", "ray");

        for (name, value) in given {
            let pair = (name.to_owned(), value.to_owned());
            assert!(head.headers.contains(&pair), "{:?}", head.headers);
        }
    }

    #[test]
    fn what_a_client_authenticates_with_at_the_actor_reaches_it() {
        let head = headers(&[("authorization", "Bearer mine")]);

        for token in [None, Token::new("t")] {
            let head = of_actor(&head, "/", "ray", token.as_ref());

            assert_eq!(head.headers[0].1, "Bearer mine");
        }
    }
}
