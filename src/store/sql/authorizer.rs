//! What an author's SQL may do to the database that it shares with the runtime.
//!
//! SQLite asks one callback about everything that a statement would do. It is
//! installed once, at opening, since installing it makes every prepared statement
//! expire.
//!
//! # Invariants
//!
//! 1. A statement of an author is prepared and stepped with the flag of its
//!    [`SqlWay`] set: SQLite prepares again within a step when the schema has changed,
//!    and `VACUUM` and the functions of pragmas ask within a step only.
//! 2. A statement of the runtime is prepared and stepped without the flag, also
//!    one that follows a statement of an author which panicked.
//! 3. What this does not know is denied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The names that belong to the runtime are these, or go on with `_`.
const RESERVED: [&str; 2] = ["_gr", "_rivet"];
/// The one reserved table whose rows an author may write.
const WRITABLE: &str = "_rivet_wf_kv";
const PRAGMAS: [&str; 10] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "foreign_key_list",
    "foreign_keys",
    "user_version",
    "quick_check",
    "integrity_check",
];
/// Pragmas that can only be read: the modules for full text and for areas ask for them.
const READABLE_PRAGMAS: [&str; 2] = ["data_version", "page_size"];

/// By which way an author's statement comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlWay {
    /// Within a turn, whose transaction no statement may begin or end.
    Turn = 1,
    /// On its own, between turns; it may begin and end a transaction by hand.
    Queue = 2,
}

/// The flags of one connection.
///
/// Atomic only because SQLite's callback must be `Send`: they are read and changed
/// by whoever uses the connection, one at a time.
#[derive(Debug, Default)]
pub(super) struct Authority {
    /// The [`SqlWay`] of the statement in work, 0 for one of the runtime. Set by
    /// [`Authority::lend`], [`Authority::withdraw`] and their guards.
    way: AtomicU8,
    /// What an author last said of `foreign_keys`: 0 nothing, 1 off, 2 on. Set by
    /// the callback.
    foreign_keys: AtomicU8,
    /// Whether an author has made anything temporary. Set by the callback.
    has_temporary: AtomicBool,
}

/// Sets the flag back when it is dropped (invariant 2).
#[must_use = "the flag is set back at once"]
pub(super) struct Lent<'a> {
    authority: &'a Authority,
    before: u8,
}

impl Authority {
    /// Has SQLite ask for every statement from here on.
    pub(super) fn install(sqlite: &mut Connection) -> rusqlite::Result<Arc<Self>> {
        let authority = Arc::new(Self::default());
        let asked = Arc::clone(&authority);
        sqlite.authorizer(Some(move |context: AuthContext<'_>| asked.judge(&context)))?;
        Ok(authority)
    }

    /// Sets the flag for as long as the guard lives.
    pub(super) fn lend(&self, way: SqlWay) -> Lent<'_> {
        Lent { authority: self, before: self.way.swap(way as u8, Ordering::Relaxed) }
    }

    /// Clears the flag for as long as the guard lives, for a statement of the runtime
    /// on the way of an author's.
    pub(super) fn withdraw(&self) -> Lent<'_> {
        Lent { authority: self, before: self.way.swap(0, Ordering::Relaxed) }
    }

    /// What an author last said of foreign keys, if anything.
    pub(super) fn foreign_keys(&self) -> Option<bool> {
        match self.foreign_keys.load(Ordering::Relaxed) {
            0 => None,
            said => Some(said == 2),
        }
    }

    /// Whether an author may have made anything temporary.
    pub(super) fn has_temporary(&self) -> bool {
        self.has_temporary.load(Ordering::Relaxed)
    }

    pub(super) fn set_foreign_keys(&self, on: bool) {
        self.foreign_keys.store(1 + u8::from(on), Ordering::Relaxed);
    }

    /// Makes true what an author last said of foreign keys. SQLite ignores the pragma
    /// within a transaction, so within every turn; hence this between turns.
    pub(super) fn settle(&self, sqlite: &Connection) -> rusqlite::Result<()> {
        let Some(on) = self.foreign_keys() else { return Ok(()) };
        if sqlite.is_autocommit() && sqlite.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY)? != on
        {
            sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, on)?;
        }
        Ok(())
    }

    fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        let way = self.way.load(Ordering::Relaxed);
        if way == 0 {
            return Authorization::Allow;
        }
        let makes_temporary = matches!(
            context.action,
            AuthAction::CreateTempTable { .. }
                | AuthAction::CreateTempView { .. }
                | AuthAction::CreateTempTrigger { .. }
        );
        // A virtual table has no action of its own for it.
        if makes_temporary || context.database_name == Some("temp") {
            self.has_temporary.store(true, Ordering::Relaxed);
        }
        if self.allows(way, &context.action) { Authorization::Allow } else { Authorization::Deny }
    }

    fn allows(&self, way: u8, action: &AuthAction<'_>) -> bool {
        match *action {
            AuthAction::Select
            | AuthAction::Read { .. }
            | AuthAction::Recursive
            | AuthAction::Analyze { .. }
            | AuthAction::Reindex { .. } => true,
            AuthAction::Insert { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Delete { table_name } => {
                !is_reserved(table_name) || table_name.eq_ignore_ascii_case(WRITABLE)
            }
            AuthAction::CreateTable { table_name }
            | AuthAction::CreateTempTable { table_name }
            | AuthAction::CreateVtable { table_name, .. }
            | AuthAction::DropTable { table_name }
            | AuthAction::DropTempTable { table_name }
            | AuthAction::DropVtable { table_name, .. }
            | AuthAction::AlterTable { table_name, .. } => !is_reserved(table_name),
            AuthAction::CreateView { view_name }
            | AuthAction::CreateTempView { view_name }
            | AuthAction::DropView { view_name }
            | AuthAction::DropTempView { view_name } => !is_reserved(view_name),
            AuthAction::CreateIndex { index_name: name, table_name }
            | AuthAction::CreateTempIndex { index_name: name, table_name }
            | AuthAction::DropIndex { index_name: name, table_name }
            | AuthAction::DropTempIndex { index_name: name, table_name }
            | AuthAction::CreateTrigger { trigger_name: name, table_name }
            | AuthAction::CreateTempTrigger { trigger_name: name, table_name }
            | AuthAction::DropTrigger { trigger_name: name, table_name }
            | AuthAction::DropTempTrigger { trigger_name: name, table_name } => {
                !is_reserved(name) && !is_reserved(table_name)
            }
            AuthAction::Function { function_name } => {
                !function_name.eq_ignore_ascii_case("load_extension")
            }
            AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
                way == SqlWay::Queue as u8
            }
            AuthAction::Pragma { pragma_name, pragma_value } => {
                self.allows_pragma(pragma_name, pragma_value)
            }
            // ATTACH and DETACH reach other files; one whose name is an expression
            // comes as unknown.
            _ => false,
        }
    }

    fn allows_pragma(&self, name: &str, value: Option<&str>) -> bool {
        if let Some(value) = value.filter(|_| name.eq_ignore_ascii_case("foreign_keys")) {
            self.set_foreign_keys(is_true(value));
        }
        let is_one_of = |list: &[&str]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
        is_one_of(&PRAGMAS) || (value.is_none() && is_one_of(&READABLE_PRAGMAS))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.authority.way.store(self.before, Ordering::Relaxed);
    }
}

/// Whether a name belongs to the runtime. SQLite tells names apart without regard to
/// case. The bare prefix counts too: a virtual table of that name has others behind it
/// whose names go on with `_`.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|prefix| {
        let (Some(start), Some(rest)) = (name.get(..prefix.len()), name.get(prefix.len()..)) else {
            return false;
        };
        start.eq_ignore_ascii_case(prefix) && (rest.is_empty() || rest.starts_with('_'))
    })
}

/// How SQLite reads the value of a pragma that is on or off.
fn is_true(value: &str) -> bool {
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 {
        return value[..digits].contains(|digit| digit != '0');
    }
    ["on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
}
