//! Many callers at once, with the connection on a thread of its own.

use std::sync::{Arc, mpsc};
use std::thread;

use super::*;
use crate::ids::IdSource;
use crate::time::Clock;

const CALLERS: i64 = 8;
const TIMES: i64 = 25;

struct Thread(mpsc::Sender<SqlWork>);

impl SqlHost for Thread {
    fn run(&self, work: SqlWork) {
        assert!(self.0.send(work).is_ok(), "the thread ends after the last sender only");
    }

    fn deadline_changed(&self) {}

    fn failed(&self, error: &SqlError) {
        panic!("{error}");
    }

    fn label(&self) -> String {
        "a.1.db".to_owned()
    }
}

/// Adds one to the number by reading and writing it.
async fn count(database: &SqlDatabase) -> Result<(), SqlError> {
    let transaction = database.begin(BeginOptions::default()).await?;
    let read = transaction.execute("SELECT n FROM t", Bindings::None).await?;
    let SqlValue::Integer(n) = read.rows.iter().next().expect("one row")[0] else {
        panic!("a number")
    };
    let next = Bindings::Positional(vec![(n + 1).into()]);
    transaction.execute("UPDATE t SET n = ?", next).await?;
    transaction.commit().await
}

#[test]
fn no_change_is_lost_among_callers_on_several_threads() {
    let (works, taken) = mpsc::channel::<SqlWork>();
    let connection = thread::spawn(move || {
        let fixture = Fixture::new();
        fixture.exec("CREATE TABLE t (n); INSERT INTO t VALUES (0)").unwrap();
        for work in taken {
            work.perform(Ok(fixture.session())).finish(|done| done(Ok(())));
        }
        fixture.one("SELECT n FROM t")
    });
    let host = Arc::new(Thread(works));
    let ids = Arc::new(IdSource::seeded(1));
    // The clock stands still, so nothing expires however slow the machine is.
    let database = SqlDatabase::new(host, Clock::manual(0).clock(), ids, false);

    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                tokio_test::block_on(async {
                    for _ in 0..TIMES {
                        count(&database).await.unwrap();
                        database.execute("UPDATE t SET n = n + 1", Bindings::None).await.unwrap();
                    }
                });
            });
        }
    });
    tokio_test::block_on(database.close()).unwrap();
    drop(database);

    assert_eq!(connection.join().unwrap(), (2 * CALLERS * TIMES).into());
}
