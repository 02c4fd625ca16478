//! What a statement answers.

use super::value::SqlValue;

/// SqlRows, each with a value per column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlRows {
    columns: Vec<String>,
    /// Row after row.
    cells: Vec<SqlValue>,
}

impl SqlRows {
    pub(super) fn with(columns: Vec<String>) -> Self {
        Self { columns, cells: Vec::new() }
    }

    /// Adds the next value of the next row.
    pub(super) fn push(&mut self, value: SqlValue) {
        self.cells.push(value);
    }

    /// The names of the columns, as SQLite gives them; two may be the same.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.columns.len()).unwrap_or(0)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[SqlValue]> {
        // Without columns there are no cells either, and a chunk has at least one.
        self.cells.chunks_exact(self.columns.len().max(1))
    }

    /// The columns and all values, row after row.
    pub fn into_parts(self) -> (Vec<String>, Vec<SqlValue>) {
        (self.columns, self.cells)
    }
}

/// All that one statement answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlOutcome {
    /// The rows, and the columns, which a statement has without rows too.
    pub rows: SqlRows,
    /// How many rows it inserted, updated or deleted, without those of triggers and
    /// foreign keys; 0 for one that does not write rows.
    pub changes: u64,
    /// The id of the row that the connection inserted last; only with changes.
    pub last_insert_row_id: Option<i64>,
    /// How many rows were written, with those of triggers and foreign keys.
    pub rows_written: u64,
}

/// The rows of a synchronous statement, taken one by one.
///
/// All of them are here from the start, and no statement stays open behind it: an
/// open one would hold up the end of the turn and every checkpoint. So a cursor also
/// shows what was there when it was made, whatever is written while it is read.
#[derive(Debug)]
pub struct SqlCursor {
    columns: Vec<String>,
    cells: std::vec::IntoIter<SqlValue>,
    rows_read: u64,
    rows_written: u64,
}

impl SqlCursor {
    pub(super) fn over(outcome: SqlOutcome) -> Self {
        let rows_written = outcome.rows_written;
        let (columns, cells) = outcome.rows.into_parts();
        Self { columns, cells: cells.into_iter(), rows_read: 0, rows_written }
    }

    /// One without columns and rows.
    pub fn empty() -> Self {
        Self::over(SqlOutcome::default())
    }

    /// The names of the columns, as SQLite gives them; two may be the same.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Up to `limit` further rows, their values row after row; none at the end.
    pub fn take(&mut self, limit: usize) -> Vec<SqlValue> {
        let width = self.columns.len().max(1);
        let count = limit.saturating_mul(width).min(self.cells.len());
        self.rows_read += (count / width) as u64;
        self.cells.by_ref().take(count).collect()
    }

    /// The next row.
    pub fn next_row(&mut self) -> Option<Vec<SqlValue>> {
        Some(self.take(1)).filter(|row| !row.is_empty())
    }

    /// How many rows are still to come.
    pub fn remaining(&self) -> usize {
        self.cells.len() / self.columns.len().max(1)
    }

    /// How many rows were taken so far.
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// How many rows the statement wrote, with those of triggers and foreign keys.
    pub fn rows_written(&self) -> u64 {
        self.rows_written
    }
}
