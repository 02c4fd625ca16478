//! What browsers are told of other origins (§6.7, O§1.3).
//!
//! Whether an origin may call at all is for whoever listens to decide, before this: what
//! is written here lets a browser read the answer.

/// A header and its value.
pub type Header = (&'static str, String);

/// What a browser asks before it sends a request of a page from elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preflight<'a> {
    /// The value of `origin`.
    pub origin: Option<&'a str>,
    /// The value of `access-control-request-method`.
    pub method: Option<&'a str>,
    /// The value of `access-control-request-headers`.
    pub headers: Option<&'a str>,
}

impl Preflight<'_> {
    /// The status and the headers of the gateway's answer, which no actor is asked for.
    pub fn of_gateway(&self) -> (u16, Vec<Header>) {
        let mut out = response(self.origin);
        out.push(("access-control-allow-methods", METHODS.to_owned()));
        out.push(("access-control-allow-headers", self.headers.unwrap_or("*").to_owned()));
        out.push(("access-control-max-age", MAX_AGE.to_owned()));
        (204, out)
    }

    /// The status and the headers of the manager's answer, which repeats what it was asked.
    pub fn of_manager(&self) -> (u16, Vec<Header>) {
        let mut out = response(self.origin);
        out.push(("access-control-allow-methods", self.method.unwrap_or(METHODS).to_owned()));
        out.push(("access-control-allow-headers", self.headers.unwrap_or("*").to_owned()));
        (200, out)
    }
}

/// The methods of the gateway.
const METHODS: &str = "GET, POST, PUT, DELETE, OPTIONS, PATCH";

/// How long a browser keeps an answer, in seconds: a day.
const MAX_AGE: &str = "86400";

/// The headers of every other response, errors included, to a request with this `origin`.
/// An origin is repeated, since `*` is no answer to a request with credentials, and then
/// caches have to tell origins apart.
pub fn response(origin: Option<&str>) -> Vec<Header> {
    let mut out = vec![
        ("access-control-allow-origin", origin.unwrap_or("*").to_owned()),
        ("access-control-allow-credentials", "true".to_owned()),
        ("access-control-expose-headers", "*".to_owned()),
    ];
    if origin.is_some() {
        out.push(("vary", "Origin".to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(headers: Vec<Header>) -> String {
        headers.into_iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    /// §6.7.
    #[test]
    fn an_origin_is_repeated_and_without_one_all_are_meant() {
        assert_eq!(
            text(response(Some("https://a.example"))),
            concat!(
                "access-control-allow-origin: https://a.example\n",
                "access-control-allow-credentials: true\n",
                "access-control-expose-headers: *\n",
                "vary: Origin\n"
            )
        );
        assert_eq!(
            text(response(None)),
            concat!(
                "access-control-allow-origin: *\n",
                "access-control-allow-credentials: true\n",
                "access-control-expose-headers: *\n"
            )
        );
    }

    /// §6.7 and O§1.3.
    #[test]
    fn the_gateway_allows_its_methods_and_the_headers_that_are_asked_for() {
        let asked = Preflight {
            origin: Some("https://a.example"),
            method: Some("POST"),
            headers: Some("content-type,x-rivet-encoding"),
        };

        let (status, headers) = asked.of_gateway();
        assert_eq!(status, 204);
        assert_eq!(
            text(headers),
            concat!(
                "access-control-allow-origin: https://a.example\n",
                "access-control-allow-credentials: true\n",
                "access-control-expose-headers: *\n",
                "vary: Origin\n",
                "access-control-allow-methods: GET, POST, PUT, DELETE, OPTIONS, PATCH\n",
                "access-control-allow-headers: content-type,x-rivet-encoding\n",
                "access-control-max-age: 86400\n"
            )
        );
        let (_, headers) = Preflight::default().of_gateway();
        assert!(headers.contains(&("access-control-allow-headers", "*".into())));
    }

    /// §6.7 and O§1.3.
    #[test]
    fn the_manager_repeats_what_it_is_asked() {
        let asked = Preflight {
            origin: Some("https://a.example"),
            method: Some("PUT"),
            headers: Some("authorization"),
        };

        let (status, headers) = asked.of_manager();

        assert_eq!(status, 200);
        assert!(headers.contains(&("access-control-allow-origin", "https://a.example".into())));
        assert!(headers.contains(&("access-control-allow-methods", "PUT".into())));
        assert!(headers.contains(&("access-control-allow-headers", "authorization".into())));
        assert!(headers.contains(&("access-control-allow-credentials", "true".into())));
    }
}
