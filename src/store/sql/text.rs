//! What can be told from the text of SQL before SQLite has seen it.
//!
//! # Invariants
//!
//! 1. A text is cut into tokens as SQLite cuts it: what lies in a literal, a quoted
//!    name or a comment is never taken for a word.
//! 2. This decides on caching, on promotion and on what follows a statement. What may
//!    be done is decided by the authorizer, except for what SQLite does not show to
//!    it: the new name of a table, and the table that a foreign key points to.

use super::error::Ending;

/// What kind of statement a text begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Nothing but spaces, comments and semicolons.
    Blank,
    /// `BEGIN`, `COMMIT`, `END`, `ROLLBACK`, `SAVEPOINT`, `RELEASE`: alone it neither
    /// reads nor writes anything.
    Control {
        /// How a transaction has ended, if the statement succeeds and it has.
        ends_as: Ending,
    },
    /// `SELECT`, `INSERT` and what else reads or changes rows.
    Data,
    /// Everything else: changes of tables, pragmas.
    Other,
}

impl StatementKind {
    /// The kind of the first statement of `sql`.
    pub fn of(sql: &str) -> Self {
        let first = Tokens::new(sql).find(|token| !matches!(token.kind, Kind::Semicolon));
        let Some(token) = first else { return Self::Blank };
        let Kind::Word(word) = token.kind else { return Self::Other };
        let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        if is(&["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES"]) {
            Self::Data
        } else if is(&["COMMIT", "END"]) {
            Self::Control { ends_as: Ending::Committed }
        } else if is(&["BEGIN", "ROLLBACK", "SAVEPOINT", "RELEASE"]) {
            Self::Control { ends_as: Ending::RolledBack }
        } else {
            Self::Other
        }
    }
}

/// Whether `sql` does anything but begin and end transactions, so that an actor
/// that runs it needs a file of its own.
pub fn touches_data(sql: &str) -> bool {
    kinds(sql).any(|kind| !matches!(kind, StatementKind::Control { .. }))
}

/// Whether `sql` has no statement: nothing, spaces and comments.
pub fn is_blank(sql: &str) -> bool {
    kinds(sql).next().is_none()
}

/// Whether `sql` surely writes nothing: each of its statements begins with `SELECT`,
/// `VALUES` or `EXPLAIN`. Behind `WITH` there may be an `INSERT`, and a pragma may write.
pub(super) fn only_reads(sql: &str) -> bool {
    let reads = |word: &str| {
        ["SELECT", "VALUES", "EXPLAIN"].iter().any(|known| word.eq_ignore_ascii_case(known))
    };
    let mut begins = true;
    Tokens::new(sql).all(|token| {
        let is_semicolon = token.kind == Kind::Semicolon;
        let was_first = std::mem::replace(&mut begins, is_semicolon);
        !was_first || is_semicolon || matches!(token.kind, Kind::Word(word) if reads(word))
    })
}

/// Whether the work of `sql` may be known from the last time: it surely only reads, or adds
/// no more rows than it has in its own text.
pub(super) fn may_be_short(sql: &str) -> bool {
    let mut words = Tokens::new(sql).filter_map(|token| match token.kind {
        Kind::Word(word) => Some(word),
        _ => None,
    });
    let is = |word: &str, known: &str| word.eq_ignore_ascii_case(known);
    let adds = words.next().is_some_and(|first| is(first, "INSERT") || is(first, "REPLACE"))
        && !words.any(|word| is(word, "SELECT") || is(word, "WITH"));
    adds || only_reads(sql)
}

/// Whether a statement of `sql` begins or ends a transaction.
pub fn has_control(sql: &str) -> bool {
    kinds(sql).any(|kind| matches!(kind, StatementKind::Control { .. }))
}

/// Whether a statement of `sql` would end the transaction that it runs in. Going back to a
/// savepoint does not.
pub fn ends_transaction(sql: &str) -> bool {
    starts(sql).any(|start| {
        let mut words = Tokens::new(&sql[start..]).map(|token| token.kind);
        let Some(first) = words.next() else { return false };
        if first.is_word("COMMIT") || first.is_word("END") {
            return true;
        }
        first.is_word("ROLLBACK")
            && match words.next() {
                Some(next) if next.is_word("TRANSACTION") => {
                    !words.next().is_some_and(|word| word.is_word("TO"))
                }
                next => !next.is_some_and(|word| word.is_word("TO")),
            }
    })
}

/// The kinds of the statements of `sql` that are not blank.
fn kinds(sql: &str) -> impl Iterator<Item = StatementKind> {
    starts(sql).map(|start| StatementKind::of(&sql[start..]))
}

/// Where the statements of `sql` begin that are not blank.
fn starts(sql: &str) -> impl Iterator<Item = usize> {
    let mut begins = true;
    // A trigger has statements inside and ends with a part that is `END`.
    let mut creates = false;
    let mut in_trigger = false;
    Tokens::new(sql).filter_map(move |token| {
        if token.kind == Kind::Semicolon {
            (begins, creates) = (true, false);
            return None;
        }
        in_trigger |= creates && token.kind.is_word("TRIGGER");
        if !std::mem::take(&mut begins) {
            return None;
        }
        if in_trigger {
            in_trigger = !token.kind.is_word("END");
            return None;
        }
        creates = token.kind.is_word("CREATE") || token.kind.is_word("EXPLAIN");
        Some(token.start)
    })
}

/// Whether anything but spaces follows the end of the first statement of `sql`,
/// provided that all that follows is blank for SQLite.
pub(super) fn has_trailing_text(sql: &str) -> bool {
    let trimmed = sql.trim_ascii_end();
    if !has_semicolon_within(trimmed) {
        return false;
    }
    let mut end = None;
    for token in Tokens::new(trimmed) {
        match token.kind {
            Kind::Semicolon => end = end.or(Some(token.end)),
            _ => end = None,
        }
    }
    end.is_some_and(|end| end < trimmed.len())
}

/// Whether `sql` surely has several statements that are not blank.
pub(super) fn has_several(sql: &str) -> bool {
    has_semicolon_within(sql.trim_ascii_end()) && kinds(sql).nth(1).is_some()
}

/// Nearly always there is no semicolon, or it is the last character.
fn has_semicolon_within(trimmed: &str) -> bool {
    trimmed.find(';').is_some_and(|at| at + 1 < trimmed.len())
}

/// The names of tables in `sql` that SQLite does not show to an authorizer, without
/// their quotes: new names of tables, and those that foreign keys point to.
pub(super) fn hidden_names(sql: &str) -> impl Iterator<Item = &str> {
    let mut before = [Kind::Mark, Kind::Mark];
    Tokens::new(sql).filter_map(move |token| {
        let follows = before[1].is_word("REFERENCES")
            || (before[0].is_word("RENAME") && before[1].is_word("TO"));
        before = [before[1], token.kind];
        match token.kind {
            Kind::Word(name) | Kind::Quoted(name) if follows => Some(name),
            _ => None,
        }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    /// A literal or a quoted name, without its quotes.
    Quoted(&'a str),
    Semicolon,
    Mark,
}

impl Kind<'_> {
    fn is_word(self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found.eq_ignore_ascii_case(word))
    }
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind<'a>,
    start: usize,
    end: usize,
}

/// The tokens of a text, without spaces and comments.
struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn new(sql: &'a str) -> Self {
        Self { sql, at: 0 }
    }

    /// Where `end` is found behind `from`, or the end of the text.
    fn behind(&self, from: usize, end: &str) -> usize {
        self.sql[from..].find(end).map_or(self.sql.len(), |at| from + at + end.len())
    }

    /// Passes over spaces and comments.
    fn skip(&mut self) {
        let bytes = self.sql.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(space) if space.is_ascii_whitespace() => self.at += 1,
                // A byte order mark is a space where a token could begin.
                Some(0xEF) if self.sql[self.at..].starts_with('\u{FEFF}') => self.at += 3,
                Some(b'-') if bytes.get(self.at + 1) == Some(&b'-') => {
                    self.at = self.behind(self.at, "\n");
                }
                Some(b'/') if bytes.get(self.at + 1) == Some(&b'*') => {
                    self.at = self.behind(self.at + 2, "*/");
                }
                _ => return,
            }
        }
    }

    /// Where the parameter that begins at `start` ends. `$a::b(anything)` is one, for
    /// the sake of another language; its parentheses may hold quotes and semicolons.
    fn parameter_end(&self, start: usize) -> usize {
        let bytes = self.sql.as_bytes();
        let mut at = start + 1;
        let mut is_named = false;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'(' if is_named => {
                    let inside = bytes[at + 1..].iter();
                    let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b')';
                    at += 1 + inside.take_while(|byte| !ends(byte)).count();
                    return at + usize::from(bytes.get(at) == Some(&b')'));
                }
                b':' if bytes.get(at + 1) == Some(&b':') => at += 2,
                byte if is_word(byte) => {
                    is_named = true;
                    at += 1;
                }
                _ => return at,
            }
        }
        at
    }

    /// Where the quoted text that begins at `start` ends. Two quotes inside are one.
    fn quoted_end(&self, start: usize, quote: u8) -> usize {
        let bytes = self.sql.as_bytes();
        let mut at = start + 1;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            if byte == quote {
                if quote == b']' || bytes.get(at) != Some(&quote) {
                    return at;
                }
                at += 1;
            }
        }
        at
    }
}

/// Whether a byte may stand in a name.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte > 127
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip();
        let bytes = self.sql.as_bytes();
        let start = self.at;
        let first = *bytes.get(start)?;
        let kind = match first {
            b';' => {
                self.at += 1;
                Kind::Semicolon
            }
            b'\'' | b'"' | b'`' | b'[' => {
                self.at = self.quoted_end(start, if first == b'[' { b']' } else { first });
                // Unterminated text has no closing quote; SQLite refuses it.
                Kind::Quoted(self.sql.get(start + 1..self.at - 1).unwrap_or(""))
            }
            b'$' | b'@' | b':' | b'#' => {
                self.at = self.parameter_end(start);
                Kind::Mark
            }
            byte if is_word(byte) => {
                self.at += bytes[start..].iter().take_while(|byte| is_word(**byte)).count();
                Kind::Word(&self.sql[start..self.at])
            }
            _ => {
                self.at += 1;
                Kind::Mark
            }
        };
        Some(Token { kind, start, end: self.at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_tells_the_kind_whatever_stands_before_it() {
        let committed = StatementKind::Control { ends_as: Ending::Committed };
        let cases = [
            ("", StatementKind::Blank),
            (" -- only this\n/* and that */ ;; ", StatementKind::Blank),
            ("select 1", StatementKind::Data),
            ("/* BEGIN */ -- COMMIT\n;With a AS (SELECT 1) SELECT * FROM a", StatementKind::Data),
            ("commit", committed),
            ("; END TRANSACTION", committed),
            ("PRAGMA foreign_keys", StatementKind::Other),
            ("EXPLAIN COMMIT", StatementKind::Other),
            ("\"BEGIN\"", StatementKind::Other),
            ("ΩBEGIN", StatementKind::Other),
        ];

        for (sql, kind) in cases {
            assert_eq!(StatementKind::of(sql), kind, "{sql}");
        }
    }

    #[test]
    fn beginning_and_ending_transactions_touches_no_data() {
        for sql in ["", ";", "BEGIN", "begin; savepoint a; release a;\ncommit; -- done"] {
            assert!(!touches_data(sql), "{sql}");
        }
        for sql in ["SELECT 1", "BEGIN; SELECT 1", "COMMIT; 'COMMIT'", "PRAGMA user_version"] {
            assert!(touches_data(sql), "{sql}");
        }
    }

    #[test]
    fn a_text_only_reads_if_each_of_its_statements_surely_does() {
        for sql in ["", ";", "select 1", "-- a\n(", "VALUES (1); ; EXPLAIN DELETE FROM t;"] {
            assert_eq!(only_reads(sql), sql != "-- a\n(", "{sql}");
        }
        for sql in ["WITH a AS (SELECT 1) DELETE FROM t", "PRAGMA user_version", "SELECT 1; COMMIT"]
        {
            assert!(!only_reads(sql), "{sql}");
        }
    }

    #[test]
    fn what_may_be_short_reads_or_adds_the_rows_of_its_text() {
        for sql in [
            "SELECT 1",
            "INSERT INTO t (a) VALUES (?), (2) ON CONFLICT DO UPDATE SET a = 1 RETURNING a",
            "replace into t default values",
        ] {
            assert!(may_be_short(sql), "{sql}");
        }
        for sql in [
            "INSERT INTO t SELECT x FROM t",
            "INSERT INTO t VALUES ((SELECT count(*) FROM t))",
            "INSERT INTO t WITH n AS (VALUES (1)) SELECT * FROM n",
            "WITH n AS (VALUES (1)) SELECT * FROM n",
            "UPDATE t SET x = 1 WHERE id = 1",
            "DELETE FROM t",
        ] {
            assert!(!may_be_short(sql), "{sql}");
        }
    }

    #[test]
    fn the_end_of_a_trigger_ends_no_transaction() {
        let trigger = "CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;";

        assert!(!has_control(trigger) && touches_data(trigger));
        assert!(has_control(&format!("{trigger} COMMIT")));
        assert!(!has_several(trigger) && !has_several(&format!("EXPLAIN {trigger}")));
        assert!(has_several(&format!("{trigger} SELECT 1")));
        assert!(has_control("SELECT 1; BEGIN") && !has_control("CREATE TABLE \"trigger\" (x)"));
    }

    #[test]
    fn only_spaces_may_follow_the_semicolon_of_a_statement() {
        for sql in ["SELECT 1", "SELECT ';' ; \n\t", "; SELECT 1 -- ;", "SELECT 1 /* ; */"] {
            assert!(!has_trailing_text(sql), "{sql}");
        }
        let trigger = "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;";
        assert!(!has_trailing_text(trigger));
        for sql in ["SELECT 1; -- c", "SELECT 1;;", "SELECT 1; /* c */ ", "SELECT \"a;\"; --"] {
            assert!(has_trailing_text(sql), "{sql}");
        }
    }

    #[test]
    fn a_hidden_name_is_found_however_it_is_quoted() {
        let found = |sql| hidden_names(sql).map(str::to_owned).collect::<Vec<_>>();

        assert_eq!(
            found("ALTER TABLE a RENAME TO b; alter table c rename/**/to[d e]"),
            ["b", "d e"]
        );
        assert_eq!(found("ALTER TABLE a RENAME TO 'x'"), ["x"]);
        assert_eq!(found("ALTER TABLE a RENAME TO \u{FEFF}x"), ["x"]);
        assert_eq!(found("CREATE TABLE a (b REFERENCES\n\"c\" (d), e references `f`)"), ["c", "f"]);
        assert_eq!(found("SELECT 'RENAME TO b' -- RENAME TO c\n, REFERENCES_x"), [""; 0]);
    }

    #[test]
    fn a_quote_within_a_parameter_opens_no_literal() {
        let found = |sql| hidden_names(sql).collect::<Vec<_>>();

        assert_eq!(found("SELECT $a('); ALTER TABLE t RENAME TO x"), ["x"]);
        assert_eq!(found("SELECT $a::b(--),:c('), @d::e; ALTER TABLE t RENAME TO x"), ["x"]);
        assert_eq!(found("SELECT $a(' '); ALTER TABLE t RENAME TO x"), [""; 0]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_cut(sql in "(\\PC|[;'\"`\\[\\]/*\\-\n a$:()\u{FEFF}]){0,40}") {
            let mut last = 0;
            for token in Tokens::new(&sql) {
                proptest::prop_assert!(token.start >= last && token.end > token.start);
                last = token.end;
            }
            let _ = (StatementKind::of(&sql), touches_data(&sql), has_trailing_text(&sql));
        }
    }
}
