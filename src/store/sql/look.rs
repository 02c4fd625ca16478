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

/// The most rows that are counted: beyond them the connection would be taken for too long.
const MOST: u32 = 1_000_000;

/// How many rows a table has, a million at most.
pub fn count_of(table: &str) -> String {
    format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {MOST})", quoted(table))
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
        assert_eq!(columns_of("a\"; DROP"), "PRAGMA table_info(\"a\"\"; DROP\")");
    }
}
