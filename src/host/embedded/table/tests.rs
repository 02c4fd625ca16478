use std::sync::mpsc;

use super::super::EnvironmentId;
use super::super::entry::StoreStanding;
use super::super::waiter::Missing;
use super::*;
use crate::error::Result;
use crate::ids::IdSource;
use crate::store::{ActorNumber, Place, StoreError};

fn name() -> ActorName {
    ActorName::new("counter").unwrap()
}

fn by_key() -> Target {
    Target::Key(name(), ActorKey::default())
}

fn row(seed: u64) -> ActorRow {
    ActorRow {
        number: ActorNumber(seed as i64),
        id: IdSource::seeded(seed).actor_id(),
        name: name(),
        key: ActorKey::default(),
        place: Place::Shared,
        created_at_ms: 0,
    }
}

type Answer = mpsc::Receiver<Result<ActorRow>>;

/// Somebody who wants a row.
fn resolving(by: By) -> (Waiter, Answer) {
    let (tell, told) = mpsc::channel();
    let reply = Reply::new(move |result| drop(tell.send(result)));
    (Waiter { by, environment: EnvironmentId(1), want: Want::Row(reply) }, told)
}

fn creating() -> (Waiter, Answer) {
    let (tell, told) = mpsc::channel();
    let reply = Reply::new(move |result| drop(tell.send(result)));
    let by = By::Key(Missing::Create(None));
    (Waiter { by, environment: EnvironmentId(1), want: Want::Create(reply) }, told)
}

fn destroying() -> Waiter {
    let want = Want::Destroy(Reply::new(|_| {}));
    Waiter { by: By::Id, environment: EnvironmentId(1), want }
}

/// Does what needs neither store nor actors; returns the questions to the directory.
fn perform(tasks: Vec<Task>) -> Vec<Look> {
    let mut looks = Vec::new();
    for task in tasks {
        match task {
            Task::Look(look) => looks.push(look),
            Task::Found(reply, row) => reply.send(Ok(ActorRow::clone(&row))),
            Task::Exists(reply, row) => {
                let (name, key) = (row.name.clone(), row.key.clone());
                reply.send(Err(HostError::AlreadyExists { name, key, id: row.id }.into()));
            }
            Task::Refuse(waiter, error) => waiter.refuse(error),
            Task::Destroyed(reply, existed) => reply.send(Ok(existed)),
            Task::Pump(_) => {}
        }
    }
    looks
}

fn route(table: &mut Table, target: Target, waiter: Waiter) -> Vec<Look> {
    let mut tasks = Vec::new();
    table.route(target, waiter, &mut tasks);
    perform(tasks)
}

fn answer(table: &mut Table, look: &Look, answer: Result<Seen>) -> Vec<Look> {
    let mut tasks = Vec::new();
    table.looked_up(look.target.clone(), look.ticket, answer, &mut tasks);
    perform(tasks)
}

/// Deletes a sleeping actor and buries it.
fn destroy(table: &mut Table, id: ActorId) -> Vec<Look> {
    let world = World { store: StoreStanding::Open, shut_down: None };
    route(table, Target::Id(id), destroying());
    table.change(id, |entry| entry.take_pump());
    assert!(matches!(table.step(id, &world), Some(Step::Delete(None))));
    table.change(id, |entry| entry.deleted::<Error>(Ok(())));
    let Some(Step::Vanish(farewell)) = table.step(id, &world) else { panic!("it is gone") };
    let mut tasks = Vec::new();
    table.bury(id, farewell, &mut tasks);
    perform(tasks)
}

fn code(answer: &Answer) -> String {
    let error = answer.try_recv().expect("it is answered").expect_err("with an error");
    error.code.to_string()
}

#[test]
fn whoever_asks_for_the_same_waits_for_one_question() {
    let mut table = Table::new(10);
    let (first, first_row) = resolving(By::Key(Missing::Fail));
    let (second, second_row) = resolving(By::Key(Missing::Fail));

    let looks = route(&mut table, by_key(), first);
    assert!(route(&mut table, by_key(), second).is_empty());
    assert!(answer(&mut table, &looks[0], Ok(Seen::Existing(row(1)))).is_empty());

    assert_eq!(first_row.try_recv().unwrap().unwrap(), row(1));
    assert_eq!(second_row.try_recv().unwrap().unwrap(), row(1));
    assert!(table.is_quiet());
}

#[test]
fn what_was_found_before_a_destroy_is_asked_for_again() {
    let mut table = Table::new(10);
    let (waiter, found) = resolving(By::Key(Missing::Fail));
    let by_key = route(&mut table, by_key(), waiter).remove(0);
    let by_id = route(&mut table, Target::Id(row(1).id), resolving(By::Id).0).remove(0);
    answer(&mut table, &by_id, Ok(Seen::Existing(row(1))));
    destroy(&mut table, row(1).id);

    let again = answer(&mut table, &by_key, Ok(Seen::Existing(row(1))));

    assert!(found.try_recv().is_err(), "not answered with the dead one");
    answer(&mut table, &again[0], Ok(Seen::Existing(row(2))));
    assert_eq!(found.try_recv().unwrap().unwrap().id, row(2).id);
    assert!(table.by_id(row(1).id).is_none());
}

#[test]
fn an_actor_that_was_asked_for_by_its_id_is_known_by_its_key_too() {
    let mut table = Table::new(10);
    let by_id = route(&mut table, Target::Id(row(1).id), resolving(By::Id).0).remove(0);
    answer(&mut table, &by_id, Ok(Seen::Existing(row(1))));
    let (waiter, found) = resolving(By::Key(Missing::Fail));

    assert!(route(&mut table, by_key(), waiter).is_empty());

    assert_eq!(found.try_recv().unwrap().unwrap(), row(1));
}

#[test]
fn an_answer_that_comes_after_its_waiters_were_served_finds_nobody() {
    let mut table = Table::new(10);
    let (waiter, found) = resolving(By::Id);
    let by_id = route(&mut table, Target::Id(row(1).id), waiter).remove(0);
    let by_key = route(&mut table, by_key(), resolving(By::Key(Missing::Fail)).0).remove(0);

    answer(&mut table, &by_key, Ok(Seen::Existing(row(1))));
    assert_eq!(found.try_recv().unwrap().unwrap(), row(1));
    destroy(&mut table, row(1).id);
    assert!(answer(&mut table, &by_id, Ok(Seen::Existing(row(1)))).is_empty());

    assert!(table.by_id(row(1).id).is_none(), "nobody returns from the dead");
    assert!(table.is_quiet());
}

#[test]
fn who_only_gets_is_told_that_nobody_is_there_and_who_creates_asks_again() {
    let mut table = Table::new(10);
    let (get, got) = resolving(By::Key(Missing::Fail));
    let (create, created) = creating();
    let (later, got_later) = resolving(By::Key(Missing::Fail));
    let (second, created_twice) = creating();
    let looks = route(&mut table, by_key(), get);
    for waiter in [create, later, second] {
        assert!(route(&mut table, by_key(), waiter).is_empty());
    }
    assert!(looks[0].create.is_none());

    let again = answer(&mut table, &looks[0], Ok(Seen::Nobody));
    assert!(again[0].create.is_some());
    answer(&mut table, &again[0], Ok(Seen::Created(row(1))));

    assert_eq!(code(&got), "not_found");
    assert_eq!(created.try_recv().unwrap().unwrap(), row(1));
    assert_eq!(got_later.try_recv().unwrap().unwrap(), row(1));
    assert_eq!(code(&created_twice), "already_exists");
}

#[test]
fn a_creation_that_fails_is_told_to_creators_and_the_others_ask_for_themselves() {
    let mut table = Table::new(10);
    let (create, created) = creating();
    let (get, got) = resolving(By::Key(Missing::Fail));
    let looks = route(&mut table, by_key(), create);
    route(&mut table, by_key(), get);

    let full = StoreError::Full { path: "here".to_owned() };
    let again = answer(&mut table, &looks[0], Err(full.into()));

    assert_eq!(code(&created), "full");
    assert!(again[0].create.is_none());
    answer(&mut table, &again[0], Ok(Seen::Nobody));
    assert_eq!(code(&got), "not_found");
    assert!(table.is_quiet());
}

#[test]
fn only_the_actors_used_last_are_remembered() {
    let mut table = Table::new(2);
    for seed in 1..=3 {
        let id = row(seed).id;
        let look = route(&mut table, Target::Id(id), resolving(By::Id).0).remove(0);
        answer(&mut table, &look, Ok(Seen::Existing(row(seed))));
        // The first one is used again after each of the others.
        route(&mut table, Target::Id(row(1).id), resolving(By::Id).0);
    }

    assert_eq!(table.remembered(), 2);
    assert!(table.by_id(row(1).id).is_some() && table.by_id(row(2).id).is_none());
}

#[test]
fn those_that_are_busy_are_counted_by_what_they_are_at_until_they_sleep_or_are_gone() {
    let mut table = Table::new(10);
    let (waiter, _) = resolving(By::Key(Missing::Fail));
    let looks = route(&mut table, by_key(), waiter);
    answer(&mut table, &looks[0], Ok(Seen::Existing(row(1))));
    let world = World { store: StoreStanding::Open, shut_down: None };
    let id = row(1).id;
    assert_eq!(table.busy(), [0; 4]);

    for fails in [true, false] {
        route(&mut table, Target::Id(id), destroying());
        table.change(id, |entry| entry.take_pump());
        assert!(matches!(table.step(id, &world), Some(Step::Delete(None))));
        assert_eq!(table.busy(), [0, 0, 0, 1]);
        let result = if fails { Err(Error::internal("no")) } else { Ok(()) };
        table.change(id, |entry| drop(entry.deleted(result)));
        assert_eq!(table.busy(), [0; 4]);
        if fails {
            assert!(matches!(table.step(id, &world), Some(Step::Rest) | None));
        }
    }
}
