//! Synchronous statements and the transaction of their turn.

use super::*;

struct Turn {
    db: Fixture,
    turn: SqlTurn,
}

impl Turn {
    fn new() -> Self {
        let db = Fixture::new();
        db.execute("CREATE TABLE t (x UNIQUE)").unwrap();
        Self { db, turn: SqlTurn::default() }
    }

    fn run(&mut self, sql: &str) -> Result<SqlCursor, SqlError> {
        self.turn.run(&self.db.session(), sql, &Bindings::None)
    }

    /// Ends the turn as whoever has the connection does.
    fn end(&mut self, how: &str) {
        self.db.session().control(how).unwrap();
        self.turn = SqlTurn::default();
    }

    fn count(&self) -> SqlValue {
        let sql = "SELECT count(*) FROM t";
        self.db.sqlite.query_row(sql, [], |row| row.get(0)).map(SqlValue::Integer).unwrap()
    }
}

#[test]
fn a_turn_that_only_reads_opens_no_transaction() {
    let mut turn = Turn::new();

    turn.run("SELECT * FROM t").unwrap();
    turn.run("PRAGMA table_info(t)").unwrap();

    assert!(!turn.turn.is_writing() && turn.db.sqlite.is_autocommit());
}

#[test]
fn what_a_turn_writes_is_committed_together() {
    let mut turn = Turn::new();

    turn.run("INSERT INTO t VALUES (1)").unwrap();
    assert!(turn.turn.is_writing() && !turn.db.sqlite.is_autocommit());
    turn.run("INSERT INTO t VALUES (2)").unwrap();
    turn.end("COMMIT");

    assert!(turn.db.sqlite.is_autocommit());
    assert_eq!(turn.count(), 2.into());
}

#[test]
fn a_turn_that_is_rolled_back_leaves_nothing() {
    let mut turn = Turn::new();

    turn.run("INSERT INTO t VALUES (1)").unwrap();
    turn.end("ROLLBACK");

    assert_eq!(turn.count(), 0.into());
    assert!(turn.run("INSERT INTO t VALUES (1)").is_ok());
}

#[test]
fn an_ordinary_failure_leaves_the_turn_as_it_was() {
    let mut turn = Turn::new();
    turn.run("INSERT INTO t VALUES (1)").unwrap();

    let (code, ..) = fault(turn.run("INSERT INTO t VALUES (1)"));

    assert_eq!(code, rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE);
    turn.end("COMMIT");
    assert_eq!(turn.count(), 1.into());
}

#[test]
fn a_statement_that_rolls_back_loses_the_whole_turn() {
    let mut turn = Turn::new();
    turn.run("INSERT INTO t VALUES (1)").unwrap();

    let lost = turn.run("INSERT OR ROLLBACK INTO t VALUES (1)").unwrap_err();

    assert!(matches!(lost, SqlError::TurnLost { .. }) && turn.turn.is_lost());
    for sql in ["INSERT INTO t VALUES (2)", "SELECT 1"] {
        assert_eq!(turn.run(sql).unwrap_err(), lost, "{sql}");
    }
    assert_eq!(turn.turn.begin(&turn.db.session()).unwrap_err(), lost);
    assert_eq!(turn.count(), 0.into());
    turn.turn = SqlTurn::default();
    assert!(turn.run("INSERT INTO t VALUES (1)").is_ok());
}

#[test]
fn a_trigger_that_raises_a_rollback_loses_the_whole_turn() {
    let mut turn = Turn::new();
    let sql = "CREATE TRIGGER a BEFORE INSERT ON t BEGIN SELECT RAISE(ROLLBACK, 'no') ; END";
    turn.db.execute(sql).unwrap();
    turn.turn.begin(&turn.db.session()).unwrap();

    let lost = turn.run("INSERT INTO t VALUES (1)").unwrap_err();

    assert_eq!(lost, SqlError::TurnLost { reason: "no".into() });
}

#[test]
fn a_turn_neither_begins_nor_ends_a_transaction() {
    let mut turn = Turn::new();
    turn.run("INSERT INTO t VALUES (1)").unwrap();

    for sql in ["COMMIT", "ROLLBACK", "SAVEPOINT a", "SELECT 1; END", "/* */ BEGIN"] {
        assert_eq!(fault(turn.run(sql)).0, rusqlite::ffi::SQLITE_AUTH, "{sql}");
    }
    assert!(turn.turn.is_writing() && !turn.db.sqlite.is_autocommit());
}

#[test]
fn the_statement_that_begins_the_turns_transaction_is_fenced_to_its_end() {
    let mut turn = Turn::new();

    let refused = turn.run("INSERT INTO t SELECT name FROM pragma_database_list");

    assert_eq!(fault(refused).0, rusqlite::ffi::SQLITE_AUTH);
    assert!(turn.turn.is_writing());
}

#[test]
fn a_turn_keeps_out_of_a_transaction_that_is_open() {
    let mut turn = Turn::new();
    turn.db.execute("BEGIN").unwrap();

    assert_eq!(turn.run("INSERT INTO t VALUES (1)").unwrap_err(), SqlError::TransactionOpen);
    assert_eq!(turn.run("SELECT 1").unwrap_err(), SqlError::TransactionOpen);

    let inside = super::super::turn::run_in_transaction(
        turn.db.session(),
        "INSERT INTO t VALUES (1)",
        &Bindings::None,
    );
    assert_eq!(inside.unwrap().rows_written(), 1);
    turn.db.execute("ROLLBACK").unwrap();
    assert_eq!(turn.count(), 0.into());
}

#[test]
fn without_bindings_a_text_may_have_several_statements() {
    let mut turn = Turn::new();

    let mut cursor = turn.run("INSERT INTO t VALUES (1), (2); SELECT x FROM t; -- done").unwrap();

    assert_eq!(cursor.take(9), [1.into(), 2.into()] as [SqlValue; 2]);
    assert_eq!(cursor.rows_written(), 2);
    let bound = Bindings::Positional(vec![1.into()]);
    let both = turn.turn.run(&turn.db.session(), "SELECT ?; SELECT ?", &bound);
    assert!(fault(both).2.contains("single statement"));
}

#[test]
fn a_cursor_counts_what_was_taken_and_holds_nothing_open() {
    let mut turn = Turn::new();
    turn.run("INSERT INTO t VALUES (1), (2), (3)").unwrap();

    let mut cursor = turn.run("SELECT x, x + 1 AS y FROM t").unwrap();

    assert!(!turn.db.sqlite.is_busy());
    assert_eq!(cursor.columns(), ["x", "y"]);
    assert_eq!((cursor.remaining(), cursor.rows_read(), cursor.rows_written()), (3, 0, 0));
    assert_eq!(cursor.next_row(), Some(vec![1.into(), 2.into()]));
    turn.run("DELETE FROM t").unwrap();
    turn.end("COMMIT");
    assert_eq!(cursor.take(usize::MAX), [2, 3, 3, 4].map(SqlValue::from));
    assert_eq!((cursor.next_row(), cursor.rows_read()), (None, 3));
}

#[test]
fn foreign_keys_set_in_a_turn_hold_from_the_next_one_on() {
    let mut turn = Turn::new();
    turn.run("INSERT INTO t VALUES (1)").unwrap();

    turn.run("PRAGMA foreign_keys = ON").unwrap();
    turn.run("CREATE TABLE u (x REFERENCES t (x))").unwrap();
    turn.run("INSERT INTO u VALUES (9)").unwrap();
    turn.end("COMMIT");

    let (code, ..) = fault(turn.run("INSERT INTO u VALUES (9)"));
    assert_eq!(code, rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
}
