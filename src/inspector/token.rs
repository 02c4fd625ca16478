//! The token that lets a dashboard look into an actor: made of the actor's id and a secret of
//! the folder, so nothing is stored of it, and it stays as long as both do.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::InspectorError;
use crate::error::Error;
use crate::ids::ActorId;

/// How long the secret of a folder is, in bytes.
pub const SECRET_LEN: usize = 32;

/// What stands in front of the id, so that no other use of the secret gives a token.
const PURPOSE: &[u8] = b"greenroom inspector ";

/// The secret of a folder. Whoever has it has the token of every actor there.
#[derive(Clone)]
pub struct Secret([u8; SECRET_LEN]);

impl Secret {
    /// Takes random bytes.
    pub fn new(bytes: [u8; SECRET_LEN]) -> Self {
        Self(bytes)
    }

    /// Whether a dashboard that gives `token` may look into an actor; `instead` as in
    /// [`Secret::accepted`].
    ///
    /// # Errors
    ///
    /// [`unauthorized`].
    pub fn check(
        &self,
        actor: ActorId,
        token: Option<&str>,
        instead: Option<&str>,
    ) -> Result<(), Error> {
        if token.is_some_and(|given| is_same(&self.accepted(actor, instead), given)) {
            return Ok(());
        }
        Err(unauthorized())
    }

    /// The token that lets a dashboard look into an actor: `instead`, if there is one for all
    /// actors.
    pub fn accepted(&self, actor: ActorId, instead: Option<&str>) -> String {
        let instead = instead.filter(|token| !token.is_empty());
        instead.map_or_else(|| self.token(actor), str::to_owned)
    }

    /// The actor's own: 43 characters that an URL may have.
    pub fn token(&self, actor: ActorId) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(PURPOSE);
        mac.update(&actor.to_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }
}

/// Without the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Whether a dashboard has given this token. How long that takes depends on what was given
/// alone. An empty one is nobody's.
pub fn is_same(token: &str, given: &str) -> bool {
    let (token, given) = (token.as_bytes(), given.as_bytes());
    if token.is_empty() {
        return false;
    }
    let differs = given.iter().zip(token.iter().cycle()).fold(
        token.len() ^ given.len(),
        |differs, (a, b)| {
            // Or else a compiler may leave at the first difference.
            std::hint::black_box(differs | usize::from(a ^ b))
        },
    );
    differs == 0
}

/// `inspector/unauthorized` as the author's side is told it: neither public nor with a status,
/// as the published runtime has it. Who answers over HTTP chooses the status.
pub fn unauthorized() -> Error {
    let mut error = Error::from(InspectorError::Unauthorized);
    (error.public, error.status_code) = (None, None);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_actor_and_one_folder() {
        let actor = |byte| ActorId::from_bytes([byte; 16]);
        let (here, there) = (Secret::new([1; 32]), Secret::new([2; 32]));

        let token = here.token(actor(7));

        assert_eq!(token.len(), 43);
        assert_eq!(URL_SAFE_NO_PAD.decode(&token).unwrap().len(), 32);
        assert_eq!(here.token(actor(7)), token);
        assert_ne!(here.token(actor(8)), token);
        assert_ne!(there.token(actor(7)), token);
        assert_eq!(format!("{here:?}"), "Secret");
    }

    #[test]
    fn only_the_very_token_is_the_token() {
        assert!(is_same("abc", "abc"));
        for other in ["", "a", "ab", "abd", "abcabc", "abca", "Abc"] {
            assert!(!is_same("abc", other), "{other}");
        }
        assert!(!is_same("", ""));
    }
}
