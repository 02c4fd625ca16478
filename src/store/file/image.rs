//! The bytes of an actor file without rows: written as they are, a new file needs no
//! statement to make its tables.

use std::sync::OnceLock;

use rusqlite::Connection;

use super::schema;
use crate::store::StoreError;
use crate::store::connection::Database;

/// Where the header of a database says how it is written and read; 2 is the
/// write-ahead log.
const JOURNAL_VERSIONS: std::ops::Range<usize> = 18..20;

/// The image, made once in a process.
pub(super) fn image() -> Result<&'static [u8], StoreError> {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(image) = IMAGE.get() {
        return Ok(image);
    }
    let made = make()?;
    Ok(IMAGE.get_or_init(|| made))
}

fn make() -> Result<Vec<u8>, StoreError> {
    let database = Database::Memory;
    let fault = |error: rusqlite::Error| database.fault(&error);
    let mut sqlite = Connection::open_in_memory().map_err(fault)?;
    sqlite.execute_batch("PRAGMA page_size=4096; PRAGMA auto_vacuum=NONE;").map_err(fault)?;
    schema::migrate(&sqlite, &database)?;
    let mut image = sqlite.serialize("main").map_err(fault)?.to_vec();
    // A database in memory has no log, so the header has to be told.
    image[JOURNAL_VERSIONS].fill(2);
    Ok(image)
}
