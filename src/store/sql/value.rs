//! What goes into a statement and what comes out of it.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// One value of SQLite. A truth value is the integer 0 or 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SqlValue {
    /// No value.
    #[default]
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction. SQLite keeps NaN as [`SqlValue::Null`].
    Real(f64),
    /// Text, which may contain NUL.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// The values for the parameters of one statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Bindings {
    /// None: every parameter is null.
    #[default]
    None,
    /// For the parameters 1 to n. Those beyond n are null; more values than
    /// parameters are an error.
    Positional(Vec<SqlValue>),
    /// For parameters by name, with its sigil (`:`, `@`, `$`) or without. A name that
    /// the statement has and the list has not is an error; others are ignored. A
    /// statement without names takes the values in the order of the list.
    Named(Vec<(String, SqlValue)>),
}

impl Bindings {
    /// How many bytes they bind: 8 for a number, the length of text and of bytes. `None`
    /// when there are none.
    pub fn bytes(&self) -> Option<usize> {
        let of = |value: &SqlValue| match value {
            SqlValue::Null => 0,
            SqlValue::Integer(_) | SqlValue::Real(_) => 8,
            SqlValue::Text(text) => text.len(),
            SqlValue::Blob(bytes) => bytes.len(),
        };
        match self {
            Self::None => None,
            Self::Positional(values) => Some(values.iter().map(of).sum()),
            Self::Named(values) => Some(values.iter().map(|(_, value)| of(value)).sum()),
        }
    }
}

impl SqlValue {
    /// A value out of a row. Text that is not UTF-8 has its faulty parts replaced.
    pub(super) fn read(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }

    /// How much memory it takes, in bytes.
    pub(super) fn weight(&self) -> usize {
        let own = size_of::<Self>();
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) => own,
            Self::Text(text) => own + text.len(),
            Self::Blob(bytes) => own + bytes.len(),
        }
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for SqlValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}
