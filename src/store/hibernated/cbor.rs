//! The little CBOR that the rows of connections need: lists and maps of texts, readable
//! to whoever looks at the tables.

/// Bytes that are not what is written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not CBOR of the expected shape")]
pub(super) struct Malformed;

const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;

/// A list of texts.
pub(super) fn of_texts(texts: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    head(&mut out, ARRAY, texts.len());
    for text in texts {
        push(&mut out, text);
    }
    out
}

/// A map of texts to texts.
pub(super) fn of_pairs(pairs: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    head(&mut out, MAP, pairs.len());
    for (key, value) in pairs {
        push(&mut out, key);
        push(&mut out, value);
    }
    out
}

fn push(out: &mut Vec<u8>, text: &str) {
    head(out, TEXT, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// The kind of a value and a length, in the shortest form.
fn head(out: &mut Vec<u8>, kind: u8, len: usize) {
    let kind = kind << 5;
    if let Ok(short @ 0..=23) = u8::try_from(len) {
        out.push(kind | short);
    } else if let Ok(byte) = u8::try_from(len) {
        out.extend([kind | 24, byte]);
    } else if let Ok(two) = u16::try_from(len) {
        out.push(kind | 25);
        out.extend(two.to_be_bytes());
    } else if let Ok(four) = u32::try_from(len) {
        out.push(kind | 26);
        out.extend(four.to_be_bytes());
    } else {
        out.push(kind | 27);
        out.extend((len as u64).to_be_bytes());
    }
}

/// Reads what [`of_texts`] wrote.
pub(super) fn texts(bytes: &[u8]) -> Result<Vec<String>, Malformed> {
    let mut rest = bytes;
    let count = take_head(&mut rest, ARRAY)?;
    // Not allocated ahead: the count may be anything.
    let texts = (0..count).map(|_| take_text(&mut rest)).collect::<Result<_, _>>()?;
    rest.is_empty().then_some(texts).ok_or(Malformed)
}

/// Reads what [`of_pairs`] wrote.
pub(super) fn pairs(bytes: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
    let mut rest = bytes;
    let count = take_head(&mut rest, MAP)?;
    let mut pair = |_| Ok((take_text(&mut rest)?, take_text(&mut rest)?));
    let pairs = (0..count).map(&mut pair).collect::<Result<_, _>>()?;
    rest.is_empty().then_some(pairs).ok_or(Malformed)
}

fn take_text(rest: &mut &[u8]) -> Result<String, Malformed> {
    let len = usize::try_from(take_head(rest, TEXT)?).map_err(|_| Malformed)?;
    let text = take(rest, len)?;
    String::from_utf8(text.to_vec()).map_err(|_| Malformed)
}

fn take_head(rest: &mut &[u8], kind: u8) -> Result<u64, Malformed> {
    let first = take(rest, 1)?[0];
    if first >> 5 != kind {
        return Err(Malformed);
    }
    let len = match first & 0x1f {
        short @ 0..=23 => return Ok(short.into()),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return Err(Malformed),
    };
    Ok(take(rest, len)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
    let (taken, left) = rest.split_at_checked(len).ok_or(Malformed)?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_are_the_bytes_that_the_standard_names() {
        assert_eq!(of_texts(&["a".into(), "bc".into()]), b"\x82\x61a\x62bc");
        assert_eq!(of_pairs(&[("k".into(), "v".into())]), b"\xa1\x61k\x61v");
        assert_eq!(of_texts(&["x".repeat(24)])[..3], [0x81, 0x78, 24]);
        assert_eq!(of_texts(&["x".repeat(256)])[..4], [0x81, 0x79, 1, 0]);
    }

    proptest::proptest! {
        #[test]
        fn what_was_written_is_read_again(
            texts_in in proptest::collection::vec(".{0,40}", 0..40),
            pairs_in in proptest::collection::vec((".{0,9}", ".{0,300}"), 0..30),
        ) {
            proptest::prop_assert_eq!(texts(&of_texts(&texts_in)).unwrap(), texts_in);
            proptest::prop_assert_eq!(pairs(&of_pairs(&pairs_in)).unwrap(), pairs_in);
        }

        #[test]
        fn other_bytes_are_refused_or_read_but_never_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
        ) {
            let _ = (texts(&bytes), pairs(&bytes));
        }
    }

    #[test]
    fn a_length_beyond_the_bytes_is_refused() {
        assert_eq!(texts(&[0x9b, 255, 255, 255, 255, 255, 255, 255, 255]), Err(Malformed));
        assert_eq!(texts(b"\x81\x62a"), Err(Malformed));
        assert_eq!(texts(b"\x80\x00"), Err(Malformed));
        assert_eq!(pairs(b"\x80"), Err(Malformed));
    }
}
