//! What clients put behind the question mark of `GET /actors`.

use super::{ManagerError, parse_key};
use crate::ids::ActorKey;
use crate::protocol::form_decode;

/// The most ids of one query.
const MAX_IDS: usize = 32;

/// The most actors of a page, unless a client asks for fewer.
const DEFAULT_LIMIT: usize = 100;

/// Which actors a client asks for.
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
        name: String,
        /// Its key.
        key: ActorKey,
    },
    /// All of a name, the newest first.
    Name {
        /// Their type.
        name: String,
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

/// The parameters of a query in their order, decoded.
///
/// # Errors
///
/// [`ManagerError::BadRequest`] of text that is not percent-encoded.
pub fn parameters(query: &str) -> Result<Vec<(String, String)>, ManagerError> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((form_decode(name)?, form_decode(value)?))
        })
        .collect()
}

impl ActorsQuery {
    /// Reads a query, without the question mark.
    ///
    /// # Errors
    ///
    /// [`ManagerError::BadRequest`] of a parameter that is unknown, comes twice or cannot be
    /// read, [`ManagerError::InvalidInput`] of parameters that do not go together.
    pub fn parse(query: &str) -> Result<Self, ManagerError> {
        let mut given = Given::default();
        for (name, value) in parameters(query)? {
            let field = match &*name {
                "namespace" => &mut given.namespace,
                "name" => &mut given.name,
                "key" => &mut given.key,
                "actor_ids" => &mut given.actor_ids,
                "include_destroyed" => &mut given.include_destroyed,
                "limit" => &mut given.limit,
                "cursor" => &mut given.cursor,
                _ => return Err(ManagerError::bad(format!("unknown parameter `{name}`"))),
            };
            if field.replace(value).is_some() {
                return Err(ManagerError::bad(format!("the parameter `{name}` comes twice")));
            }
        }
        given.checked()
    }
}

/// The parameters as text.
#[derive(Default)]
struct Given {
    namespace: Option<String>,
    name: Option<String>,
    key: Option<String>,
    actor_ids: Option<String>,
    include_destroyed: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

impl Given {
    fn checked(self) -> Result<ActorsQuery, ManagerError> {
        let invalid = |reason| ManagerError::InvalidInput { reason };
        let limit = match self.limit {
            None => DEFAULT_LIMIT,
            Some(text) => text
                .parse()
                .map_err(|_| ManagerError::bad(format!("`limit` is no number: `{text}`")))?,
        };
        let include_destroyed = match self.include_destroyed.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(text) => {
                return Err(ManagerError::bad(format!(
                    "`include_destroyed` is neither `true` nor `false`: `{text}`"
                )));
            }
        };
        let wanted = match (self.actor_ids, self.name, self.key) {
            (Some(ids), None, None) => {
                let ids: Vec<String> =
                    ids.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
                if ids.len() > MAX_IDS {
                    return Err(invalid("at most 32 actors can be asked for by their ids"));
                }
                Wanted::Ids(ids)
            }
            (Some(_), _, _) => return Err(invalid("`actor_ids` excludes `name` and `key`")),
            (None, Some(name), Some(key)) => {
                Wanted::Key { name, key: parse_key(&key).map_err(ManagerError::bad)? }
            }
            (None, Some(name), None) => {
                Wanted::Name { name, page: Page { limit, cursor: self.cursor } }
            }
            (None, None, Some(_)) => return Err(invalid("`key` needs `name`")),
            (None, None, None) => return Err(invalid("`name` or `actor_ids` is needed")),
        };
        Ok(ActorsQuery { namespace: self.namespace, wanted, include_destroyed })
    }
}
