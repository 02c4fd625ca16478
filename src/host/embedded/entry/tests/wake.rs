//! Those who wake an actor for its alarm.

use super::*;

#[test]
fn a_wake_starts_a_sleeping_actor_and_is_answered_when_it_runs() {
    let mut actor = actor();
    let (waiter, answer) = wake();
    actor.enqueue(waiter);

    run(&mut actor, 1);

    let Step::Woken(reply) = step(&mut actor) else { panic!("it is not answered") };
    reply.send(Ok(()));
    assert!(matches!(answer.now_or_never(), Some(Ok(()))));
    assert!(matches!(step(&mut actor), Step::Rest));
}

#[test]
fn a_wake_of_an_actor_that_closes_starts_the_next_generation() {
    let mut actor = actor();
    actor.enqueue(call(1));
    run(&mut actor, 1);
    let (_, waiter) = accepted(&mut actor);
    actor.refused(generation(1), waiter);
    actor.enqueue(wake().0);
    assert!(matches!(step(&mut actor), Step::Rest));

    actor.ended(generation(1), &Slept, false).unwrap();

    run(&mut actor, 2);
}

#[test]
fn a_wake_hears_of_a_start_that_failed_and_starts_no_other() {
    let mut actor = actor();
    actor.enqueue(wake().0);
    assert!(matches!(step(&mut actor), Step::Open(_)));
    assert!(actor.opened(Gen(generation(1)), HERE));
    assert!(matches!(step(&mut actor), Step::Rest));

    let callers = actor.ended(generation(1), &StartFailed(oops()), false).unwrap();

    assert_eq!(callers.len(), 1);
    assert!(matches!(step(&mut actor), Step::Rest));
    assert!(actor.is_at_rest());
}

#[test]
fn a_wake_of_an_actor_that_is_destroyed_is_an_orphan() {
    let mut actor = actor();
    actor.enqueue(destroy().0);
    actor.enqueue(wake().0);
    assert!(matches!(step(&mut actor), Step::Delete(None)));
    assert!(actor.deleted(Ok::<(), Error>(())).is_none());

    let Step::Vanish(farewell) = step(&mut actor) else { panic!("it is not gone") };

    assert_eq!((farewell.orphans.len(), farewell.destroyers.len()), (1, 1));
}
