//! How a gateway is opened.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use super::application::Application;
use crate::ids::MAX_INPUT_LEN;
use crate::protocol::Disclosure;
use crate::time::Duration;

/// The longest body that makes an actor, in bytes: the largest input in base64, and 64 KiB
/// for what stands beside it.
pub const MAX_CREATE_BODY: usize = MAX_INPUT_LEN.div_ceil(3) * 4 + 64 * 1024;

/// How a gateway is opened.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Where it listens; port 0 is any that is free. Without a token it has to be a
    /// loopback address.
    pub address: SocketAddr,
    /// What clients have to authenticate with; `None` lets everybody in who reaches it, as
    /// far as the rule for loopback goes.
    pub token: Option<Token>,
    /// The origins, such as `https://app.example`, whose pages may call without a token.
    pub origins: Vec<String>,
    /// Whether pages may call without a token that come from any server of this machine.
    pub pages_of_this_machine: bool,
    /// The names, without a port, by which it may be called without a token; addresses and
    /// `localhost` always may.
    pub hosts: Vec<String>,
    /// The only namespace that there is.
    pub namespace: String,
    /// The pool that actors are in beside the usual one, for tools that set up an endpoint.
    /// Without it they are not served, and pools mean nothing.
    pub pool: Option<String>,
    /// A folder whose files are served before anything else, to everybody whose requests
    /// are answered at all.
    pub public_dir: Option<PathBuf>,
    /// What answers requests that are for nobody else, without a token.
    pub application: Option<Arc<dyn Application>>,
    /// Whether there is nothing but files and the application: an author's own server, which
    /// anybody may call.
    pub application_only: bool,
    /// A token that lets dashboards look into any actor, in the place of each one's own.
    pub inspector_token: Option<String>,
    /// Whether the author's side answers requests of dashboards itself, those for files left out.
    pub inspects_in_runtime: bool,
    /// How much of an error clients read.
    pub disclosure: Disclosure,
    /// How much, and for how long.
    pub bounds: Bounds,
}

impl Default for GatewayOptions {
    /// On loopback, port 6420, without a token.
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6420),
            token: None,
            origins: Vec::new(),
            pages_of_this_machine: false,
            hosts: Vec::new(),
            namespace: "default".to_owned(),
            pool: None,
            public_dir: None,
            application: None,
            application_only: false,
            inspector_token: None,
            inspects_in_runtime: false,
            disclosure: Disclosure::Public,
            bounds: Bounds::default(),
        }
    }
}

/// How much a client may send, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most connections at a time; further ones wait to be accepted. At least one. Each
    /// may hold a body, of up to [`MAX_CREATE_BODY`] if it makes an actor.
    pub connections: usize,
    /// The longest head of a request, URL included, in bytes.
    pub head: usize,
    /// How long a head may take, from the beginning of the connection or the answer before
    /// it: so a connection without requests ends after this, too.
    pub head_timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what it is sent.
    pub write_timeout: Duration,
    /// The most sockets that are not HTTP any more. Further ones are closed.
    pub sockets: usize,
    /// How long an actor may take to accept the client of a socket.
    pub open_timeout: Duration,
    /// After how long a silent client of a socket is asked for a sign of life, and how long
    /// it has for that.
    pub ping_timeout: Duration,
}

impl Default for Bounds {
    /// 1,024 connections, 64 KiB, a minute for a head, 16,384 sockets, and half a minute for
    /// all else.
    fn default() -> Self {
        Self {
            connections: 1_024,
            head: 64 * 1024,
            head_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            sockets: 16_384,
            open_timeout: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(30),
        }
    }
}

/// What a client authenticates with.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Takes a token; `None` of an empty one, which everybody would know.
    pub fn new(token: impl Into<String>) -> Option<Self> {
        let token = token.into();
        (!token.is_empty()).then_some(Self(token))
    }

    /// Whether a client has given this token. How long that takes depends on what was given
    /// alone (invariant 6 of the gateway).
    pub fn is(&self, given: &str) -> bool {
        let (token, given) = (self.0.as_bytes(), given.as_bytes());
        let differs = given.iter().zip(token.iter().cycle()).fold(
            token.len() ^ given.len(),
            |differs, (a, b)| {
                // Or else a compiler may leave at the first difference.
                std::hint::black_box(differs | usize::from(a ^ b))
            },
        );
        differs == 0
    }
}

/// Without the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_is_the_token() {
        let token = Token::new("abc").unwrap();

        assert!(token.is("abc"));
        for other in ["", "a", "ab", "abd", "abcabc", "abca", "Abc"] {
            assert!(!token.is(other), "{other}");
        }
        assert!(Token::new("").is_none());
        assert_eq!(format!("{token:?}"), "Token");
    }
}
