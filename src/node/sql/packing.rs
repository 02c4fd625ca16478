//! How the values of SQL cross the boundary.
//!
//! A value is a tag and what follows it, numbers little endian: 0 nothing, 1 an integer
//! in eight bytes, 2 a float in eight, 3 text and 4 bytes, each behind its length in four.
//!
//! Bindings are 0 for none, 1 and the values, or 2 and for each value its name as text
//! and itself. An outcome is the number of columns, their names, the changes as a float,
//! the id of the last row as a value, the number of rows, and all values row after row.

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::{Error, Result};
use crate::store::{Bindings, SqlCursor, SqlOutcome, SqlValue};

/// Reads bindings; `None` when they are not packed as they should be.
pub(super) fn unpack(packed: &[u8]) -> Option<Bindings> {
    let (kind, mut rest) = packed.split_first()?;
    let mut values = Vec::new();
    match kind {
        0 => rest.is_empty().then_some(Bindings::None),
        1 => {
            while !rest.is_empty() {
                values.push(value(&mut rest)?);
            }
            Some(Bindings::Positional(values))
        }
        2 => {
            let mut named = Vec::new();
            while !rest.is_empty() {
                let SqlValue::Text(name) = value(&mut rest)? else { return None };
                named.push((name, value(&mut rest)?));
            }
            Some(Bindings::Named(named))
        }
        _ => None,
    }
}

fn value(rest: &mut &[u8]) -> Option<SqlValue> {
    let (tag, after) = rest.split_first()?;
    *rest = after;
    Some(match tag {
        0 => SqlValue::Null,
        1 => SqlValue::Integer(i64::from_le_bytes(taken(rest, 8)?.try_into().ok()?)),
        2 => SqlValue::Real(f64::from_le_bytes(taken(rest, 8)?.try_into().ok()?)),
        3 => SqlValue::Text(String::from_utf8_lossy(counted(rest)?).into_owned()),
        4 => SqlValue::Blob(counted(rest)?.to_vec()),
        _ => return None,
    })
}

fn counted<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(taken(rest, 4)?.try_into().ok()?);
    taken(rest, length as usize)
}

fn taken<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

/// Packs an outcome.
pub(in crate::node) fn pack(outcome: &SqlOutcome) -> Result<Bytes> {
    let mut out = BytesMut::new();
    put_outcome(&mut out, outcome)?;
    Ok(out.freeze())
}

/// Packs the rows of a synchronous statement. In the place of the changes are the rows
/// that it wrote, in that of the id 1 or 0: whether its turn has written.
pub(in crate::node) fn pack_cursor(mut cursor: SqlCursor, wrote: bool) -> Result<Vec<u8>> {
    let rows = cursor.remaining();
    let mut out = BytesMut::new();
    put_head(&mut out, cursor.columns(), cursor.rows_written() as f64)?;
    put(&mut out, &SqlValue::Integer(i64::from(wrote)))?;
    out.put_u32_le(length(rows)?);
    for cell in cursor.take(rows) {
        put(&mut out, &cell)?;
    }
    Ok(out.into())
}

/// Packs outcomes, one behind the other.
pub(super) fn pack_all(outcomes: &[SqlOutcome]) -> Result<Bytes> {
    let mut out = BytesMut::new();
    for outcome in outcomes {
        put_outcome(&mut out, outcome)?;
    }
    Ok(out.freeze())
}

fn put_outcome(out: &mut BytesMut, outcome: &SqlOutcome) -> Result<()> {
    put_head(out, outcome.rows.columns(), outcome.changes as f64)?;
    match outcome.last_insert_row_id {
        Some(id) => put(out, &SqlValue::Integer(id))?,
        None => put(out, &SqlValue::Null)?,
    }
    out.put_u32_le(length(outcome.rows.len())?);
    for cell in outcome.rows.iter().flatten() {
        put(out, cell)?;
    }
    Ok(())
}

fn put_head(out: &mut BytesMut, columns: &[String], count: f64) -> Result<()> {
    out.put_u32_le(length(columns.len())?);
    for column in columns {
        put_counted(out, column.as_bytes())?;
    }
    out.put_f64_le(count);
    Ok(())
}

fn put(out: &mut BytesMut, value: &SqlValue) -> Result<()> {
    match value {
        SqlValue::Null => out.put_u8(0),
        SqlValue::Integer(number) => {
            out.put_u8(1);
            out.put_i64_le(*number);
        }
        SqlValue::Real(number) => {
            out.put_u8(2);
            out.put_f64_le(*number);
        }
        SqlValue::Text(text) => {
            out.put_u8(3);
            put_counted(out, text.as_bytes())?;
        }
        SqlValue::Blob(bytes) => {
            out.put_u8(4);
            put_counted(out, bytes)?;
        }
    }
    Ok(())
}

fn put_counted(out: &mut BytesMut, bytes: &[u8]) -> Result<()> {
    out.put_u32_le(length(bytes.len())?);
    out.put_slice(bytes);
    Ok(())
}

fn length(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| Error::internal("more than 4 GiB in one answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_packed_as_agreed_is_refused() {
        let wrong: [&[u8]; 8] = [
            &[],
            &[3],
            &[0, 0],
            &[1, 9],
            &[1, 1, 0],
            &[1, 3, 9, 0, 0, 0],
            &[2, 0],
            &[2, 3, 0, 0, 0, 0],
        ];
        for packed in wrong {
            assert_eq!(unpack(packed), None, "{packed:?}");
        }
    }

    #[test]
    fn values_come_out_as_they_went_in() {
        let values = [
            SqlValue::Null,
            SqlValue::Integer(i64::MIN),
            SqlValue::Real(0.5),
            SqlValue::from("a\0b"),
            SqlValue::from(vec![0, 255]),
        ];
        let mut packed = BytesMut::from(&[1_u8][..]);
        for value in &values {
            put(&mut packed, value).unwrap();
        }

        assert_eq!(unpack(&packed), Some(Bindings::Positional(values.to_vec())));
    }
}
