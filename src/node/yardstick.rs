//! What the benchmark holds greenroom against.

use napi::Env;
use napi_derive::napi;

use super::error::thrown;
use super::guard::trip;
use crate::store::plain_commits;

/// Group commits by SQLite alone, with the settings of the store: `groups` of `rows`
/// rows of `bytes` bytes. Blocks the thread; for the benchmark only.
#[napi(catch_unwind, js_name = "__plainCommits")]
pub fn plain_group_commits(
    env: Env,
    path: String,
    groups: u32,
    rows: u32,
    bytes: u32,
) -> napi::Result<()> {
    trip();
    plain_commits(path.into(), groups, rows, bytes as usize).map_err(|error| thrown(&env, error))
}
