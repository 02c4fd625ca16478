//! Who may call (invariants 5 and 6 of the gateway).
//!
//! The danger of a server on loopback is the browser beside it: any page can have it send
//! requests there. A page of another origin says so in `origin`; one whose name was made to
//! lead to loopback after it was loaded (DNS rebinding) is of the same origin for the
//! browser, but then the name is in `host`.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

use super::options::GatewayOptions;
use crate::protocol::manager::ManagerError;

/// Whether requests with this head may be answered at all.
///
/// # Errors
///
/// [`ManagerError::Forbidden`], with the origin or the host that is not allowed.
pub(super) fn admit(
    options: &GatewayOptions,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ManagerError> {
    if options.application_only {
        // Who may call an author's own server is the author's matter.
        return Ok(());
    }
    if options.token.is_some() {
        // No page knows the token unless it may call.
        return Ok(());
    }
    let host = only(headers, header::HOST.as_str()).unwrap_or_default();
    for named in [Some(host), uri.authority().map(|authority| authority.as_str())] {
        if let Some(named) = named
            && !is_allowed_host(options, named)
        {
            return Err(forbidden(named));
        }
    }
    if is_from_elsewhere(headers) {
        return Err(forbidden("a page of another site"));
    }
    if headers.contains_key(header::ORIGIN) {
        // One that is no text, or comes twice, is nobody's.
        let origin = only(headers, header::ORIGIN.as_str()).unwrap_or_default();
        let is_known = options.origins.iter().any(|known| known == origin)
            || (options.pages_of_this_machine && is_of_this_machine(origin));
        if !is_same_origin(origin, host) && !is_known {
            return Err(forbidden(origin));
        }
    }
    Ok(())
}

/// Whether a browser says that the page of another site has it send this without an
/// origin, such as for an image. Following a link to here is no such request.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let is = |name, value| only(headers, name) == Some(value);
    let is_elsewhere = is("sec-fetch-site", "cross-site") || is("sec-fetch-site", "same-site");
    is_elsewhere && !is("sec-fetch-mode", "navigate") && !headers.contains_key(header::ORIGIN)
}

/// Whether a request has the token, if one is needed.
///
/// # Errors
///
/// [`ManagerError::Unauthorized`].
pub(super) fn authenticate(
    options: &GatewayOptions,
    given: Option<&str>,
) -> Result<(), ManagerError> {
    match &options.token {
        Some(token) if !token.is(given.unwrap_or_default()) => Err(ManagerError::Unauthorized),
        _ => Ok(()),
    }
}

/// What stands behind `Bearer` in `authorization`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The value of a header that is there once and is text.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn is_allowed_host(options: &GatewayOptions, authority: &str) -> bool {
    let host = without_port(authority);
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || options.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
}

/// Only host and port are compared: which scheme a page came by, what stands in front of
/// the gateway knows alone.
fn is_same_origin(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| !host.is_empty() && authority.eq_ignore_ascii_case(host))
}

/// Whether a page comes from a server of this machine. No page of another can name an address
/// of loopback or `localhost` as its origin.
fn is_of_this_machine(origin: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| {
        let host = without_port(authority);
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        address.unwrap_or(host).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || host.eq_ignore_ascii_case("localhost")
    })
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn forbidden(from: &str) -> ManagerError {
    ManagerError::Forbidden { from: from.chars().take(128).collect() }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::gateway::Token;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut out = HeaderMap::new();
        for (name, value) in pairs {
            out.append(*name, HeaderValue::from_str(value).unwrap());
        }
        out
    }

    fn admits(options: &GatewayOptions, uri: &str, pairs: &[(&'static str, &str)]) -> bool {
        admit(options, &uri.parse().unwrap(), &headers(pairs)).is_ok()
    }

    fn options() -> GatewayOptions {
        GatewayOptions {
            origins: vec!["https://app.example".into()],
            hosts: vec!["box.lan".into()],
            ..GatewayOptions::default()
        }
    }

    #[test]
    fn a_host_is_an_address_or_localhost_or_configured() {
        for host in [
            "127.0.0.1:6420",
            "127.0.0.1",
            "[::1]:6420",
            "[::1]",
            "localhost:1",
            "LOCALHOST",
            "Box.lan:80",
        ] {
            assert!(admits(&options(), "/", &[("host", host)]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "localhost:a",
            "::1:x",
            "[::1",
        ] {
            assert!(!admits(&options(), "/", &[("host", host)]), "{host}");
        }
        assert!(!admits(&options(), "/", &[]));
        assert!(!admits(&options(), "/", &[("host", "localhost"), ("host", "localhost")]));
        assert!(!admits(&options(), "http://evil.example/", &[("host", "localhost")]));
    }

    #[test]
    fn an_origin_is_absent_or_the_hosts_or_configured() {
        let admits =
            |origin| admits(&options(), "/", &[("host", "localhost:1"), ("origin", origin)]);

        for origin in ["http://localhost:1", "https://LOCALHOST:1", "https://app.example"] {
            assert!(admits(origin), "{origin}");
        }
        for origin in [
            "",
            "null",
            "localhost:1",
            "http://localhost",
            "http://localhost:12",
            "https://app.example.evil",
            "http://app.example",
        ] {
            assert!(!admits(origin), "{origin}");
        }
        let twice =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert!(admit(&options(), &Uri::default(), &headers(&twice)).is_err());
    }

    #[test]
    fn with_a_token_every_page_may_ask_and_only_who_has_it_is_answered() {
        let options = GatewayOptions { token: Token::new("t"), ..options() };
        let pairs = [("host", "evil.example"), ("origin", "http://evil.example")];

        assert!(admits(&options, "/", &pairs));
        assert_eq!(authenticate(&options, Some("t")), Ok(()));
        for other in [None, Some(""), Some("u"), Some("tt")] {
            assert_eq!(authenticate(&options, other), Err(ManagerError::Unauthorized), "{other:?}");
        }
        assert_eq!(authenticate(&GatewayOptions::default(), None), Ok(()));
    }

    #[test]
    fn a_bearer_is_read_whatever_the_case_of_its_scheme() {
        let bearer = |value| bearer(&headers(&[("authorization", value)])).map(str::to_owned);

        assert_eq!(bearer("Bearer t k").as_deref(), Some("t k"));
        assert_eq!(bearer("bearer t").as_deref(), Some("t"));
        assert_eq!(bearer("Basic t"), None);
        assert_eq!(bearer("t"), None);
    }

    #[test]
    fn pages_of_other_servers_of_this_machine_may_call_where_that_is_asked_for() {
        let strict = options();
        let open = GatewayOptions { pages_of_this_machine: true, ..options() };
        for (origin, is_here) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:5173", true),
            ("http://LOCALHOST", true),
            ("http://localhost.evil.example", false),
            ("http://evil.example:3000", false),
            ("http://192.168.1.7:3000", false),
            ("http://127.0.0.1.evil.example", false),
            ("null", false),
        ] {
            let head = [("host", "127.0.0.1:6420"), ("origin", origin)];

            assert!(!admits(&strict, "/", &head), "{origin}");
            assert_eq!(admits(&open, "/", &head), is_here, "{origin}");
        }
    }
}
