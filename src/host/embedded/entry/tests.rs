mod life;
mod wake;

use futures::FutureExt;

use super::super::waiter::{By, Missing};
use super::*;
use crate::core::behavior::StopOutcome::{Broken, Destroyed, Slept, StartFailed};
use crate::error::Error;
use crate::ids::{ActorKey, ActorName, IdSource};
use crate::store::{ActorNumber, Place};

const HERE: EnvironmentId = EnvironmentId(1);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Gen(Generation);

impl Live for Gen {
    fn generation(&self) -> Generation {
        self.0
    }
}

type Actor = Entry<Gen, u32>;

fn actor() -> Actor {
    Entry::new(Arc::new(ActorRow {
        number: ActorNumber(1),
        id: IdSource::seeded(1).actor_id(),
        name: ActorName::new("counter").unwrap(),
        key: ActorKey::default(),
        place: Place::Shared,
        created_at_ms: 0,
    }))
}

fn generation(n: u32) -> Generation {
    Generation::new(1, n)
}

fn call(n: u32) -> Waiter<u32> {
    Waiter { by: By::Id, environment: HERE, want: Want::Call(n) }
}

fn creating(n: u32) -> Waiter<u32> {
    Waiter { by: By::Key(Missing::Create(None)), environment: HERE, want: Want::Call(n) }
}

fn getting(n: u32) -> Waiter<u32> {
    Waiter { by: By::Key(Missing::Fail), environment: HERE, want: Want::Call(n) }
}

fn destroy() -> (Waiter<u32>, impl Future<Output = crate::error::Result<bool>>) {
    let (reply, answer) = Reply::channel();
    (Waiter { by: By::Id, environment: HERE, want: Want::Destroy(reply) }, answer)
}

fn sleep() -> (Waiter<u32>, impl Future<Output = crate::error::Result<()>>) {
    let (reply, answer) = Reply::channel();
    (Waiter { by: By::Id, environment: HERE, want: Want::Sleep(reply) }, answer)
}

fn wake() -> (Waiter<u32>, impl Future<Output = crate::error::Result<()>>) {
    let (reply, answer) = Reply::channel();
    (Waiter { by: By::Id, environment: HERE, want: Want::Wake(reply) }, answer)
}

fn calls_among(waiters: &[Waiter<u32>]) -> Vec<u32> {
    let number = |waiter: &Waiter<u32>| match waiter.want {
        Want::Call(n) => Some(n),
        _ => None,
    };
    waiters.iter().filter_map(number).collect()
}

fn numbers(waiters: &[Waiter<u32>]) -> Vec<u32> {
    let number = |waiter: &Waiter<u32>| match waiter.want {
        Want::Call(n) => n,
        _ => panic!("not a call: {waiter:?}"),
    };
    waiters.iter().map(number).collect()
}

fn open() -> World {
    with(StoreStanding::Open)
}

fn with(store: StoreStanding) -> World {
    World { store, shut_down: None }
}

/// Takes the pump and performs one step.
fn step(actor: &mut Actor) -> Step<Gen, u32> {
    actor.take_pump();
    actor.step(&open())
}

fn accepted(actor: &mut Actor) -> (Generation, Waiter<u32>) {
    match step(actor) {
        Step::Accept(live, waiter) => (live.0, waiter),
        other => panic!("{other:?}"),
    }
}

/// Lets the `n`-th generation live.
fn run(actor: &mut Actor, n: u32) {
    assert!(matches!(step(actor), Step::Open(_)));
    assert!(actor.opened(Gen(generation(n)), HERE));
    assert!(matches!(step(actor), Step::Rest));
    actor.started(generation(n));
}

fn oops() -> Error {
    Error::internal("oops")
}

#[test]
fn callers_of_a_sleeping_actor_wait_for_one_start_and_are_served_in_order() {
    let mut actor = actor();
    for n in 1..=3 {
        actor.enqueue(call(n));
    }

    run(&mut actor, 1);

    for n in 1..=3 {
        let (live, waiter) = accepted(&mut actor);
        assert_eq!((live, numbers(&[waiter])), (generation(1), vec![n]));
    }
    assert!(matches!(step(&mut actor), Step::Rest));
    assert_eq!(actor.open_to_calls(), Some(&Gen(generation(1))));
}

#[test]
fn nobody_goes_past_those_who_wait() {
    let mut actor = actor();
    actor.enqueue(call(1));

    run(&mut actor, 1);

    assert_eq!(actor.open_to_calls(), None);
    let (_, waiter) = accepted(&mut actor);
    assert_eq!(actor.open_to_calls(), None, "the first is still in the hands of the pump");
    drop(waiter);
    assert!(matches!(step(&mut actor), Step::Rest));
    assert!(actor.open_to_calls().is_some());
}

#[test]
fn a_refused_caller_waits_in_front_for_the_next_generation() {
    let mut actor = actor();
    actor.enqueue(call(1));
    actor.enqueue(call(2));
    run(&mut actor, 1);
    let (_, first) = accepted(&mut actor);

    actor.refused(generation(1), first);
    assert!(matches!(step(&mut actor), Step::Rest), "the generation has not ended yet");
    assert_eq!(actor.ended(generation(1), &Slept, false).map(|failed| failed.len()), Some(0));
    run(&mut actor, 2);

    for n in 1..=2 {
        let (live, waiter) = accepted(&mut actor);
        assert_eq!((live, numbers(&[waiter])), (generation(2), vec![n]));
    }
}

#[test]
fn nothing_begins_while_a_caller_is_in_the_hands_of_the_pump() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);
    let (_, first) = accepted(&mut actor);
    actor.enqueue(call(2));

    actor.ended(generation(1), &Slept, false);
    assert!(!actor.take_pump(), "the holder sees the change itself");
    actor.refused(generation(1), first);
    run(&mut actor, 2);

    assert_eq!(numbers(&[accepted(&mut actor).1]), [1]);
    assert_eq!(numbers(&[accepted(&mut actor).1]), [2]);
}

#[test]
fn a_failed_start_fails_those_who_waited_for_it_and_no_later_caller() {
    let mut actor = actor();
    actor.enqueue(call(1));
    actor.enqueue(call(2));
    assert!(matches!(step(&mut actor), Step::Open(_)));
    actor.opened(Gen(generation(1)), HERE);
    assert!(matches!(step(&mut actor), Step::Rest));

    let failed = actor.ended(generation(1), &StartFailed(oops()), false).unwrap();
    actor.enqueue(call(3));

    assert_eq!(numbers(&failed), [1, 2]);
    run(&mut actor, 2);
    assert_eq!(numbers(&[accepted(&mut actor).1]), [3]);
}

#[test]
fn callers_of_a_start_whose_environment_went_wait_for_another() {
    let mut actor = actor();
    actor.enqueue(call(1));
    assert!(matches!(step(&mut actor), Step::Open(_)));
    actor.opened(Gen(generation(1)), HERE);
    assert!(matches!(step(&mut actor), Step::Rest));

    assert!(actor.ended(generation(1), &Broken(oops()), true).unwrap().is_empty());

    run(&mut actor, 2);
    assert_eq!(numbers(&[accepted(&mut actor).1]), [1]);
}

#[test]
fn events_of_an_older_generation_change_nothing() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 2);
    accepted(&mut actor);
    assert!(matches!(step(&mut actor), Step::Rest));

    actor.started(generation(1));
    assert!(!actor.resign(generation(1)));
    assert!(!actor.crash(generation(1)));
    assert!(actor.ended(generation(1), &Destroyed, false).is_none());

    assert_eq!(actor.open_to_calls(), Some(&Gen(generation(2))));
    assert!(!actor.is_doomed());
}

#[test]
fn a_crash_is_reported_once_in_a_generation() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);

    assert!(actor.crash(generation(1)));
    assert!(!actor.crash(generation(1)));
}

#[test]
fn a_sleeping_actor_is_deleted_without_a_start() {
    let mut actor = actor();
    let (waiter, answer) = destroy();
    actor.enqueue(waiter);
    assert!(actor.is_doomed());

    assert!(matches!(step(&mut actor), Step::Delete(None)));
    assert!(matches!(step(&mut actor), Step::Rest));
    assert!(actor.deleted::<Error>(Ok(())).is_none());

    let Step::Vanish(farewell) = step(&mut actor) else { panic!("it is gone") };
    assert_eq!(farewell.destroyers.len(), 1);
    drop(farewell);
    assert!(answer.now_or_never().is_some());
}

#[test]
fn a_destroy_waits_for_its_turn_behind_earlier_calls() {
    let mut actor = actor();
    actor.enqueue(call(1));
    actor.enqueue(destroy().0);
    run(&mut actor, 1);

    assert_eq!(numbers(&[accepted(&mut actor).1]), [1]);
    assert!(matches!(step(&mut actor), Step::Destroy(Gen(g)) if g == generation(1)));
    assert!(matches!(step(&mut actor), Step::Rest));
    assert_eq!(actor.open_to_calls(), None);

    actor.ended(generation(1), &Destroyed, false);
    assert!(matches!(step(&mut actor), Step::Delete(Some(_))));
}

#[test]
fn a_destroy_is_carried_out_however_the_generation_ended() {
    for outcome in [Slept, Destroyed, Broken(oops()), StartFailed(oops())] {
        let mut actor = actor();
        actor.enqueue(call(1));
        run(&mut actor, 1);
        accepted(&mut actor);
        actor.enqueue(destroy().0);
        assert!(matches!(step(&mut actor), Step::Destroy(_)));

        actor.ended(generation(1), &outcome, false);

        assert!(matches!(step(&mut actor), Step::Delete(Some(_))), "{outcome:?}");
    }
}

#[test]
fn a_broken_generation_takes_its_own_wish_to_be_destroyed_with_it() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);
    accepted(&mut actor);
    assert!(matches!(step(&mut actor), Step::Rest));
    assert!(actor.resign(generation(1)));

    actor.ended(generation(1), &Broken(oops()), false);

    assert!(actor.is_at_rest());
}

#[test]
fn an_actor_that_resigned_while_it_fell_asleep_is_deleted() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);
    accepted(&mut actor);
    assert!(matches!(step(&mut actor), Step::Rest));
    actor.resign(generation(1));

    actor.ended(generation(1), &Slept, false);

    assert!(matches!(step(&mut actor), Step::Delete(Some(_))));
}

#[test]
fn who_waits_for_a_destroyed_actor_is_an_orphan_by_id_and_an_heir_by_key() {
    let mut actor = actor();
    let (first, _first) = destroy();
    let (second, _second) = destroy();
    let by_key = |want| Waiter { by: By::Key(Missing::Fail), environment: HERE, want };
    let third = by_key(Want::Destroy(Reply::new(|_| {})));
    for waiter in [first, getting(1), call(2), second, creating(3), getting(4), call(5), third] {
        actor.enqueue(waiter);
    }
    assert!(matches!(step(&mut actor), Step::Delete(None)));
    actor.deleted::<Error>(Ok(()));

    let Step::Vanish(farewell) = step(&mut actor) else { panic!("it is gone") };

    assert_eq!(farewell.destroyers.len(), 2);
    assert_eq!(numbers(&farewell.orphans), [1, 2, 5]);
    assert_eq!(numbers(&farewell.heirs[..2]), [3, 4]);
    assert!(matches!(farewell.heirs[2].want, Want::Destroy(_)), "it destroys the heir");
}

#[test]
fn a_delete_that_failed_is_told_to_all_who_waited_and_the_actor_can_start_again() {
    let mut actor = actor();
    actor.enqueue(destroy().0);
    actor.enqueue(creating(1));
    assert!(matches!(step(&mut actor), Step::Delete(None)));

    let (refused, error) = actor.deleted(Err("full")).unwrap();
    assert!(matches!(step(&mut actor), Step::Rest));

    assert_eq!((refused.destroyers.len(), numbers(&refused.waiters), error), (1, vec![1], "full"));
    assert!(actor.is_at_rest());
    actor.enqueue(call(2));
    run(&mut actor, 1);
}

#[test]
fn falling_asleep_keeps_the_door_open_and_is_told_at_its_end() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);
    accepted(&mut actor);
    let (waiter, answer) = sleep();
    actor.enqueue(waiter);

    assert!(matches!(step(&mut actor), Step::Sleep(_)));
    assert!(matches!(step(&mut actor), Step::Rest));
    assert!(actor.open_to_calls().is_some(), "the generation decides");
    actor.ended(generation(1), &Slept, false);

    let Step::Slept(replies) = step(&mut actor) else { panic!("it sleeps") };
    replies.into_iter().for_each(|reply| reply.send(Ok(())));
    assert!(answer.now_or_never().unwrap().is_ok());
}

#[test]
fn putting_a_sleeping_actor_to_sleep_starts_nothing() {
    let mut actor = actor();
    actor.enqueue(sleep().0);

    assert!(matches!(step(&mut actor), Step::Slept(replies) if replies.len() == 1));
    assert!(matches!(step(&mut actor), Step::Rest));
    assert!(actor.is_at_rest());
}

#[test]
fn no_start_and_no_delete_begins_while_the_store_reopens() {
    let mut starting = actor();
    starting.enqueue(call(1));
    let mut dying = actor();
    dying.enqueue(destroy().0);

    for actor in [&mut starting, &mut dying] {
        actor.take_pump();
        assert!(matches!(actor.step(&with(StoreStanding::Paused)), Step::Rest));
    }

    assert!(matches!(step(&mut starting), Step::Open(_)));
    assert!(matches!(step(&mut dying), Step::Delete(_)));
}

#[test]
fn a_store_that_is_down_refuses_starts_and_deletes() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);
    accepted(&mut actor);
    actor.enqueue(destroy().0);
    assert!(matches!(step(&mut actor), Step::Destroy(_)));
    actor.enqueue(call(2));
    actor.ended(generation(1), &Broken(oops()), false);
    actor.take_pump();

    let Step::Refuse(refused, _) = actor.step(&with(StoreStanding::Down(oops()))) else {
        panic!("down")
    };

    assert_eq!((refused.destroyers.len(), numbers(&refused.waiters)), (1, vec![2]));
    assert!(matches!(actor.step(&with(StoreStanding::Down(oops()))), Step::Rest));
}

#[test]
fn a_shutdown_refuses_everybody_who_waits() {
    let mut actor = actor();
    actor.enqueue(call(1));
    actor.take_pump();
    actor.step(&open());
    actor.enqueue(sleep().0);

    let Step::Refuse(refused, _) = actor.step(&World { shut_down: Some(oops()), ..open() }) else {
        panic!("shut")
    };

    assert_eq!(refused.waiters.len(), 2);
}
