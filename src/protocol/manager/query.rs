//! What clients put behind the question mark (§6.3).

use super::{ManagerError, parse_key};
use crate::ids::{ActorKey, ActorName};
use crate::protocol::error::shown;
use crate::protocol::form_decode;

/// The most ids of one query.
const MAX_IDS: usize = 32;

/// The most actors of a page, unless a client says how many.
const DEFAULT_LIMIT: usize = 100;

/// Which actors a client asks for, with `GET /actors`.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorsQuery {
    /// The namespace that they have to be in.
    pub namespace: Option<String>,
    /// Which ones.
    pub wanted: Wanted,
    /// Whether those that are gone count, too.
    pub include_destroyed: bool,
}

/// Which actors.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// Those of these ids, 32 at most.
    Ids(Vec<String>),
    /// The one of a name and a key.
    Key {
        /// Its type.
        name: ActorName,
        /// Its key.
        key: ActorKey,
    },
    /// All of a name, the newest first.
    Name {
        /// Their type.
        name: ActorName,
        /// Which of them.
        page: Page,
    },
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The most that are wanted.
    pub limit: usize,
    /// What the page before ended with.
    pub cursor: Option<String>,
}

impl Page {
    fn new(limit: Option<String>, cursor: Option<String>) -> Result<Self, ManagerError> {
        let limit = match limit {
            None => DEFAULT_LIMIT,
            Some(text) => text.parse().map_err(|_| {
                ManagerError::bad(format!("`limit` is no number: `{}`", shown(&text)))
            })?,
        };
        Ok(Self { limit, cursor })
    }
}

/// What all other calls have behind the question mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceQuery {
    /// The namespace that is meant.
    pub namespace: Option<String>,
}

impl NamespaceQuery {
    /// Reads a query, without the question mark.
    ///
    /// # Errors
    ///
    /// [`ManagerError::BadRequest`] of a parameter that is unknown, comes twice or cannot be
    /// read.
    pub fn parse(query: &str) -> Result<Self, ManagerError> {
        let [namespace] = parameters(query, ["namespace"])?;
        Ok(Self { namespace })
    }
}

/// Which part of a list a client asks for, with `GET /actors/names`, `GET /envoys` and
/// `GET /runner-configs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The namespace that is meant.
    pub namespace: Option<String>,
    /// The pool that is meant, where the list has some.
    pub pool: Option<String>,
    /// Which part.
    pub page: Page,
}

impl ListQuery {
    /// Reads a query, without the question mark. `pool` is the parameter with the name of
    /// a pool, if the call has one.
    ///
    /// # Errors
    ///
    /// As [`NamespaceQuery::parse`].
    pub fn parse(query: &str, pool: Option<&'static str>) -> Result<Self, ManagerError> {
        let others = ["namespace", "limit", "cursor"];
        let (pool, [namespace, limit, cursor]) = match pool {
            None => (None, parameters(query, others)?),
            Some(name) => {
                let [pool, rest @ ..] = parameters(query, [name, others[0], others[1], others[2]])?;
                (pool, rest)
            }
        };
        Ok(Self { namespace, pool, page: Page::new(limit, cursor)? })
    }
}

impl ActorsQuery {
    /// Reads a query, without the question mark.
    ///
    /// # Errors
    ///
    /// As [`NamespaceQuery::parse`], [`ManagerError::InvalidInput`] of parameters that do
    /// not go together and of a name that no actor can have, and
    /// [`ManagerError::KeyTooLarge`].
    pub fn parse(query: &str) -> Result<Self, ManagerError> {
        let names =
            ["namespace", "name", "key", "actor_ids", "include_destroyed", "limit", "cursor"];
        let [namespace, name, key, ids, include_destroyed, limit, cursor] =
            parameters(query, names)?;
        let page = Page::new(limit, cursor)?;
        let include_destroyed = match include_destroyed.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(text) => {
                return Err(ManagerError::bad(format!(
                    "`include_destroyed` is neither `true` nor `false`: `{}`",
                    shown(text)
                )));
            }
        };
        let name = name.map(ActorName::new).transpose().map_err(ManagerError::invalid)?;
        let wanted = match (ids, name, key) {
            (Some(ids), None, None) => Wanted::ids(&ids)?,
            (Some(_), _, _) => {
                return Err(ManagerError::invalid("`actor_ids` excludes `name` and `key`"));
            }
            (None, Some(name), Some(key)) => {
                Wanted::Key { name, key: parse_key(&key).map_err(ManagerError::KeyTooLarge)? }
            }
            (None, Some(name), None) => Wanted::Name { name, page },
            (None, None, Some(_)) => return Err(ManagerError::invalid("`key` needs `name`")),
            (None, None, None) => {
                return Err(ManagerError::invalid("`name` or `actor_ids` is needed"));
            }
        };
        Ok(ActorsQuery { namespace, wanted, include_destroyed })
    }
}

impl Wanted {
    fn ids(text: &str) -> Result<Self, ManagerError> {
        let ids = text.split(',').filter(|id| !id.is_empty());
        // Counted before they are kept: one of a byte costs more than twenty.
        let count = ids.clone().count();
        if count > MAX_IDS {
            let reason = format!("{count} ids are asked for, the limit is {MAX_IDS}");
            return Err(ManagerError::invalid(reason));
        }
        Ok(Self::Ids(ids.map(str::to_owned).collect()))
    }
}

/// The values of parameters by their names, decoded. Any other parameter is refused, and
/// so is one that comes twice.
fn parameters<const N: usize>(
    query: &str,
    names: [&'static str; N],
) -> Result<[Option<String>; N], ManagerError> {
    let mut values = names.map(|_| None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text| {
            let named = |error| ManagerError::bad(format!("parameter `{}`: {error}", shown(name)));
            form_decode(text).map_err(named)
        };
        let (name, value) = (decoded(name)?, decoded(value)?);
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(ManagerError::bad(format!("unknown parameter `{}`", shown(&name))));
        };
        if values[at].replace(value).is_some() {
            return Err(ManagerError::bad(format!("the parameter `{name}` comes twice")));
        }
    }
    Ok(values)
}
