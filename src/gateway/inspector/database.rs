//! An author's tables, for somebody who looks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use super::look::{Look, invalid};
use crate::error::Result;
use crate::inspector::InspectorError;
use crate::protocol::cbor::Writer;
use crate::store::{Bindings, SqlRows, SqlValue, controls, look as statements};

/// The most rows that are shown at once.
const MAX_ROWS: u64 = 500;

/// The greatest integer that a number of JavaScript holds exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

impl Look {
    /// The tables and views with their columns, foreign keys and numbers of rows, in CBOR.
    /// One after the other: each counts every table on the actor's one connection.
    pub(super) async fn schema(&self) -> Result<Bytes> {
        let _turn = self.tables.acquire().await;
        let tables = self.run(statements::TABLES.to_owned(), Vec::new()).await?;
        let mut out = Writer::default();
        out.map(1).text("tables").array(tables.len());
        for row in tables.iter() {
            let (name, kind) = (text(row.first()), text(row.get(1)));
            let columns = self.run(statements::columns_of(name), Vec::new()).await?;
            let keys = self.run(statements::foreign_keys_of(name), Vec::new()).await?;
            let count = self.run(statements::count_of(name), Vec::new()).await?;
            let count = count.iter().next().and_then(|row| row.first().cloned());
            out.map(4).text("table").map(3);
            out.text("schema").text("main").text("name").text(name).text("type").text(kind);
            write_rows(out.text("columns"), &columns);
            write_rows(out.text("foreignKeys"), &keys);
            write_value(out.text("records"), &count.unwrap_or_default());
        }
        Ok(out.into_bytes().into())
    }

    /// Rows of a table, in CBOR.
    pub(super) async fn rows(&self, table: &str, limit: u64, offset: u64) -> Result<Bytes> {
        if table.is_empty() {
            return Err(invalid("the name of the table is empty"));
        }
        let number = |value: u64| SqlValue::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        let parameters = vec![number(limit.min(MAX_ROWS)), number(offset)];
        let rows = self.run(statements::rows_of(table), parameters).await?;
        Ok(in_cbor(&rows))
    }

    /// What a statement answers, in CBOR: its rows, none where it has no columns.
    pub(super) async fn execute(&self, sql: String, bindings: Bindings) -> Result<Bytes> {
        self.has_database()?;
        if controls(&sql) {
            return Err(invalid("a dashboard neither begins nor ends a transaction"));
        }
        // A batch waits for the end of a transaction that the author has begun by hand.
        let outcomes = self.actor.sql().execute_batch(vec![(sql, bindings)]).await?;
        Ok(outcomes.first().map_or_else(|| in_cbor(&SqlRows::default()), |one| in_cbor(&one.rows)))
    }

    async fn run(&self, sql: String, parameters: Vec<SqlValue>) -> Result<SqlRows> {
        self.has_database()?;
        if !self.actor.has_file() {
            // Looking makes none.
            return Ok(SqlRows::default());
        }
        let bindings = Bindings::Positional(parameters);
        Ok(self.actor.sql().execute(sql, bindings).await?.rows)
    }

    fn has_database(&self) -> Result<()> {
        if self.config().has_database {
            return Ok(());
        }
        Err(InspectorError::DatabaseNotEnabled.into())
    }
}

/// The parameters of a statement: a list, or values by name.
///
/// # Errors
///
/// `inspector/invalid_request` for what SQLite does not keep.
pub(super) fn bindings(args: Option<&Value>, properties: Option<&Value>) -> Result<Bindings> {
    match (args, properties) {
        (None, None) => Ok(Bindings::None),
        (Some(Value::Array(args)), None) => {
            Ok(Bindings::Positional(args.iter().map(value_of).collect::<Result<_>>()?))
        }
        (None, Some(Value::Object(named))) => {
            let named = named.iter().map(|(name, value)| Ok((name.clone(), value_of(value)?)));
            Ok(Bindings::Named(named.collect::<Result<_>>()?))
        }
        _ => {
            Err(invalid("`args` is a list, `properties` an object, and only one of them is given"))
        }
    }
}

fn value_of(value: &Value) -> Result<SqlValue> {
    let cannot = || invalid("a value of a parameter is none that SQLite keeps");
    Ok(match value {
        Value::Null => SqlValue::Null,
        Value::Bool(flag) => SqlValue::Integer((*flag).into()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => SqlValue::Integer(whole),
            (None, Some(number)) => SqlValue::Real(number),
            (None, None) => return Err(cannot()),
        },
        Value::String(text) => SqlValue::Text(text.clone()),
        Value::Array(pair) => match pair.as_slice() {
            [Value::String(tag), Value::String(text)] if tag == "$BigInt" => {
                SqlValue::Integer(text.parse().map_err(|_| cannot())?)
            }
            [Value::String(tag), Value::String(text)]
                if tag == "$Uint8Array" || tag == "$ArrayBuffer" =>
            {
                SqlValue::Blob(STANDARD.decode(text).map_err(|_| cannot())?)
            }
            _ => return Err(cannot()),
        },
        Value::Object(_) => return Err(cannot()),
    })
}

fn text(value: Option<&SqlValue>) -> &str {
    match value {
        Some(SqlValue::Text(text)) => text,
        _ => "",
    }
}

fn in_cbor(rows: &SqlRows) -> Bytes {
    let mut out = Writer::default();
    write_rows(&mut out, rows);
    out.into_bytes().into()
}

/// A list with an object for each row.
fn write_rows(out: &mut Writer, rows: &SqlRows) {
    out.array(rows.len());
    for row in rows.iter() {
        out.map(row.len());
        for (column, value) in rows.columns().iter().zip(row) {
            write_value(out.text(column), value);
        }
    }
}

fn write_value(out: &mut Writer, value: &SqlValue) {
    match value {
        SqlValue::Null => out.null(),
        SqlValue::Integer(number) if number.unsigned_abs() <= MAX_SAFE => {
            out.number(*number as f64)
        }
        SqlValue::Integer(number) => out.big(*number),
        SqlValue::Real(number) => out.number(*number),
        SqlValue::Text(text) => out.text(text),
        SqlValue::Blob(bytes) => out.bytes(bytes),
    };
}
