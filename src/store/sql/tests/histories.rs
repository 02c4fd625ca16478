//! Any history of statements, transactions, deadlines and failures leaves just the rows
//! whose writers were told so.

use proptest::prelude::*;
use tokio_test::task::Spawn;

use super::place::{Stage, asked, ready};
use super::*;
use crate::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum Event {
    Insert,
    /// Two rows, of which the second is there already or not.
    Batch(bool),
    Begin,
    Inside,
    /// A statement that rolls the transaction back.
    Break,
    Commit,
    RollBack,
    Step,
    Pass(u16),
    /// A turn of two statements, and whether it is committed.
    Turn(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Insert),
        1 => any::<bool>().prop_map(Event::Batch),
        2 => Just(Event::Begin),
        5 => Just(Event::Inside),
        1 => Just(Event::Break),
        2 => Just(Event::Commit),
        1 => Just(Event::RollBack),
        9 => Just(Event::Step),
        1 => (0..900u16).prop_map(Event::Pass),
        2 => any::<bool>().prop_map(Event::Turn),
    ]
}

type Waiting<T> = Spawn<SqlReply<T>>;

/// A row, and who says whether it is there.
enum Said {
    Alone(Waiting<SqlOutcome>),
    InBatch(Waiting<Vec<SqlOutcome>>),
    Inside(Waiting<SqlOutcome>, String),
    Turn(bool),
}

#[derive(Default)]
struct History {
    rows: Vec<(i64, Said)>,
    commits: Vec<(String, Waiting<()>)>,
    others: Vec<Waiting<()>>,
    broken: Vec<Waiting<SqlOutcome>>,
    begun: u32,
}

impl History {
    fn row(&mut self, said: Said) {
        self.rows.push((self.next(), said));
    }

    /// A row of each; row 0 is there from the start.
    fn next(&self) -> i64 {
        i64::try_from(self.rows.len()).unwrap() + 1
    }

    fn insert(&self) -> String {
        format!("INSERT INTO t VALUES ({})", self.next())
    }

    fn happen(&mut self, stage: &Stage, event: &Event) {
        let key = self.begun.to_string();
        let transaction = stage.database.transaction(key.clone());
        let none = || Bindings::None;
        match event {
            Event::Insert => {
                let said = asked(stage.database.execute(self.insert(), none()));
                self.row(Said::Alone(said));
            }
            Event::Batch(fails) => {
                let second = if *fails { "INSERT INTO t VALUES (0)" } else { "SELECT 1" };
                let list = vec![(self.insert(), none()), (second.to_owned(), none())];
                let said = asked(stage.database.execute_batch(list));
                self.row(Said::InBatch(said));
            }
            Event::Begin => {
                self.begun += 1;
                let key = Some(self.begun.to_string());
                let options = BeginOptions { key, timeout: Some(TIMEOUT), name: None };
                drop(stage.database.begin(options));
            }
            Event::Inside => {
                let said = asked(transaction.execute(self.insert(), none()));
                self.row(Said::Inside(said, key));
            }
            Event::Break => {
                let sql = "INSERT OR ROLLBACK INTO t VALUES (0)";
                self.broken.push(asked(transaction.execute(sql, none())));
            }
            Event::Commit => self.commits.push((key, asked(transaction.commit()))),
            Event::RollBack => self.others.push(asked(transaction.roll_back())),
            Event::Step => drop(stage.step()),
            Event::Pass(ms) => stage.pass(Duration::from_millis(u64::from(*ms))),
            Event::Turn(commits) => self.turn(stage, *commits),
        }
    }

    fn turn(&mut self, stage: &Stage, commits: bool) {
        let (mut turn, session) = (SqlTurn::default(), stage.fixture.session());
        let open = !stage.fixture.sqlite.is_autocommit();
        let ran = turn.run(&session, &self.insert(), &Bindings::None);
        if open {
            assert_eq!(ran.unwrap_err(), SqlError::TransactionOpen);
            return;
        }
        ran.unwrap();
        session.control(if commits { "COMMIT" } else { "ROLLBACK" }).unwrap();
        self.row(Said::Turn(commits));
    }

    /// The rows that are there by what their writers were told.
    fn told(self) -> Vec<i64> {
        let committed: Vec<String> = self
            .commits
            .into_iter()
            .filter_map(|(key, mut commit)| ready(&mut commit).ok().map(|()| key))
            .collect();
        let is_there = |said| match said {
            Said::Alone(mut answer) => ready(&mut answer).is_ok(),
            Said::InBatch(mut answer) => ready(&mut answer).is_ok(),
            Said::Inside(mut answer, key) => ready(&mut answer).is_ok() && committed.contains(&key),
            Said::Turn(commits) => commits,
        };
        let rows = self.rows.into_iter().filter_map(|(row, said)| is_there(said).then_some(row));
        std::iter::once(0).chain(rows).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_is_there_is_what_was_acknowledged(events in prop::collection::vec(event(), 0..60)) {
        let stage = Stage::new();
        stage.execute("CREATE TABLE t (x UNIQUE)").unwrap();
        stage.execute("INSERT INTO t VALUES (0)").unwrap();
        let mut history = History::default();

        for event in &events {
            history.happen(&stage, event);
        }
        stage.get(stage.database.close()).unwrap();

        let mut query = stage.fixture.sqlite.prepare("SELECT x FROM t ORDER BY x").unwrap();
        let rows: Vec<i64> =
            query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(rows, history.told());
    }
}
