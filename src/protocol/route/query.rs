//! The parameters `rvt-…`, by which a client asks for an actor of a name and a key (§6.4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{ActorQuery, Creation, Find, RouteError};
use crate::ids::ActorName;
use crate::protocol::error::shown;
use crate::protocol::manager::{CrashPolicy, split_key};
use crate::protocol::{Payload, ProtocolError, form_decode};

/// What the gateway's own parameters begin with.
const PREFIX: &str = "rvt-";

/// How many of them there are.
const KNOWN: usize = 10;

/// The parameters in the text of a query.
#[derive(Default)]
pub(super) struct Parameters {
    namespace: Option<String>,
    method: Option<String>,
    key: Option<String>,
    /// Under the name that the client gave it.
    pool: Option<(&'static str, String)>,
    input: Option<String>,
    region: Option<String>,
    crash_policy: Option<String>,
    /// A secret.
    pub token: Option<String>,
    skip_ready_wait: Option<String>,
}

/// The parts of a query that are the gateway's, decoded, and the rest of it, byte for byte
/// and in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// Name and value of the gateway's parameters; the value still encoded. One more than
    /// there are is the last: by then one is unknown or comes twice, whatever follows.
    ours: Vec<(String, &'a str)>,
    /// The rest, for the actor.
    pub rest: String,
}

impl<'a> Split<'a> {
    /// Takes a query apart. A name is decoded first, so that no parameter of the gateway
    /// reaches an actor in disguise; one that cannot be decoded is the actor's.
    pub fn new(query: &'a str) -> Self {
        let mut split = Self::default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let ours = match form_decode(name) {
                Ok(name) if name.starts_with(PREFIX) => name,
                Err(_) if name.starts_with(PREFIX) => name.to_owned(),
                _ => {
                    if !split.rest.is_empty() {
                        split.rest.push('&');
                    }
                    split.rest.push_str(pair);
                    continue;
                }
            };
            if split.ours.len() <= KNOWN {
                split.ours.push((ours, value));
            }
        }
        split
    }

    /// Whether the query asks for an actor.
    pub fn is_ours(&self) -> bool {
        !self.ours.is_empty()
    }

    /// Reads the gateway's part.
    pub fn parameters(&self) -> Result<Parameters, RouteError> {
        let mut given = Parameters::default();
        for (name, value) in &self.ours {
            let (name, field) = match &**name {
                "rvt-namespace" => ("rvt-namespace", &mut given.namespace),
                "rvt-method" => ("rvt-method", &mut given.method),
                "rvt-key" => ("rvt-key", &mut given.key),
                "rvt-runner" => {
                    given.take_pool("rvt-runner", value)?;
                    continue;
                }
                "rvt-pool" => {
                    given.take_pool("rvt-pool", value)?;
                    continue;
                }
                "rvt-input" => ("rvt-input", &mut given.input),
                "rvt-region" => ("rvt-region", &mut given.region),
                "rvt-crash-policy" => ("rvt-crash-policy", &mut given.crash_policy),
                "rvt-token" => ("rvt-token", &mut given.token),
                "rvt-skip-ready-wait" => ("rvt-skip-ready-wait", &mut given.skip_ready_wait),
                _ => return Err(RouteError::UnknownParameter { name: shown(name).to_owned() }),
            };
            if field.replace(decoded(name, value)?).is_some() {
                return Err(RouteError::DuplicateParameter { name });
            }
        }
        Ok(given)
    }
}

fn decoded(name: &str, value: &str) -> Result<String, RouteError> {
    form_decode(value).map_err(|error| not_encoded(&format!("`{name}`"), &error))
}

pub(super) fn not_encoded(part: &str, error: &ProtocolError) -> RouteError {
    let offset = match error {
        ProtocolError::NotPercentEncoded { offset } => *offset,
        _ => 0,
    };
    RouteError::NotPercentEncoded { part: part.to_owned(), offset }
}

impl Parameters {
    fn take_pool(&mut self, name: &'static str, value: &str) -> Result<(), RouteError> {
        match self.pool.replace((name, decoded(name, value)?)) {
            Some(_) => Err(RouteError::DuplicateParameter { name }),
            None => Ok(()),
        }
    }

    /// Whether the actor gets the call before it is ready; `None` if the query does not say.
    pub fn skip_ready_wait(&self) -> Result<Option<bool>, RouteError> {
        self.skip_ready_wait
            .as_deref()
            .map(|value| match value {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err(invalid("rvt-skip-ready-wait", value, "`true`, `1`, `false` or `0`")),
            })
            .transpose()
    }

    /// What is asked for, of actors of a name.
    pub fn query(&self, name: ActorName) -> Result<ActorQuery, RouteError> {
        let namespace = required("rvt-namespace", self.namespace.as_ref())?.clone();
        let find = match required("rvt-method", self.method.as_ref())?.as_str() {
            "get" => self.nothing_to_create()?,
            "getOrCreate" => Find::GetOrCreate(self.creation()?),
            method => return Err(invalid("rvt-method", method, "`get` or `getOrCreate`")),
        };
        let key = split_key(self.key.as_deref().unwrap_or_default());
        let key = key.map_err(RouteError::InvalidKey)?;
        Ok(ActorQuery { namespace, name, key, find })
    }

    fn nothing_to_create(&self) -> Result<Find, RouteError> {
        let given = [
            self.pool.as_ref().map(|(name, _)| *name),
            self.input.as_ref().map(|_| "rvt-input"),
            self.region.as_ref().map(|_| "rvt-region"),
            self.crash_policy.as_ref().map(|_| "rvt-crash-policy"),
        ];
        match given.into_iter().flatten().next() {
            Some(name) => Err(RouteError::NotForGet { name }),
            None => Ok(Find::Get),
        }
    }

    fn creation(&self) -> Result<Creation, RouteError> {
        let pool = self.pool.as_ref().map(|(_, pool)| pool).filter(|pool| !pool.is_empty());
        let crash_policy = match self.crash_policy.as_deref() {
            None | Some("sleep") => CrashPolicy::Sleep,
            Some("restart") => CrashPolicy::Restart,
            Some("destroy") => CrashPolicy::Destroy,
            Some(value) => {
                return Err(invalid("rvt-crash-policy", value, "`sleep`, `restart` or `destroy`"));
            }
        };
        Ok(Creation {
            pool: pool.ok_or(RouteError::MissingPool)?.clone(),
            input: self.input.as_deref().map(input).transpose()?,
            region: self.region.clone(),
            crash_policy,
        })
    }
}

fn input(text: &str) -> Result<Payload, RouteError> {
    let cbor = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|error| RouteError::NotBase64 { reason: error.to_string() })?;
    if cbor.is_empty() {
        // Elsewhere no bytes are `undefined`; a client that has no input says nothing.
        let early = ProtocolError::NotCbor { offset: 0, reason: "it ends early" };
        return Err(RouteError::NotCbor(early));
    }
    Payload::new(cbor.into()).map_err(RouteError::NotCbor)
}

fn required<'a>(name: &'static str, value: Option<&'a String>) -> Result<&'a String, RouteError> {
    value.filter(|value| !value.is_empty()).ok_or(RouteError::MissingParameter { name })
}

fn invalid(name: &'static str, value: &str, expected: &'static str) -> RouteError {
    RouteError::InvalidParameter { name, value: shown(value).to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_parameters_are_kept_than_it_takes_to_refuse_them() {
        let all = [
            "rvt-namespace=n",
            "rvt-method=getOrCreate",
            "rvt-key=k",
            "rvt-runner=p",
            "rvt-input=oA",
            "rvt-region=eu",
            "rvt-crash-policy=sleep",
            "rvt-token=t",
            "rvt-skip-ready-wait=1",
        ]
        .join("&");
        let refused = |query: &str| Split::new(query).parameters().err();

        assert_eq!(refused(&all), None);
        let name = "rvt-key";
        assert_eq!(
            refused(&format!("{all}&{}", "rvt-key=k&".repeat(1_000))),
            Some(RouteError::DuplicateParameter { name })
        );
        let unknown = RouteError::UnknownParameter { name: "rvt-z".into() };
        assert_eq!(refused(&format!("{all}&rvt-z&{all}")), Some(unknown));
        let many = "rvt-z&".repeat(1_000);
        let split = Split::new(&many);
        assert_eq!((split.ours.len(), &*split.rest), (KNOWN + 1, ""));
    }
}
