//! Whatever happens to an actor, in whatever order: each message of a client is handled once
//! and in its order, what was answered stays, and a client's going is told once.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use greenroom::core::behavior::{Caller, Reply};
use greenroom::core::context::CallRequest;
use greenroom::error::Result;
use greenroom::host::embedded::sessions::Session;
use greenroom::store::StoreLocation;
use greenroom::store::faults::{CommitFault, Faults};
use greenroom::time::{Clock, Duration};
use proptest::prelude::*;

use crate::place::{Place, get, options, or_create, within};
use crate::session_subscriptions::wish;
use crate::sessions::{CONNECTED, Client, connected, refusal};

const CLIENTS: usize = 3;
const EVENTS: [&str; 2] = ["shout", "other"];

#[derive(Clone, Copy, Debug)]
enum Op {
    /// A client calls, and does not wait.
    Say(usize),
    /// A client wants to hear an event, or no more.
    Wish {
        client: usize,
        event: usize,
        wanted: bool,
        fails: bool,
    },
    /// A client goes, and another one comes.
    Replace(usize),
    /// Somebody else has an event told to all.
    Shout,
    Sleep,
    Break,
    /// So much time that an idle actor falls asleep.
    Pass,
    /// Everything runs that can.
    Settle,
}

fn op(crashes: bool) -> impl Strategy<Value = Op> {
    let client = 0..CLIENTS;
    let wish = (client.clone(), 0..EVENTS.len(), any::<bool>(), any::<bool>());
    prop_oneof![
        6 => client.clone().prop_map(Op::Say),
        3 => wish.prop_map(move |(client, event, wanted, fails)| {
            Op::Wish { client, event, wanted, fails: fails && crashes }
        }),
        1 => client.prop_map(Op::Replace),
        2 => Just(Op::Shout),
        2 => Just(Op::Sleep),
        2 => Just(if crashes { Op::Break } else { Op::Sleep }),
        1 => Just(Op::Pass),
        2 => Just(Op::Settle),
    ]
}

/// One client, and what is known of it.
struct Seat {
    name: usize,
    session: Option<Session>,
    client: Arc<Client>,
    answers: Vec<BoxFuture<'static, Result<bytes::Bytes>>>,
    wishes: BTreeSet<&'static str>,
    /// What it is to have heard.
    heard: Vec<String>,
}

struct Storm {
    place: Place,
    faults: Faults,
    /// Those who are there, and then those who have gone.
    seats: Vec<Seat>,
    gone: Vec<Seat>,
    shouts: usize,
    crashes: usize,
}

impl Storm {
    async fn new() -> Self {
        let clock = Clock::manual(1_000_000);
        let faults = Faults::default();
        let mut options = options(StoreLocation::Memory, &clock);
        options.store.faults = faults.clone();
        let place = Place::open_with(options, clock, CONNECTED).await;
        let (seats, gone) = (Vec::new(), Vec::new());
        let mut storm = Self { place, faults, seats, gone, shouts: 0, crashes: 0 };
        for _ in 0..CLIENTS {
            let seat = storm.seat().await;
            storm.seats.push(seat);
        }
        storm
    }

    async fn seat(&self) -> Seat {
        let (client, session) = connected(&self.place, true).await;
        Seat {
            name: self.seats.len() + self.gone.len(),
            session: Some(session),
            client,
            answers: Vec::new(),
            wishes: BTreeSet::new(),
            heard: Vec::new(),
        }
    }

    async fn perform(&mut self, op: Op) {
        match op {
            Op::Say(client) => {
                let seat = &mut self.seats[client];
                let args = format!("{}:{}", seat.name, seat.answers.len());
                let (reply, answer) = Reply::channel();
                seat.session.as_ref().expect("it is there").call(CallRequest {
                    name: "echo".to_owned(),
                    args: args.into(),
                    caller: Caller::Client,
                    origin: 0,
                    taken_by: None,
                    reply,
                });
                seat.answers.push(Box::pin(within(answer)));
            }
            Op::Wish { client, event, wanted, fails } => {
                let (seat, event) = (&mut self.seats[client], EVENTS[event]);
                let changes =
                    if wanted { seat.wishes.insert(event) } else { seat.wishes.remove(event) };
                if fails && changes {
                    self.crashes += 1;
                    self.faults.fail_commits(1, CommitFault::Full);
                }
                let session = seat.session.as_ref().expect("it is there");
                match wish(session, event, wanted).await {
                    Ok(()) => {}
                    // The start that it asked for met the fault, and is told of that.
                    Err(error) if fails && changes && error.is("storage", "full") => {
                        if wanted {
                            seat.wishes.remove(event)
                        } else {
                            seat.wishes.insert(event)
                        };
                    }
                    Err(error) => panic!("nobody refuses it: {error}"),
                }
            }
            Op::Replace(client) => {
                let next = self.seat().await;
                let mut left = std::mem::replace(&mut self.seats[client], next);
                drop(left.session.take());
                self.gone.push(left);
            }
            Op::Shout => {
                self.shouts += 1;
                let said = format!("shout {}", self.shouts);
                for seat in self.seats.iter_mut().filter(|seat| seat.wishes.contains("shout")) {
                    seat.heard.push(said.clone());
                }
                let number = self.shouts.to_string();
                self.place.call(or_create("a"), "shout", number).await.expect("it is told");
            }
            Op::Sleep => {
                let id = self.place.resolve(get("a")).await.expect("it is there").id;
                self.place.sleep(id).await.expect("it is there");
            }
            Op::Break => {
                self.crashes += 1;
                self.place.script.newest().break_generation(refusal());
            }
            Op::Pass => {
                self.place.clock.advance(Duration::from_secs(60));
                self.place.settle().await;
            }
            Op::Settle => self.place.settle().await,
        }
    }

    async fn check(mut self) {
        for seat in self.seats.iter_mut().chain(&mut self.gone) {
            let mut answered = Vec::new();
            for (number, answer) in seat.answers.drain(..).enumerate() {
                match answer.await {
                    Ok(echo) => {
                        assert_eq!(echo, format!("{}:{number}", seat.name));
                        answered.push(number);
                    }
                    // Taken by a generation that broke, and by no other.
                    Err(error) => {
                        let is_crash = error.is("user", "no") || error.is("storage", "full");
                        assert!(self.crashes > 0 && is_crash, "{error}");
                    }
                }
            }
            let prefix = format!("echo {}:", seat.name);
            let handled: Vec<usize> = self
                .place
                .script
                .seen(&prefix)
                .iter()
                .map(|seen| seen[prefix.len()..].parse().expect("a number"))
                .collect();
            assert!(handled.is_sorted_by(|a, b| a < b), "{}: {handled:?}", seat.name);
            assert!(answered.iter().all(|number| handled.contains(number)));
        }
        // Those that went while it slept are told of by the next generation.
        self.perform(Op::Sleep).await;
        self.perform(Op::Shout).await;
        let closes = self.gone.len();
        self.place.until(|| self.place.script.count("on_disconnect") >= closes).await;
        self.place.settle().await;
        let told = self.place.script.count("on_disconnect");
        // One that a crash cut off is told of again.
        assert!(told <= closes + self.crashes, "{told} of {closes} ends");
        for seat in self.seats.iter().chain(&self.gone) {
            let heard = client_heard(&seat.client);
            assert_eq!(heard, seat.heard, "{}", seat.name);
        }
        let live = self.place.script.newest();
        assert_eq!(live.connections().len(), CLIENTS);
        for seat in &self.seats {
            let id = seat.session.as_ref().and_then(Session::connection).expect("it is accepted");
            let connection = live.connection(id.as_str()).expect("it is kept");
            assert_eq!(connection.subscriptions(), Vec::from_iter(seat.wishes.iter().copied()));
        }
        assert_eq!(self.place.host.session_count(), CLIENTS);
        assert_eq!(self.place.script.overlaps(), 0);
    }
}

/// What a client was told behind its acceptance.
fn client_heard(client: &Client) -> Vec<String> {
    let mut told = client.told();
    let heard = told.split_off(2);
    assert_eq!(told, ["accepted", "hello \u{fffd}\u{1}"]);
    heard
}

fn survives(ops: Vec<Op>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut storm = Storm::new().await;
        for op in ops {
            storm.perform(op).await;
        }
        storm.check().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn clients_of_an_actor_that_sleeps_and_wakes_lose_nothing(
        ops in prop::collection::vec(op(false), 1..40)
    ) {
        survives(ops);
    }

    #[test]
    fn clients_of_an_actor_that_crashes_lose_nothing_that_was_answered(
        ops in prop::collection::vec(op(true), 1..40)
    ) {
        survives(ops);
    }
}
