//! Whatever happens to an actor, in whatever order: each message of a client is handled once
//! and in its order, what was answered stays, and a client's going is told once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use greenroom::core::behavior::{Caller, Reply};
use greenroom::core::config::Durability;
use greenroom::core::context::CallRequest;
use greenroom::error::{Error, Result};
use greenroom::host::embedded::sessions::Session;
use greenroom::store::StoreLocation;
use greenroom::store::faults::{CommitFault, Faults};
use greenroom::time::{Clock, Duration};
use proptest::prelude::*;

use crate::place::{Place, get, options, or_create, within};
use crate::script::Script;
use crate::session_subscriptions::{BOTH, commits, wish};
use crate::sessions::{CONNECTED, Client, connect, refusal};

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

/// Something that was asked for and is perhaps not answered yet.
struct Asked<T> {
    what: T,
    /// How many generations had been made before: none of them but the last can take it.
    made: usize,
    answer: BoxFuture<'static, Result<bytes::Bytes>>,
}

impl<T> Asked<T> {
    fn new(
        place: &Place,
        what: T,
        answer: impl Future<Output = Result<bytes::Bytes>> + Send + 'static,
    ) -> Self {
        Self { what, made: place.script.contexts().len(), answer: Box::pin(answer) }
    }
}

type Wish = Asked<(&'static str, bool)>;

/// One client, and what is known of it.
struct Seat {
    name: usize,
    session: Option<Session>,
    client: Arc<Client>,
    calls: Vec<Asked<usize>>,
    /// Those that are not answered, in their order.
    wishes: VecDeque<Wish>,
    /// For each event whether it is to be heard: both where a refusal leaves that open.
    hears: BTreeMap<&'static str, BTreeSet<bool>>,
    /// What it is to have heard, and what it may have heard.
    heard: Vec<usize>,
    maybe: BTreeSet<usize>,
    /// It went while wishes waited, so it goes when they are answered.
    lingers: bool,
}

impl Seat {
    /// What may be the case of an event, with what is not answered yet.
    fn may_hear(&self, event: &str) -> BTreeSet<bool> {
        let asked = self.wishes.iter().filter(|wish| wish.what.0 == event);
        self.hears[event].iter().copied().chain(asked.map(|wish| wish.what.1)).collect()
    }

    fn answered(&mut self, storm: &Known, wish: &Wish, result: Result<bytes::Bytes>) {
        let (event, wanted) = wish.what;
        let hears = self.hears.get_mut(event).expect("one of the two");
        match result {
            Ok(_) => *hears = BTreeSet::from([wanted]),
            Err(error) => {
                storm.refused(wish.made, None, error);
                hears.insert(wanted);
            }
        }
    }

    /// Takes in the answers that are there.
    fn look(&mut self, storm: &Known) {
        while let Some(mut wish) = self.wishes.pop_front() {
            let Some(result) = (&mut wish.answer).now_or_never() else {
                return self.wishes.push_front(wish);
            };
            self.answered(storm, &wish, result);
        }
    }

    /// Waits for all of them.
    async fn hear(&mut self, storm: &Known) {
        while let Some(mut wish) = self.wishes.pop_front() {
            let result = (&mut wish.answer).await;
            self.answered(storm, &wish, result);
        }
    }

    /// Waits until all its calls are answered, for which whoever asks later finds the answers.
    async fn wait(&mut self) {
        for asked in &mut self.calls {
            let answer = (&mut asked.answer).await;
            asked.answer = Box::pin(std::future::ready(answer));
        }
    }
}

/// What is known of what has failed.
#[derive(Clone)]
struct Known {
    script: Script,
    durability: Durability,
    crashes: usize,
    refused: Rc<RefCell<Vec<Refused>>>,
}

/// Something that was answered with an error.
struct Refused {
    made: usize,
    /// What the author's side saw of it if it began.
    what: Option<String>,
    error: Error,
}

impl Known {
    /// An error, which is judged when all is over: whoever waits hears of the end of a
    /// generation before the author's side.
    fn refused(&self, made: usize, what: Option<String>, error: Error) {
        self.refused.borrow_mut().push(Refused { made, what, error });
    }

    /// Fails unless for each error a generation failed with it that can have taken what was
    /// asked for: the one that began with it, where one did.
    fn judge(&self) {
        let log = self.script.log();
        let contexts = self.script.contexts();
        let failed = self.script.failures();
        for Refused { made, what, error } in self.refused.take() {
            assert!(self.crashes > 0, "{error}");
            let is_full = error.is("storage", "full");
            assert!(is_full || error.is("user", "no"), "{error}");
            let taken_by = what.and_then(|what| log.iter().find(|seen| seen.what == what));
            let taken_by = taken_by.map(|seen| seen.generation);
            // Then it fails the save alone.
            if is_full && self.durability == Durability::Interval && taken_by.is_none() {
                continue;
            }
            let later = contexts.iter().skip(made.saturating_sub(1));
            let later: Vec<_> = later.map(|context| context.generation().get()).collect();
            let fits = failed.iter().any(|(generation, by)| {
                let is_it = taken_by.map_or(later.contains(generation), |by| by == *generation);
                is_it && (&by.group, &by.code) == (&error.group, &error.code)
            });
            assert!(fits, "{error}, taken by {taken_by:?} of {later:?}: {failed:?}");
        }
    }
}

struct Storm {
    place: Place,
    faults: Faults,
    /// Those who are there, and then those who have gone.
    seats: Vec<Seat>,
    gone: Vec<Seat>,
    shouts: usize,
    known: Known,
}

impl Storm {
    async fn new(durability: Durability) -> Self {
        let clock = Clock::manual(1_000_000);
        let faults = Faults::default();
        let mut options = options(StoreLocation::Memory, &clock);
        options.store.faults = faults.clone();
        let place = Place::open_with(options, clock, CONNECTED).await;
        commits(&place, durability);
        let known =
            Known { script: place.script.clone(), durability, crashes: 0, refused: Rc::default() };
        let (seats, gone) = (Vec::new(), Vec::new());
        let mut storm = Self { place, faults, seats, gone, shouts: 0, known };
        for _ in 0..CLIENTS {
            let seat = storm.seat().await;
            storm.seats.push(seat);
        }
        storm
    }

    /// A client that is accepted.
    async fn seat(&self) -> Seat {
        let (client, session) = loop {
            let (client, session) = connect(&self.place, or_create("a"), true);
            let refused = |told: &[String]| told.first().is_some_and(|at| at != "accepted");
            self.place.until(|| session.connection().is_some() || refused(&client.told())).await;
            self.place.settle().await;
            if !refused(&client.told()) {
                self.stored().await;
                break (client, session);
            }
            // The generation that it came to failed.
            assert!(self.known.crashes > 0, "{:?}", client.told());
        };
        Seat {
            name: self.seats.len() + self.gone.len(),
            session: Some(session),
            client,
            calls: Vec::new(),
            wishes: VecDeque::new(),
            hears: EVENTS.map(|event| (event, BTreeSet::from([false]))).into(),
            heard: Vec::new(),
            maybe: BTreeSet::new(),
            lingers: false,
        }
    }

    /// With durability `interval` whoever was accepted since the last save is lost with its
    /// generation, and hears of it; here all are to stay.
    async fn stored(&self) {
        if self.known.durability == Durability::Interval {
            for _ in 0..=self.known.crashes {
                if within(self.place.script.newest().flushed()).await.is_ok() {
                    return;
                }
            }
            panic!("more saves failed than were to");
        }
    }

    async fn perform(&mut self, op: Op) {
        let place = &self.place;
        match op {
            Op::Say(client) => {
                let seat = &mut self.seats[client];
                let number = seat.calls.len();
                let (reply, answer) = Reply::channel();
                let asked = Asked::new(place, number, within(answer));
                seat.session.as_ref().expect("it is there").call(CallRequest {
                    name: "echo".to_owned(),
                    args: format!("{}:{number}", seat.name).into(),
                    caller: Caller::Client,
                    origin: 0,
                    taken_by: None,
                    reply,
                });
                seat.calls.push(asked);
            }
            Op::Wish { client, event, wanted, fails } => {
                let (seat, event) = (&mut self.seats[client], EVENTS[event]);
                if fails && !seat.may_hear(event).contains(&wanted) {
                    self.known.crashes += 1;
                    self.faults.fail_commits(1, CommitFault::Full);
                }
                let answer = wish(seat.session.as_ref().expect("it is there"), event, wanted);
                let answer = answer.map_ok(|()| bytes::Bytes::new());
                seat.wishes.push_back(Asked::new(place, (event, wanted), answer));
            }
            Op::Replace(client) => {
                let next = self.seat().await;
                let mut left = std::mem::replace(&mut self.seats[client], next);
                left.look(&self.known);
                left.lingers = !left.wishes.is_empty();
                drop(left.session.take());
                self.gone.push(left);
            }
            Op::Shout => drop(self.shout().await),
            Op::Sleep => {
                let id = place.resolve(get("a")).await.expect("it is there").id;
                place.sleep(id).await.expect("it is there");
            }
            Op::Break => {
                self.known.crashes += 1;
                place.script.newest().break_generation(refusal());
            }
            Op::Pass => {
                // So much that what is not answered by then would take too long.
                for seat in self.seats.iter_mut().chain(&mut self.gone) {
                    seat.hear(&self.known).await;
                    seat.wait().await;
                }
                place.clock.advance(Duration::from_secs(60));
                place.settle().await;
            }
            Op::Settle => place.settle().await,
        }
    }

    /// Somebody else has an event told to all; says whether that went well.
    async fn shout(&mut self) -> bool {
        self.shouts += 1;
        let (number, known) = (self.shouts, self.known.clone());
        let here = self.seats.iter_mut();
        let mut hear: Vec<_> = here
            .map(|seat| {
                seat.look(&known);
                (seat.may_hear("shout"), seat)
            })
            .collect();
        let shout = self.place.call(or_create("a"), "shout", number.to_string());
        let shout = Asked::new(&self.place, (), shout);
        let result = shout.answer.await;
        let is_told = result.is_ok();
        if let Err(error) = result {
            known.refused(shout.made, Some(format!("shout {number}")), error);
        }
        for (may, seat) in &mut hear {
            if is_told && *may == BTreeSet::from([true]) {
                seat.heard.push(number);
            } else if may.contains(&true) {
                seat.maybe.insert(number);
            }
        }
        let lingering = self.gone.iter_mut().filter(|seat| seat.lingers);
        for seat in lingering.filter(|seat| seat.may_hear("shout").contains(&true)) {
            seat.maybe.insert(number);
        }
        is_told
    }

    async fn check(mut self) {
        for seat in self.seats.iter_mut().chain(&mut self.gone) {
            seat.hear(&self.known).await;
            let mut answered = Vec::new();
            for asked in seat.calls.drain(..) {
                let what = format!("{}:{}", seat.name, asked.what);
                match asked.answer.await {
                    Ok(echo) => {
                        assert_eq!(echo, what);
                        answered.push(asked.what);
                    }
                    Err(error) => {
                        self.known.refused(asked.made, Some(format!("echo {what}")), error);
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
        // Each fault that met nothing meets a start here.
        for number in 0..=self.known.crashes {
            let drained = self.place.call(or_create(&format!("drain {number}")), "echo", "x");
            if drained.await.is_ok() {
                break;
            }
        }
        // Those that went while it slept are told of by the next generation.
        self.perform(Op::Sleep).await;
        assert!(self.shout().await);
        let closes = self.gone.len();
        self.place.until(|| self.place.script.count("on_disconnect") >= closes).await;
        self.place.settle().await;
        let told = self.place.script.count("on_disconnect");
        // One that a crash cut off is told of again.
        assert!(told <= closes + self.known.crashes, "{told} of {closes} ends");
        for seat in self.seats.iter().chain(&self.gone) {
            let heard = client_heard(&seat.client);
            assert!(heard.is_sorted_by(|a, b| a < b), "{}: {heard:?}", seat.name);
            let sure = heard.iter().copied().filter(|number| !seat.maybe.contains(number));
            assert_eq!(Vec::from_iter(sure), seat.heard, "{}: {:?}", seat.name, seat.maybe);
        }
        let live = self.place.script.newest();
        assert_eq!(live.connections().len(), CLIENTS);
        for seat in &self.seats {
            let id = seat.session.as_ref().and_then(Session::connection).expect("it is accepted");
            let connection = live.connection(id.as_str()).expect("it is kept");
            let subscribed = connection.subscriptions();
            for (event, hears) in &seat.hears {
                let is_heard = subscribed.iter().any(|name| name == event);
                assert!(hears.contains(&is_heard), "{}: {event} of {subscribed:?}", seat.name);
            }
        }
        assert_eq!(self.place.host.session_count(), CLIENTS);
        assert_eq!(self.place.script.overlaps(), 0);
        self.known.judge();
    }
}

/// The numbers of what a client was told behind its acceptance.
fn client_heard(client: &Client) -> Vec<usize> {
    let mut told = client.told();
    let heard = told.split_off(2);
    assert_eq!(told, ["accepted", "hello \u{fffd}\u{1}"]);
    let number = |heard: &String| heard.strip_prefix("shout ").and_then(|at| at.parse().ok());
    heard.iter().map(|heard| number(heard).unwrap_or_else(|| panic!("it heard {heard}"))).collect()
}

fn survives(ops: &[Op]) {
    for durability in BOTH {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let mut storm = Storm::new(durability).await;
            for op in ops {
                storm.perform(*op).await;
            }
            storm.check().await;
        });
    }
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
        survives(&ops);
    }

    #[test]
    fn clients_of_an_actor_that_crashes_lose_nothing_that_was_answered(
        ops in prop::collection::vec(op(true), 1..40)
    ) {
        survives(&ops);
    }
}
