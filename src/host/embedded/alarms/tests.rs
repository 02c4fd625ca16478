use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::ids::IdSource;

fn name(name: &str) -> ActorName {
    ActorName::new(name).unwrap()
}

fn number(n: i64) -> ActorNumber {
    ActorNumber(n)
}

fn id() -> ActorId {
    IdSource::seeded(1).actor_id()
}

fn row(n: i64, at: i64) -> AlarmRow {
    AlarmRow { number: number(n), id: id(), name: name("clock"), at }
}

fn next(alarms: &mut Alarms, now: i64) -> Next {
    alarms.next(now, |_| true)
}

/// Alarms whose directory has been read and had these rows, all there are.
fn alarms(rows: Vec<AlarmRow>) -> Alarms {
    let mut alarms = Alarms::new();
    assert_eq!(next(&mut alarms, 0), Next::Read(None));
    alarms.read(rows, WINDOW);
    alarms
}

fn woken(next: Next) -> Vec<i64> {
    let Next::Wake(due) = next else { panic!("nobody is woken: {next:?}") };
    due.into_iter().map(|(number, _)| number.0).collect()
}

#[test]
fn the_directory_is_read_first_and_then_the_earliest_waited_for() {
    let mut alarms = alarms(vec![row(1, 50), row(2, 70)]);

    assert_eq!(next(&mut alarms, 10), Next::WaitUntil(50));
    assert_eq!(woken(next(&mut alarms, 50)), [1]);
    assert_eq!(next(&mut alarms, 50), Next::WaitUntil(70));
    alarms.woken(number(1), true, 50);
    assert_eq!(woken(next(&mut alarms, 80)), [2]);
    assert_eq!(next(&mut alarms, 80), Next::Wait);
}

#[test]
fn what_lies_behind_the_horizon_is_read_before_anything_there_is_waited_for() {
    let mut alarms = Alarms::new();
    next(&mut alarms, 0);
    alarms.read(vec![row(1, 50), row(2, 70)], 2);

    assert_eq!(next(&mut alarms, 0), Next::WaitUntil(50));
    assert_eq!(woken(next(&mut alarms, 70)), [1, 2]);
    assert_eq!(next(&mut alarms, 70), Next::Read(Some((70, number(2)))));
    assert_eq!(next(&mut alarms, 70), Next::Wait, "it is being read");
    alarms.read(vec![row(3, 90)], 2);
    assert_eq!(next(&mut alarms, 70), Next::WaitUntil(90));
}

#[test]
fn an_actor_that_falls_asleep_is_waited_for_unless_the_directory_will_tell() {
    let mut alarms = Alarms::new();
    next(&mut alarms, 0);
    alarms.read(vec![row(1, 50), row(2, 70)], 2);

    alarms.slept(number(3), id(), &name("clock"), Some(40));
    alarms.slept(number(4), id(), &name("clock"), Some(80));
    alarms.slept(number(1), id(), &name("clock"), None);

    assert_eq!(next(&mut alarms, 0), Next::WaitUntil(40));
    assert_eq!(woken(next(&mut alarms, 75)), [3, 2]);
    assert_eq!(alarms.len(), 2, "those that are being woken");
}

#[test]
fn what_is_heard_while_the_directory_is_read_is_newer() {
    let mut alarms = Alarms::new();
    next(&mut alarms, 0);
    alarms.slept(number(1), id(), &name("clock"), Some(90));
    alarms.slept(number(2), id(), &name("clock"), None);
    alarms.destroyed(number(3));

    alarms.read(vec![row(1, 10), row(2, 20), row(3, 30), row(4, 40)], WINDOW);

    assert_eq!(woken(next(&mut alarms, 100)), [4, 1]);
}

#[test]
fn a_directory_that_does_not_answer_is_asked_again_later() {
    let mut alarms = Alarms::new();
    next(&mut alarms, 0);

    alarms.not_read(5);

    assert_eq!(next(&mut alarms, 5), Next::WaitUntil(5 + ASK_AGAIN_MS));
    assert_eq!(next(&mut alarms, 5 + ASK_AGAIN_MS), Next::Read(None));
}

#[test]
fn a_type_that_nobody_runs_waits_for_its_registration() {
    let mut alarms = alarms(vec![row(1, 10), row(2, 20)]);

    assert_eq!(alarms.next(15, |_| false), Next::WaitUntil(20));
    assert_eq!(alarms.next(25, |_| false), Next::Wait);
    assert!(!alarms.registered(&name("other")));
    assert!(alarms.registered(&name("clock")));
    assert_eq!(woken(next(&mut alarms, 25)), [1, 2]);
    assert!(!alarms.registered(&name("clock")));
}

#[test]
fn an_actor_that_is_gone_while_it_is_being_woken_is_not_tried_again() {
    let mut alarms = alarms(vec![row(1, 10)]);
    assert_eq!(woken(next(&mut alarms, 10)), [1]);

    alarms.destroyed(number(1));
    alarms.woken(number(1), false, 20);

    assert_eq!((next(&mut alarms, 20), alarms.len()), (Next::Wait, 0));
}

#[test]
fn one_that_cannot_be_woken_waits_ever_longer() {
    let mut alarms = alarms(vec![row(1, 0)]);
    let mut now = 0;
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(woken(next(&mut alarms, now)), [1]);
        alarms.woken(number(1), false, now);
        let Next::WaitUntil(at) = next(&mut alarms, now) else { panic!("it is forgotten") };
        waits.push((at - now) / 1_000);
        now = at;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);

    assert_eq!(woken(next(&mut alarms, now)), [1]);
    alarms.woken(number(1), true, now);
    alarms.slept(number(1), id(), &name("clock"), Some(now));
    assert_eq!(woken(next(&mut alarms, now)), [1], "its failures are forgotten");
}

#[test]
fn what_a_later_generation_says_is_newer_than_the_answer_for_one_that_broke() {
    let mut alarms = alarms(Vec::new());
    let first = alarms.ask(number(1));
    let second = alarms.ask(number(1));
    assert!(!alarms.is_news(number(1), first), "the second one broke later");
    assert!(alarms.is_news(number(1), second) && !alarms.is_news(number(1), second));

    let question = alarms.ask(number(1));
    alarms.slept(number(1), id(), &name("clock"), Some(50));
    assert!(!alarms.is_news(number(1), question));
    assert_eq!(next(&mut alarms, 10), Next::WaitUntil(50));
}

#[test]
fn one_that_breaks_waits_too_but_for_its_alarm_at_least() {
    let mut alarms = alarms(Vec::new());

    alarms.broke(number(1), id(), &name("clock"), Some(10), 100);
    alarms.broke(number(2), id(), &name("clock"), Some(5_000), 100);
    alarms.broke(number(3), id(), &name("clock"), None, 100);

    assert_eq!(next(&mut alarms, 100), Next::WaitUntil(1_100));
    assert_eq!(woken(next(&mut alarms, 9_999)), [1, 2]);
}

#[test]
fn a_start_that_failed_counts_once_whoever_tells_of_it_first() {
    for wake_tells_first in [true, false] {
        let mut alarms = alarms(vec![row(1, 0)]);
        assert_eq!(woken(next(&mut alarms, 0)), [1]);
        if wake_tells_first {
            alarms.woken(number(1), false, 0);
        }
        alarms.broke(number(1), id(), &name("clock"), Some(0), 0);
        alarms.woken(number(1), false, 0);

        assert_eq!(next(&mut alarms, 0), Next::WaitUntil(FIRST_BACKOFF_MS));
    }
}

#[test]
fn a_crowd_is_woken_in_parts() {
    let count = i64::try_from(MAX_WAKING).unwrap() + 5;
    let mut alarms = alarms((0..count).map(|n| row(n, 0)).collect());

    assert_eq!(woken(next(&mut alarms, 0)).len(), MAX_WAKING);
    assert_eq!(next(&mut alarms, 0), Next::Wait);
    alarms.woken(number(0), true, 0);
    assert_eq!(woken(next(&mut alarms, 0)).len(), 1);
}

#[test]
fn what_is_too_much_is_left_to_the_directory() {
    let mut alarms = alarms(Vec::new());
    let most = i64::try_from(MOST).unwrap();
    for n in 0..=most {
        alarms.slept(number(n), id(), &name("clock"), Some(10 + n));
    }

    assert_eq!(alarms.len(), WINDOW as usize);
    let last = i64::from(WINDOW) - 1;
    assert_eq!(alarms.horizon, Horizon::At((10 + last, number(last))));
}

/// A directory, and actors that sleep and live, beside the alarms.
#[derive(Debug, Clone)]
enum Event {
    /// An actor lives, changes its alarm in the directory, and falls asleep.
    Sleeps(i64, Option<i64>),
    /// It breaks; the directory has this alarm by then.
    Breaks(i64, Option<i64>),
    Destroyed(i64),
    /// The directory answers, if it was asked.
    Answers(bool),
    Passes(i64),
    Awake(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let alarm = || prop::option::weighted(0.8, 0_i64..3_000);
    prop_oneof![
        4 => (0_i64..12, alarm()).prop_map(|(n, at)| Event::Sleeps(n, at)),
        1 => (0_i64..12, alarm()).prop_map(|(n, at)| Event::Breaks(n, at)),
        1 => (0_i64..12).prop_map(Event::Destroyed),
        4 => prop::bool::weighted(0.9).prop_map(Event::Answers),
        3 => (0_i64..400).prop_map(Event::Passes),
        3 => prop::bool::weighted(0.8).prop_map(Event::Awake),
    ]
}

fn store(directory: &mut BTreeMap<i64, i64>, n: i64, at: Option<i64>) {
    match at {
        Some(at) => drop(directory.insert(n, at)),
        None => drop(directory.remove(&n)),
    }
}

proptest! {
    #[test]
    fn every_alarm_is_served_in_the_end_whatever_happens(
        events in prop::collection::vec(event(), 1..80),
    ) {
        const LIMIT: u32 = 3;
        let mut alarms = Alarms::new();
        let mut directory: BTreeMap<i64, i64> = BTreeMap::new();
        // What the directory answers, as it was when it was asked.
        let mut asked: Option<Vec<AlarmRow>> = None;
        let mut waking: Vec<i64> = Vec::new();
        let mut now = 0;
        let ends = std::iter::repeat_n([Event::Answers(true), Event::Awake(true), Event::Passes(70_000)], 60);
        let events = events.into_iter().chain(ends.flatten());
        for event in events {
            match event {
                Event::Sleeps(n, at) => {
                    let at = at.map(|at| now + at);
                    store(&mut directory, n, at);
                    alarms.slept(number(n), id(), &name("clock"), at);
                }
                Event::Breaks(n, at) => {
                    let at = at.map(|at| now + at);
                    store(&mut directory, n, at);
                    alarms.broke(number(n), id(), &name("clock"), at, now);
                }
                Event::Destroyed(n) => {
                    directory.remove(&n);
                    alarms.destroyed(number(n));
                }
                Event::Answers(true) => {
                    if let Some(rows) = asked.take() {
                        alarms.read(rows, LIMIT);
                    }
                }
                Event::Answers(false) => {
                    if asked.take().is_some() {
                        alarms.not_read(now);
                    }
                }
                Event::Passes(ms) => now += ms,
                Event::Awake(is_awake) => {
                    for n in std::mem::take(&mut waking) {
                        alarms.woken(number(n), is_awake, now);
                        // One that woke serves what is due and sleeps.
                        if is_awake {
                            if directory.get(&n).is_some_and(|at| *at <= now) {
                                directory.remove(&n);
                            }
                            let at = directory.get(&n).copied();
                            alarms.slept(number(n), id(), &name("clock"), at);
                        }
                    }
                }
            }
            loop {
                match next(&mut alarms, now) {
                    Next::Wake(due) => waking.extend(due.into_iter().map(|(number, _)| number.0)),
                    Next::Read(after) => {
                        let mut rows: Vec<_> =
                            directory.iter().map(|(n, at)| row(*n, *at)).collect();
                        rows.sort_by_key(|row| (row.at, row.number));
                        rows.retain(|row| after.is_none_or(|after| (row.at, row.number) > after));
                        rows.truncate(LIMIT as usize);
                        asked = Some(rows);
                    }
                    Next::WaitUntil(at) => {
                        prop_assert!(at > now, "it spins");
                        break;
                    }
                    Next::Wait => break,
                }
            }
        }

        prop_assert!(directory.is_empty(), "forgotten: {directory:?}, {alarms:?}");
    }
}
