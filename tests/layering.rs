//! Checks the arrows of `src/lib.rs`: which part may import which, where napi and
//! SQL may be named, and how long a file may be.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// What each part may import besides itself. A part that is missing here has no
/// place in the layout.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("ids", BASE),
    ("time", BASE),
    ("error", BASE),
    ("metrics", BASE),
    ("protocol", BASE),
    ("store", &["ids", "time", "error", "metrics", "protocol"]),
    ("core", &["ids", "time", "error", "metrics", "protocol", "store"]),
    ("host", OVER_CORE),
    ("gateway", OVER_HOST),
    ("inspector", &["ids", "time", "error", "metrics", "protocol"]),
    (
        "node",
        &[
            "ids",
            "time",
            "error",
            "metrics",
            "protocol",
            "store",
            "core",
            "host",
            "gateway",
            "inspector",
        ],
    ),
];
const BASE: &[&str] = &["ids", "time", "error", "metrics"];
const OVER_CORE: &[&str] = &["ids", "time", "error", "metrics", "protocol", "store", "core"];
/// It stands in front of a host, which knows nothing of it.
const OVER_HOST: &[&str] =
    &["ids", "time", "error", "metrics", "protocol", "store", "core", "host", "inspector"];

/// Crates that one part alone may name.
const OWNED_CRATES: &[(&str, &str)] =
    &[("napi", "node"), ("napi_derive", "node"), ("rusqlite", "store"), ("ciborium", "core")];

/// Crates that one module alone may name: calendars are nobody else's matter.
const OWNED_BY_MODULE: &[(&str, &str)] = &[
    ("chrono", "src/core/schedule/cron"),
    ("chrono_tz", "src/core/schedule/cron"),
    ("croner", "src/core/schedule/cron"),
];

/// How SQL text is recognised in a string outside of `store`.
const SQL: &[&str] = &[
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE FROM",
    "CREATE ",
    "ALTER ",
    "DROP ",
    "PRAGMA ",
    "SAVEPOINT ",
    "BEGIN ",
    "ATTACH ",
];

/// The most lines of a file.
const MAX_LINES: usize = 500;

#[test]
fn every_file_keeps_to_the_layout() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = rust_files(&root.join("src"));
    assert!(sources.len() > 10, "only {} files found: wrong folder?", sources.len());
    sources.extend(rust_files(&root.join("tests")));

    let faults: Vec<String> = sources
        .iter()
        .flat_map(|file| {
            let path = file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            faults(&path, &fs::read_to_string(file).unwrap())
        })
        .collect();

    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn an_import_against_the_arrows_is_found_however_it_is_written() {
    let cases = [
        ("src/store/a.rs", "use crate::core::Actor;"),
        ("src/store/a.rs", "use crate::{ids::ActorId, core::{Actor}};"),
        ("src/store/a.rs", "fn f() { crate::core::start::<u8>(1) }"),
        ("src/store/a.rs", "pub use super::super::core::Actor;"),
        ("src/store/mod.rs", "use super::core::Actor;"),
        ("src/store/a.rs", "mod tests { use super::super::super::core::Actor; }"),
        ("src/time.rs", "use crate::store::Place;"),
        ("src/error.rs", "use crate::*;"),
        ("src/core/a.rs", "use crate::host::Host;"),
        ("src/host/a.rs", "use crate::gateway::Server;"),
        ("src/gateway/a.rs", "use crate::node::Registry;"),
        ("src/core/a.rs", "use crate::store::queue::Job;"),
        ("src/misplaced.rs", "use crate::ids::ActorId;"),
    ];

    for (path, source) in cases {
        assert_eq!(faults(path, source).len(), 1, "{path}: {source}");
    }
}

#[test]
fn imports_along_the_arrows_are_accepted() {
    let cases = [
        ("src/core/a.rs", "use crate::store::{ActorStore, WriteBatch};"),
        ("src/core/a.rs", "use crate::core::b::C; pub(crate) use self::d::E;"),
        ("src/core/a/b.rs", "use super::super::c::D; mod tests { use super::*; }"),
        ("src/store/a.rs", "use core::fmt; use crate::store::queue::Job;"),
        ("src/host/a.rs", "use crate::{core::Host, store::SharedStore, time::Clock};"),
        ("src/node/a.rs", "use napi::Env; use crate::gateway::Server;"),
        ("src/lib.rs", "pub mod core; pub use crate::core::Actor;"),
        ("src/store/a.rs", "// crate::core::Actor\n/* use crate::core; */ /// [`crate::core`]"),
        ("src/store/a.rs", r##"const A: &str = r#""use crate::core::B;"#; const B: char = '"';"##),
        ("src/store/a.rs", "fn f<'a>(x: &'a str) -> char { 'a' }"),
    ];

    for (path, source) in cases {
        assert_eq!(faults(path, source), [""; 0], "{path}: {source}");
    }
}

#[test]
fn napi_and_sql_are_named_in_their_place_only() {
    assert_eq!(faults("src/core/a.rs", "use napi::Env;").len(), 1);
    assert_eq!(faults("src/lib.rs", "extern crate napi_derive;").len(), 1);
    assert_eq!(faults("src/host/a.rs", "type C = rusqlite::Connection;").len(), 1);
    assert_eq!(faults("src/core/schedule/take.rs", "use chrono::Utc;").len(), 1);
    assert_eq!(faults("src/host/a.rs", "use chrono_tz::Tz;").len(), 1);
    assert_eq!(faults("src/core/a.rs", "const Q: &str = \"SELECT 1\";").len(), 1);
    assert_eq!(faults("src/host/a.rs", "const Q: &str = r#\"\n  DELETE FROM t\"#;").len(), 1);

    assert_eq!(faults("src/core/schedule/cron/tests.rs", "use chrono::Utc;"), [""; 0]);
    assert_eq!(faults("src/store/a.rs", "const Q: &str = \"SELECT 1\";"), [""; 0]);
    assert_eq!(faults("src/gateway/a.rs", "const M: &str = \"DELETE\"; // SELECT 1"), [""; 0]);
    assert_eq!(faults("tests/a.rs", "const Q: &str = \"SELECT 1\"; use rusqlite::X;"), [""; 0]);
}

#[test]
fn a_file_that_should_be_split_is_found() {
    let longest = "\n".repeat(MAX_LINES);

    assert_eq!(faults("src/core/a.rs", &longest), [""; 0]);
    assert_eq!(faults("src/core/a.rs", &(longest.clone() + "\n")).len(), 1);
    assert_eq!(faults("tests/a.rs", &(longest + "\n")).len(), 1);
}

/// What is wrong with a file, one line each. `path` is relative to the project.
fn faults(path: &str, source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = source.lines().count();
    if lines > MAX_LINES {
        faults.push(format!("{path}: {lines} lines, the limit is {MAX_LINES}"));
    }
    // Tests outside of the crate see only what is public.
    let Some(inside) = path.strip_prefix("src/") else { return faults };
    let module: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    let module = match module.as_slice() {
        ["lib"] => &[],
        [folder @ .., "mod"] => folder,
        file => file,
    };
    let part = module.first().copied().unwrap_or("lib");
    let tokens = tokens(source);
    for token in &tokens {
        match &token.kind {
            Kind::Word(word) => {
                let owner = OWNED_CRATES.iter().find(|(name, _)| name == word);
                let module = OWNED_BY_MODULE.iter().find(|(name, _)| name == word);
                let owner = owner.filter(|(_, owner)| *owner != part);
                let module = module.filter(|(_, module)| !path.starts_with(module));
                if let Some((name, owner)) = owner.or(module) {
                    faults.push(format!("{path}:{}: {name} belongs to {owner}", token.line));
                }
            }
            Kind::Text(text) if part != "store" && is_sql(text) => {
                faults.push(format!("{path}:{}: SQL belongs to store", token.line));
            }
            _ => {}
        }
    }
    if part == "lib" {
        return faults;
    }
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == part) else {
        faults.push(format!("{path}: {part} has no place in the layout"));
        return faults;
    };
    for (line, target) in imports(&tokens, module) {
        let name = target.join("::");
        let first = target.first().map_or("", String::as_str);
        let deep = first == "store" && part != "store" && target.len() > 2 && {
            target[1].starts_with(|c: char| c.is_lowercase())
        };
        if first != part && !allowed.contains(&first) {
            faults.push(format!("{path}:{line}: {part} may not import crate::{name}"));
        } else if deep {
            faults.push(format!("{path}:{line}: crate::{name} is not the public face of store"));
        }
    }
    faults
}

fn is_sql(text: &str) -> bool {
    SQL.iter().any(|keyword| {
        text.match_indices(keyword)
            .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Every path into the crate, from the crate's root, with its line.
fn imports(tokens: &[Token], module: &[&str]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
    // The depth of braces, and at which depths a module inside the file begins.
    let mut depth = 0;
    let mut inner = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let after = |n: usize| tokens.get(at + n).map(|token| &token.kind);
        match &token.kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') => {
                depth -= 1;
                if inner.last() == Some(&depth) {
                    inner.pop();
                    module.pop();
                }
            }
            Kind::Word(word) if word == "mod" => {
                if let (Some(Kind::Word(name)), Some(Kind::Mark('{'))) = (after(1), after(2)) {
                    inner.push(depth);
                    module.push(name.clone());
                }
            }
            Kind::Word(word) if matches!(word.as_str(), "crate" | "super") => {
                let continues = at > 0 && tokens[at - 1].kind == Kind::Path;
                if continues || after(1) != Some(&Kind::Path) {
                    continue;
                }
                let base = if word == "super" { &module[..module.len() - 1] } else { &[] };
                let mut rest = tokens[at + 2..].iter().map(|token| &token.kind).collect();
                let mut paths = Vec::new();
                read_tree(&mut rest, base.to_vec(), &mut paths);
                found.extend(paths.into_iter().map(|path| (token.line, path)));
            }
            _ => {}
        }
    }
    found
}

/// Reads what follows `prefix::`: a name, a star, or a group in braces.
fn read_tree(rest: &mut VecDeque<&Kind>, mut prefix: Vec<String>, paths: &mut Vec<Vec<String>>) {
    loop {
        match rest.pop_front() {
            Some(Kind::Word(word)) if word == "super" => drop(prefix.pop()),
            Some(Kind::Word(word)) if word == "self" => {}
            Some(Kind::Word(word)) => prefix.push(word.clone()),
            Some(Kind::Mark('{')) => {
                while !matches!(rest.front(), None | Some(Kind::Mark('}'))) {
                    read_tree(rest, prefix.clone(), paths);
                    // An alias, then the comma; what is left is the next name.
                    while !matches!(rest.front(), None | Some(Kind::Mark(',' | '}'))) {
                        rest.pop_front();
                    }
                    if rest.front() == Some(&&Kind::Mark(',')) {
                        rest.pop_front();
                    }
                }
                rest.pop_front();
                return;
            }
            // A star, or type arguments, which are paths of their own.
            _ => return paths.push(prefix),
        }
        if rest.front() != Some(&&Kind::Path) {
            return paths.push(prefix);
        }
        rest.pop_front();
    }
}

struct Token {
    line: usize,
    kind: Kind,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Word(String),
    /// What a string literal contains.
    Text(String),
    /// `::`
    Path,
    Mark(char),
}

/// Splits source text; comments, spaces, characters and lifetimes are left out.
fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(c) = rest.chars().next() {
        let mut push = |kind| tokens.push(Token { line, kind });
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some((len, text)) = string(rest) {
            push(Kind::Text(text.to_owned()));
            len
        } else if c == '\'' {
            character(rest)
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            push(Kind::Word(rest[..end].to_owned()));
            end
        } else if rest.starts_with("::") {
            push(Kind::Path);
            2
        } else {
            if !c.is_whitespace() {
                push(Kind::Mark(c));
            }
            c.len_utf8()
        };
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    tokens
}

/// The length of a block comment, which may contain others.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length and the contents of a string literal that begins here.
fn string(rest: &str) -> Option<(usize, &str)> {
    let body = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - body.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = body.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw[hashes..].strip_prefix('"')?;
        let end = inside.find(&format!("\"{}", "#".repeat(hashes)))?;
        return Some((prefix + 1 + hashes + 1 + end + 1 + hashes, &inside[..end]));
    }
    let inside = body.strip_prefix('"')?;
    let mut escaped = false;
    let end = inside.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((prefix + 1 + end + 1, &inside[..end]))
}

/// The length of a character literal, or of the tick of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        // The escaped character itself may be a tick.
        (Some((_, '\\')), Some(_)) => {
            chars.find(|(_, c)| *c == '\'').map_or(rest.len(), |(at, _)| at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
