//! What an author's SQL is kept from.

use rusqlite::ffi;

use super::*;

#[track_caller]
fn denied<T: std::fmt::Debug>(sql: &str, result: Result<T, SqlError>) {
    match result {
        Err(SqlError::Statement { code: ffi::SQLITE_AUTH, .. }) => {}
        // SQLite has no code of its own for a function that is not allowed.
        Err(SqlError::Statement { message, .. }) if message.starts_with("not authorized") => {}
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn the_tables_of_the_runtime_are_readable_and_not_writable() {
    let db = Fixture::new();
    db.exec("CREATE TABLE t (x); CREATE TEMP TABLE tt (x)").unwrap();

    for sql in [
        "INSERT INTO _gr_kv VALUES (1, 'x', 'y')",
        "UPDATE _GR_KV SET value = 'x'",
        "DELETE FROM main._gr_kv",
        "DROP TABLE _gr_kv",
        "DROP VIEW _rivet_user_kv",
        "ALTER TABLE _gr_kv RENAME TO mine",
        "ALTER TABLE _gr_kv ADD COLUMN mine",
        "ALTER TABLE t RENAME TO _gr_x",
        "ALTER TABLE temp.tt RENAME TO \"_GR_kv\"",
        "EXPLAIN ALTER TABLE temp.tt RENAME TO [_gr_kv]",
        "CREATE INDEX mine ON _gr_kv (value)",
        "CREATE INDEX _gr_mine ON t (x)",
        "CREATE TRIGGER mine AFTER INSERT ON _gr_kv BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER mine AFTER INSERT ON _gr_kv BEGIN SELECT 1; END",
        "CREATE TRIGGER mine INSTEAD OF INSERT ON _rivet_user_kv BEGIN SELECT 1; END",
        "CREATE TEMP TABLE _gr_kv (x)",
        "CREATE TEMP VIEW _gr_kv AS SELECT 1",
        "CREATE TABLE _rivet_mine (x)",
        "CREATE TABLE mine (a, b, FOREIGN KEY (a, b) REFERENCES _gr_kv ON DELETE RESTRICT)",
        "ALTER TABLE t ADD COLUMN y REFERENCES \"_gr_kv\" (key)",
        "ALTER TABLE t RENAME TO \u{FEFF}_gr_x",
        "ALTER TABLE t RENAME TO _gr",
        "CREATE VIRTUAL TABLE _gr USING fts5(x)",
        "CREATE VIRTUAL TABLE _gr_f USING fts5(x)",
        "DROP TABLE _rivet_wf_kv",
        "CREATE TRIGGER mine AFTER INSERT ON _rivet_wf_kv BEGIN SELECT 1; END",
    ] {
        denied(sql, db.execute(sql));
        denied(sql, db.exec(sql));
    }
    assert_eq!(db.one("SELECT value FROM _gr_kv"), "b".into());
    assert_eq!(db.one("SELECT value FROM _rivet_user_kv"), "b".into());
}

#[test]
fn a_trigger_of_an_author_cannot_write_them_either() {
    let db = Fixture::new();
    let sql = "CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM _gr_kv; END";
    db.execute("CREATE TABLE t (x)").unwrap();

    db.execute(sql).unwrap();

    denied(sql, db.execute("INSERT INTO t VALUES (1)"));
    assert_eq!(db.one("SELECT count(*) FROM _gr_kv"), 1.into());
}

#[test]
fn the_tables_of_an_author_are_his_to_change() {
    let db = Fixture::new();

    db.exec(
        "CREATE TABLE t (x); CREATE INDEX i ON t (x); CREATE VIEW v AS SELECT x FROM t;
         ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME COLUMN x TO y; ALTER TABLE u ADD z;
         CREATE TRIGGER a AFTER INSERT ON u BEGIN SELECT 1; END; CREATE TEMP TABLE w (x);
         CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('a word');
         CREATE VIRTUAL TABLE r USING rtree(id, x0, x1); INSERT INTO r VALUES (1, 2, 3);
         CREATE VIRTUAL TABLE g USING fts3(x); INSERT INTO g VALUES ('a word'); ANALYZE; REINDEX;
         INSERT INTO u VALUES (1, 2); DROP TRIGGER a; DROP VIEW v; DROP INDEX i; DROP TABLE w;",
    )
    .unwrap();

    assert_eq!(db.one("SELECT y + z FROM u"), 3.into());
    assert_eq!(db.one("SELECT count(*) FROM f WHERE f MATCH 'word'"), 1.into());
}

#[test]
fn the_rows_of_workflows_are_writable() {
    let db = Fixture::new();

    db.execute("INSERT INTO _rivet_wf_kv VALUES (x'0601', x'00')").unwrap();
    db.execute("UPDATE _rivet_wf_kv SET value = x'01'").unwrap();

    assert_eq!(db.execute("DELETE FROM _rivet_wf_kv").unwrap().changes, 1);
}

#[test]
fn no_statement_reaches_another_file_or_changes_how_commits_are_kept() {
    let db = Fixture::new();

    for sql in [
        "ATTACH '/tmp/other.db' AS other",
        "ATTACH ('/tmp/' || 'other.db') AS other",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO '/tmp/other.db'",
        "SELECT load_extension('x')",
        "PRAGMA synchronous = OFF",
        "PRAGMA main.synchronous",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA locking_mode = NORMAL",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA writable_schema = ON",
        "PRAGMA database_list",
        "PRAGMA page_size = 512",
        "PRAGMA temp_store_directory = '/tmp'",
        "SELECT * FROM pragma_database_list",
    ] {
        denied(sql, db.execute(sql));
        denied(sql, db.exec(sql));
    }
}

#[test]
fn the_pragmas_of_the_list_are_answered_also_as_functions() {
    let db = Fixture::new();
    db.execute("CREATE TABLE t (x)").unwrap();

    assert_eq!(db.execute("PRAGMA table_info(t)").unwrap().rows.len(), 1);
    assert_eq!(db.one("SELECT name FROM pragma_table_info('t')"), "x".into());
    assert_eq!(db.one("PRAGMA integrity_check"), "ok".into());
    db.execute("PRAGMA user_version = 7").unwrap();
    assert_eq!(db.one("PRAGMA user_version"), 7.into());
}

#[test]
fn the_runtime_is_not_fenced_not_even_after_a_change_of_the_schema() {
    let db = Fixture::new();
    let write = || {
        let mut statement = db.sqlite.prepare_cached("UPDATE _gr_kv SET value = value").unwrap();
        statement.execute([])
    };
    assert_eq!(write(), Ok(1));

    // The statement above is prepared again within its next step.
    db.execute("CREATE TABLE t (x)").unwrap();

    assert_eq!(write(), Ok(1));
}

#[test]
fn a_statement_of_the_runtime_is_not_lent_to_an_author_who_knows_its_text() {
    let db = Fixture::new();
    let sql = "UPDATE _gr_kv SET value = value";
    db.sqlite.prepare_cached(sql).unwrap().execute([]).unwrap();

    denied(sql, db.execute(sql));
}

#[test]
fn a_name_is_not_hidden_by_an_odd_parameter_before_it() {
    let db = Fixture::new();
    db.execute("CREATE TEMP TABLE t (x)").unwrap();
    let sql = "SELECT $a('); ALTER TABLE temp.t RENAME TO _gr_kv";

    denied(sql, db.exec(sql));
    denied(sql, SqlTurn::default().run(&db.session(), sql, &Bindings::None));
    assert_eq!(db.one("SELECT value FROM _gr_kv"), "b".into());
}

#[test]
fn what_is_temporary_is_noticed() {
    for (sql, temporary) in [
        ("CREATE TABLE t (x)", false),
        ("CREATE TEMP TABLE t (x)", true),
        ("CREATE TEMP VIEW t AS SELECT 1", true),
        ("CREATE VIRTUAL TABLE temp.t USING fts5(x)", true),
    ] {
        let db = Fixture::new();
        db.execute(sql).unwrap();
        assert_eq!(db.user.has_temporary(), temporary, "{sql}");
    }
}

#[test]
fn a_refused_statement_stays_refused_when_it_comes_again() {
    let db = Fixture::new();
    db.execute("CREATE TEMP TABLE t (x)").unwrap();

    for _ in 0..3 {
        let sql = "ALTER TABLE t RENAME TO _gr_kv";
        denied(sql, db.execute(sql));
        denied("BEGIN", SqlTurn::default().run(&db.session(), "BEGIN", &Bindings::None));
        db.execute("BEGIN").unwrap();
        db.execute("COMMIT").unwrap();
    }
}

#[test]
fn foreign_keys_are_a_setting_that_waits_for_the_end_of_a_transaction() {
    let db = Fixture::new();
    assert_eq!(db.one("PRAGMA foreign_keys"), 0.into());

    db.execute("BEGIN").unwrap();
    db.execute("PRAGMA foreign_keys = ON").unwrap();
    assert_eq!(db.one("PRAGMA foreign_keys"), 0.into());
    db.session().settle().unwrap();
    assert_eq!(db.one("PRAGMA foreign_keys"), 0.into());
    db.execute("COMMIT").unwrap();
    db.session().settle().unwrap();

    assert_eq!((db.one("PRAGMA foreign_keys"), db.user.foreign_keys()), (1.into(), Some(true)));
    db.execute("PRAGMA foreign_keys = 0").unwrap();
    assert_eq!((db.one("PRAGMA foreign_keys"), db.user.foreign_keys()), (0.into(), Some(false)));
}
