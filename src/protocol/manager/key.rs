//! Keys as clients write them (§6.1, §6.4).

use crate::error::InvalidArgument;
use crate::ids::{ActorKey, KeyPart, MAX_KEY_LEN};

/// The key that is shown as `text`: parts joined by `/`, in which `\/` is a slash, `\\` a
/// backslash and `\0` alone an empty part. `/` and nothing at all are the key without
/// parts. Any other backslash is one. Parts are texts: a number that is shown cannot be
/// told from its digits.
///
/// # Errors
///
/// [`InvalidArgument`] of a key that is too long, or has more than 1,024 parts.
pub fn parse_key(text: &str) -> Result<ActorKey, InvalidArgument> {
    if text.is_empty() || text == "/" {
        return ActorKey::new(Vec::new());
    }
    let mut parts = vec![];
    let mut part = String::new();
    // Whether the part is `\0` so far and nothing else.
    let mut shown_empty = false;
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        let was_empty = part.is_empty() && !shown_empty;
        if std::mem::take(&mut shown_empty) && char != '/' {
            part.push_str("\\0");
        }
        match (char, rest.as_str().chars().next()) {
            ('/', _) => push(&mut parts, std::mem::take(&mut part))?,
            ('\\', Some(escaped @ ('/' | '\\'))) => {
                part.push(escaped);
                rest.next();
            }
            ('\\', Some('0')) if was_empty => {
                shown_empty = true;
                rest.next();
            }
            (char, _) => part.push(char),
        }
    }
    push(&mut parts, part)?;
    ActorKey::new(parts)
}

/// The key whose parts are joined by commas in `text`; nothing at all is the key without
/// parts, so that a single empty part cannot be written.
///
/// # Errors
///
/// As [`parse_key`].
pub(in crate::protocol) fn split_key(text: &str) -> Result<ActorKey, InvalidArgument> {
    let mut parts = vec![];
    if !text.is_empty() {
        text.split(',').try_for_each(|part| push(&mut parts, part.to_owned()))?;
    }
    ActorKey::new(parts)
}

/// Every part costs memory, an empty one, too. As the key is shown, parts have a byte
/// between them, so more than this do not fit into what a key may have.
fn push(parts: &mut Vec<KeyPart>, part: String) -> Result<(), InvalidArgument> {
    if parts.len() >= MAX_KEY_LEN {
        return Err(InvalidArgument {
            what: "actor key",
            value: format!("of more than {MAX_KEY_LEN} parts"),
            reason: format!("the limit is {MAX_KEY_LEN}"),
        });
    }
    parts.push(KeyPart::String(part));
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(parts: &[&str]) -> ActorKey {
        ActorKey::new(parts.iter().map(|part| KeyPart::String((*part).into())).collect()).unwrap()
    }

    /// §6.1.
    #[test]
    fn a_key_is_read_as_it_is_shown() {
        let cases: [(&str, &[&str]); 12] = [
            ("", &[]),
            ("/", &[]),
            ("a/b", &["a", "b"]),
            (r"\0", &[""]),
            (r"a\/b", &["a/b"]),
            (r"a\\b", &[r"a\b"]),
            (r"a\/b/\0/c\/d", &["a/b", "", "c/d"]),
            (r"a\", &[r"a\"]),
            (r"a\b", &[r"a\b"]),
            (r"a\0", &[r"a\0"]),
            (r"\0a", &[r"\0a"]),
            ("a//b", &["a", "", "b"]),
        ];

        for (text, parts) in cases {
            assert_eq!(parse_key(text), Ok(key(parts)), "{text}");
        }
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        assert!(parse_key(&"a".repeat(129)).is_err());
        assert!(split_key(&"a".repeat(129)).is_err());
        assert!(parse_key(&"/".repeat(1_023)).is_ok());
        assert!(split_key(&",".repeat(1_023)).is_ok());
        for refused in [parse_key(&"/".repeat(1_024)), split_key(&",".repeat(1_024))] {
            assert!(refused.unwrap_err().to_string().contains("1024 parts"));
        }
    }

    proptest! {
        #[test]
        fn any_key_is_read_back(parts in proptest::collection::vec(r"[a/\\0é]{0,6}", 0..6)) {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let key = key(&parts);

            prop_assert_eq!(parse_key(&key.to_string()), Ok(key));
        }
    }
}
