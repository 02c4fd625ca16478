//! Statements for somebody who looks at an author's tables. They run as the author's own do,
//! so what the runtime keeps for itself is not among them.

/// The tables and views of the author: name and kind.
pub const TABLES: &str = "SELECT name, type FROM sqlite_master
    WHERE type IN ('table', 'view')
    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_\\_drizzle\\_%' ESCAPE '\\'
    AND name NOT LIKE '\\_gr\\_%' ESCAPE '\\' AND name NOT LIKE '\\_rivet\\_%' ESCAPE '\\'
    ORDER BY name";

/// The columns of a table.
pub fn columns_of(table: &str) -> String {
    format!("PRAGMA table_info({})", quoted(table))
}

/// The foreign keys of a table.
pub fn foreign_keys_of(table: &str) -> String {
    format!("PRAGMA foreign_key_list({})", quoted(table))
}

/// How many rows a table has.
pub fn count_of(table: &str) -> String {
    format!("SELECT count(*) FROM {}", quoted(table))
}

/// Rows of a table: how many, and how many before them, are its parameters.
pub fn rows_of(table: &str) -> String {
    format!("SELECT * FROM {} LIMIT ? OFFSET ?", quoted(table))
}

/// A name as SQLite takes it, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_quotes() {
        assert_eq!(count_of("a\"; DROP"), "SELECT count(*) FROM \"a\"\"; DROP\"");
    }
}
