//! Values, parameters, single statements and texts of several.

use rusqlite::ffi;

use super::*;

fn named<const N: usize>(values: [(&str, i64); N]) -> Bindings {
    Bindings::Named(
        values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
    )
}

fn positional<const N: usize>(values: [i64; N]) -> Bindings {
    Bindings::Positional(values.into_iter().map(SqlValue::from).collect())
}

fn integers(outcome: &SqlOutcome) -> Vec<Vec<SqlValue>> {
    outcome.rows.iter().map(<[SqlValue]>::to_vec).collect()
}

#[test]
fn a_second_statement_is_refused_and_neither_is_run() {
    let db = Fixture::new();

    for sql in [
        "CREATE TABLE t (x); INSERT INTO t VALUES (1)",
        "SELECT 1; SELECT 2;",
        "SELECT 1; nonsense",
        "SELECT 1; -- comment",
        "SELECT 1;;",
        "SELECT 1;\u{a0}",
        "SELECT 1;\u{b}",
    ] {
        let (code, index, message) = fault(db.execute(sql));
        assert_eq!((code, index), (SqlError::NOT_SQLITE, 0), "{sql}");
        assert!(message.contains("single statement"), "{message}");
    }
    assert_eq!(fault(db.execute("SELECT * FROM t")).2, "no such table: t");
    fault(db.execute("SELECT 1; PRAGMA foreign_keys = ON"));
    assert_eq!(db.one("PRAGMA foreign_keys"), 0.into());
}

#[test]
fn a_statement_with_statements_inside_is_one() {
    let db = Fixture::new();
    db.execute("CREATE TABLE t (x)").unwrap();
    let sql = "CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN
                   SELECT CASE WHEN 1 THEN ';' END; INSERT INTO t VALUES (2); END;";

    db.execute(&format!("EXPLAIN {sql}")).unwrap();
    db.execute(sql).unwrap();

    assert_eq!(db.execute("INSERT INTO t VALUES (1)").unwrap().rows_written, 2);
}

#[test]
fn what_is_no_statement_answers_nothing() {
    let db = Fixture::new();

    for sql in ["", "  \n", ";", " -- nothing\n", "/* nothing */;"] {
        assert_eq!(db.execute(sql), Ok(SqlOutcome::default()), "{sql}");
        assert_eq!(db.exec(sql), Ok(SqlOutcome::default()), "{sql}");
    }
}

#[test]
fn a_nul_in_the_text_is_refused_and_in_bound_text_it_is_kept() {
    let db = Fixture::new();
    db.execute("CREATE TABLE t (x TEXT)").unwrap();

    assert!(fault(db.execute("SELECT 1\0; DROP TABLE t")).2.contains("nul"));
    assert!(fault(db.exec("SELECT 1;\0")).2.contains("nul"));

    let text = Bindings::Positional(vec!["a\0b".into()]);
    db.bound("INSERT INTO t VALUES (?)", &text).unwrap();
    let row = db.execute("SELECT hex(x), length(x), x FROM t").unwrap();
    assert_eq!(integers(&row), [["610062".into(), 1.into(), "a\0b".into()]]);
}

#[test]
fn every_kind_of_value_comes_back_as_it_went_in() {
    let db = Fixture::new();
    let values = vec![
        SqlValue::Null,
        i64::MIN.into(),
        i64::MAX.into(),
        (-0.5).into(),
        f64::INFINITY.into(),
        "".into(),
        "é\u{1F600}".into(),
        vec![].into(),
        vec![0, 255].into(),
        true.into(),
    ];

    let row =
        db.bound("SELECT ?,?,?,?,?,?,?,?,?,?", &Bindings::Positional(values.clone())).unwrap();

    let mut expected = values;
    expected[9] = 1.into();
    assert_eq!(integers(&row), [expected]);
    let nan = Bindings::Positional(vec![f64::NAN.into()]);
    assert_eq!(integers(&db.bound("SELECT ?", &nan).unwrap()), [[SqlValue::Null]]);
}

#[test]
fn text_that_is_not_utf_8_has_its_faulty_parts_replaced() {
    let db = Fixture::new();

    assert_eq!(db.one("SELECT CAST(x'61ff62' AS TEXT)"), "a\u{FFFD}b".into());
}

#[test]
fn changes_and_row_id_are_those_of_the_statement_itself() {
    let db = Fixture::new();
    let created = db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").unwrap();
    assert_eq!((created.changes, created.last_insert_row_id), (0, None));

    let inserted = db.execute("INSERT INTO t (x) VALUES (1)").unwrap();
    assert_eq!((inserted.changes, inserted.last_insert_row_id), (1, Some(1)));

    for sql in ["SELECT * FROM t", "CREATE TABLE u (x)", "UPDATE t SET x = 2 WHERE id = 9"] {
        let outcome = db.execute(sql).unwrap();
        assert_eq!((outcome.changes, outcome.last_insert_row_id), (0, None), "{sql}");
    }

    let returned = db.execute("INSERT INTO t (x) VALUES (7), (8) RETURNING id, x").unwrap();
    assert_eq!((returned.changes, returned.last_insert_row_id), (2, Some(3)));
    assert_eq!(returned.rows.columns(), ["id", "x"]);
    assert_eq!(
        integers(&returned),
        [[2.into(), 7.into()], [3.into(), 8.into()]] as [[SqlValue; 2]; 2]
    );
}

#[test]
fn rows_that_triggers_write_count_as_written_and_not_as_changes() {
    let db = Fixture::new();
    db.exec(
        "CREATE TABLE t (x); CREATE TABLE log (x);
         CREATE TRIGGER a AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.x); END;",
    )
    .unwrap();

    let outcome = db.execute("INSERT INTO t VALUES (1)").unwrap();

    assert_eq!((outcome.changes, outcome.rows_written), (1, 2));
}

#[test]
fn pragmas_and_selects_without_rows_have_columns() {
    let db = Fixture::new();

    assert_eq!(integers(&db.execute("PRAGMA user_version").unwrap()), [[SqlValue::Integer(0)]]);
    let empty = db.execute("SELECT 1 AS a, 2 AS a WHERE 0").unwrap();
    assert_eq!(
        (empty.rows.columns(), empty.rows.len()),
        (&["a".to_owned(), "a".to_owned()][..], 0)
    );
}

#[test]
fn a_text_of_several_answers_the_last_rows_and_stops_at_a_failure() {
    let db = Fixture::new();

    let outcome = db
        .exec(
            "CREATE TABLE t (x UNIQUE); -- one
             SELECT 'first';; INSERT INTO t VALUES (1), (2);
             SELECT count(*) AS n FROM t; DELETE FROM t WHERE x = 2",
        )
        .unwrap();

    assert_eq!(outcome.rows.columns(), ["n"]);
    assert_eq!(integers(&outcome), [[SqlValue::Integer(2)]]);

    let failed = fault(db.exec("INSERT INTO t VALUES (5);; INSERT INTO t VALUES (1); SELECT 1"));
    assert_eq!(failed, (ffi::SQLITE_CONSTRAINT_UNIQUE, 1, "UNIQUE constraint failed: t.x".into()));
    assert_eq!(ffi::SQLITE_CONSTRAINT_UNIQUE, 2067);
    assert_eq!(db.one("SELECT count(*) FROM t"), 2.into());
}

#[test]
fn too_many_values_are_out_of_range_and_missing_ones_null() {
    let db = Fixture::new();

    let many = fault(db.bound("SELECT ?", &positional([1, 2])));
    assert_eq!(many, (ffi::SQLITE_RANGE, 0, "column index out of range".into()));
    let few = db.bound("SELECT ?, ?", &positional([1])).unwrap();
    assert_eq!(integers(&few), [[1.into(), SqlValue::Null]]);
    // Nothing of an earlier call is left in a statement that comes again.
    assert_eq!(integers(&db.execute("SELECT ?, ?").unwrap()), [[SqlValue::Null, SqlValue::Null]]);
}

#[test]
fn a_name_is_looked_up_exactly_then_bare_then_with_another_sigil() {
    let db = Fixture::new();
    let find = |values| db.bound("SELECT :a, @b, $c, :a", &values).map(|row| integers(&row));
    let row = |values: [i64; 4]| Ok(vec![values.map(SqlValue::from).to_vec()]);

    assert_eq!(find(named([(":a", 1), ("b", 2), ("@c", 3), ("more", 4)])), row([1, 2, 3, 1]));
    assert_eq!(
        find(named([("@a", 9), ("a", 8), (":a", 1), ("$b", 9), ("b", 2), ("c", 3)])),
        row([1, 2, 3, 1])
    );
    let missing = find(named([("a", 1), ("b", 2)]));
    assert_eq!(
        missing,
        Err(SqlError::InvalidBindParameter { name: "$c".into(), reason: "missing parameter" })
    );
}

#[test]
fn a_name_in_a_literal_or_a_comment_is_none() {
    let db = Fixture::new();

    let row = db.bound("SELECT ':b', :a -- :c", &named([("a", 1)])).unwrap();

    assert_eq!(integers(&row), [[":b".into(), 1.into()]] as [[SqlValue; 2]; 1]);
}

#[test]
fn without_names_in_the_statement_the_values_keep_their_order() {
    let db = Fixture::new();

    let row = db.bound("SELECT ?2, ?1", &named([("x", 1), ("y", 2)])).unwrap();

    assert_eq!(integers(&row), [[2.into(), 1.into()]] as [[SqlValue; 2]; 1]);
}

#[test]
fn a_statement_is_prepared_once_and_again_after_the_schema_changed() {
    let db = Fixture::new();
    db.execute("CREATE TABLE t (x)").unwrap();
    db.execute("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(db.execute("SELECT * FROM t").unwrap().rows.columns(), ["x"]);

    db.execute("ALTER TABLE t ADD COLUMN y").unwrap();

    let after = db.execute("SELECT * FROM t").unwrap();
    assert_eq!(integers(&after), [[1.into(), SqlValue::Null]]);
}

#[test]
fn a_statement_that_failed_leaves_nothing_open() {
    let db = Fixture::new();
    db.execute("CREATE TABLE t (x)").unwrap();
    db.execute("INSERT INTO t VALUES (1), (2)").unwrap();

    fault(db.execute("SELECT abs(CASE x WHEN 2 THEN -9223372036854775808 ELSE x END) FROM t"));

    assert!(!db.sqlite.is_busy());
}

#[test]
fn rows_that_take_too_much_memory_are_refused_unless_they_were_written() {
    let db = Fixture::new();
    db.execute("CREATE TABLE t (x)").unwrap();

    let written = db.execute("INSERT INTO t VALUES (zeroblob(1000000)), (1) RETURNING x").unwrap();
    assert_eq!(written.rows.len(), 2);
    assert_eq!(fault(db.execute("SELECT x, x FROM t")).0, ffi::SQLITE_TOOBIG);
    assert!(!db.sqlite.is_busy());
}

proptest::proptest! {
    #[test]
    fn any_text_and_bytes_come_back(text in "\\PC{0,30}", bytes: Vec<u8>, number: i64) {
        let db = Fixture::new();
        let values: Vec<SqlValue> = vec![text.as_str().into(), bytes.into(), number.into()];

        let row = db.bound("SELECT ?, ?, ?", &Bindings::Positional(values.clone())).unwrap();

        proptest::prop_assert_eq!(integers(&row), [values]);
    }
}
