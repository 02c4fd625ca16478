//! Gives values to the parameters of a statement, by what SQLite says of them: a
//! name in a literal or a comment is none.

use rusqlite::Statement;

use super::error::SqlError;
use super::value::{Bindings, SqlValue};

/// Binds all of `bindings` to `statement`, whose parameters are null so far.
pub(super) fn bind(
    statement: &mut Statement<'_>,
    bindings: &Bindings,
    index: usize,
) -> Result<(), SqlError> {
    match bindings {
        Bindings::None => Ok(()),
        Bindings::Positional(values) => in_order(statement, values.iter(), index),
        Bindings::Named(values) => named(statement, values, index),
    }
}

fn in_order<'v>(
    statement: &mut Statement<'_>,
    values: impl Iterator<Item = &'v SqlValue>,
    index: usize,
) -> Result<(), SqlError> {
    for (parameter, value) in (1..).zip(values) {
        put(statement, parameter, value, index)?;
    }
    Ok(())
}

fn named(
    statement: &mut Statement<'_>,
    values: &[(String, SqlValue)],
    index: usize,
) -> Result<(), SqlError> {
    let mut has_names = false;
    for parameter in 1..=statement.parameter_count() {
        // `?` has no name, and that of `?7` is a number.
        let name = statement.parameter_name(parameter).filter(|name| !name.starts_with('?'));
        let Some(name) = name else { continue };
        has_names = true;
        let value = look_up(values, name).ok_or_else(|| SqlError::InvalidBindParameter {
            name: name.to_owned(),
            reason: "missing parameter",
        })?;
        put(statement, parameter, value, index)?;
    }
    if has_names {
        Ok(())
    } else {
        in_order(statement, values.iter().map(|(_, value)| value), index)
    }
}

/// The value for `name`: under just this name, under the name without its sigil,
/// under the name with another sigil.
fn look_up<'v>(values: &'v [(String, SqlValue)], name: &str) -> Option<&'v SqlValue> {
    let bare = &name[1..];
    let of = |wanted: &dyn Fn(&str) -> bool| {
        values.iter().find(|(key, _)| wanted(key)).map(|(_, value)| value)
    };
    of(&|key| key == name).or_else(|| of(&|key| key == bare)).or_else(|| {
        [':', '@', '$'].iter().find_map(|&sigil| of(&|key| key.strip_prefix(sigil) == Some(bare)))
    })
}

fn put(
    statement: &mut Statement<'_>,
    parameter: usize,
    value: &SqlValue,
    index: usize,
) -> Result<(), SqlError> {
    statement.raw_bind_parameter(parameter, value).map_err(|error| SqlError::of(index, &error))
}
