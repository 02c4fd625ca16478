//! Text as URLs write it.

use super::ProtocolError;

/// Reads a segment of a path: `%41` is `A`.
///
/// # Errors
///
/// [`ProtocolError::NotPercentEncoded`] of an escape that is none, and of bytes that are
/// not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, ProtocolError> {
    decode(text, |byte| byte)
}

/// Reads a value of a form or of a query: `%41` is `A` and `+` a space.
///
/// # Errors
///
/// As [`percent_decode`].
pub fn form_decode(text: &str) -> Result<String, ProtocolError> {
    decode(text, |byte| if byte == b'+' { b' ' } else { byte })
}

fn decode(text: &str, plain: impl Fn(u8) -> u8) -> Result<String, ProtocolError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let offset = text.len() - rest.len();
        rest = after;
        if byte != b'%' {
            out.push(plain(byte));
            continue;
        }
        let refused = || ProtocolError::NotPercentEncoded { offset };
        let (&[high, low], after) = after.split_first_chunk().ok_or_else(refused)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(refused);
        out.push((digit(high)? << 4 | digit(low)?) as u8);
        rest = after;
    }
    String::from_utf8(out).map_err(|error| ProtocolError::NotPercentEncoded {
        offset: error.utf8_error().valid_up_to(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_is_a_space_in_a_form_only() {
        assert_eq!(percent_decode("a+b%20%c3%A4"), Ok("a+b ä".into()));
        assert_eq!(form_decode("a+b%2B%c3%A4"), Ok("a b+ä".into()));
    }

    #[test]
    fn an_escape_that_is_none_and_bytes_that_are_no_text_are_refused() {
        let cases = [("%", 0), ("a%4", 1), ("%4g", 0), ("%41%+4", 3), ("a%ff", 1), ("ab%c3", 2)];

        for (text, offset) in cases {
            assert_eq!(
                percent_decode(text),
                Err(ProtocolError::NotPercentEncoded { offset }),
                "{text}"
            );
        }
    }
}
