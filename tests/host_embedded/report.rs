//! Looking at actors from outside.

use greenroom::host::embedded::{Address, Listed, OpenOptions};
use greenroom::ids::{ActorKey, ActorName, IdSource};
use greenroom::store::{ListFilter, StoreLocation};
use greenroom::time::Clock;

use crate::place::{
    HERE, Place, code, config, counter, everything, get, key, options, or_create, within,
};
use crate::script::HOOKS;

async fn keys(place: &Place, filter: ListFilter) -> Vec<(String, bool)> {
    let listed = within(place.host.list(filter)).await.expect("the store is open");
    let shown = |Listed { row, awake }: &Listed| (row.key.to_string(), *awake);
    listed.iter().map(shown).collect()
}

#[tokio::test]
async fn a_list_says_who_is_awake() {
    let place = Place::new().await;
    place.resolve(or_create("a")).await.unwrap();
    place.running("b").await;

    let listed = keys(&place, everything()).await;

    assert_eq!(listed, [("a".into(), false), ("b".into(), true)]);
}

#[tokio::test]
async fn a_list_is_cut_by_name_prefix_limit_and_cursor() {
    let place = Place::new().await;
    let other = ActorName::new("other").unwrap();
    place.host.register(HERE, other.clone(), place.script.factory(HOOKS, config()));
    let create = Some(greenroom::host::embedded::Create::default());
    for (name, parts) in [
        (counter(), vec!["x", "1"]),
        (counter(), vec!["y"]),
        (other.clone(), vec!["x", "2"]),
        (counter(), vec!["x", "3"]),
        (counter(), vec!["x", "4"]),
    ] {
        let key = ActorKey::of(parts).unwrap();
        place.resolve(Address::Key { name, key, create: create.clone() }).await.unwrap();
    }
    let filter = ListFilter { name: Some(counter()), key_prefix: key("x"), after: None, limit: 2 };

    let first = within(place.host.list(filter.clone())).await.unwrap();
    let after = first.last().map(|listed| listed.row.number);
    let second = keys(&place, ListFilter { after, ..filter }).await;

    assert_eq!(first[0].row.key.to_string(), "x/1");
    assert_eq!(first[1].row.key.to_string(), "x/3");
    assert_eq!(second, [("x/4".into(), false)]);
}

#[tokio::test]
async fn the_report_of_an_actor_names_what_keeps_it_awake() {
    let place = Place::new().await;
    let id = place.running("a").await;
    place.script.hold("hold");
    let open = place.call(get("a"), "hold", "");

    let awake = within(place.host.info(id)).await.unwrap();
    place.script.release("hold");
    open.await.unwrap();
    place.sleep(id).await.unwrap();
    let asleep = within(place.host.info(id)).await.unwrap();

    assert_eq!(awake.generation, Some(place.script.newest().generation()));
    assert!(awake.holds.iter().any(|hold| hold.count == 1), "{:?}", awake.holds);
    assert_eq!((asleep.row.id, asleep.generation, asleep.holds.len()), (id, None, 0));
}

#[tokio::test]
async fn nobody_is_reported_or_put_to_sleep_who_does_not_exist() {
    let place = Place::new().await;
    let nobody = IdSource::seeded(9).actor_id();

    assert_eq!(code(within(place.host.info(nobody)).await), "actor/not_found");
    assert_eq!(code(place.sleep(nobody).await), "actor/not_found");
}

#[tokio::test]
async fn putting_to_sleep_what_sleeps_starts_nothing() {
    let place = Place::new().await;
    let row = place.resolve(or_create("a")).await.unwrap();

    place.sleep(row.id).await.unwrap();

    assert!(place.script.log().is_empty());
}

#[tokio::test]
async fn of_sleeping_actors_only_those_used_last_are_remembered() {
    let clock = Clock::manual(0);
    let options = OpenOptions { remembered: 2, ..options(StoreLocation::Memory, &clock) };
    let place = Place::open_with(options, clock, HOOKS).await;
    let mut ids = Vec::new();
    for key in ["a", "b", "c", "d"] {
        ids.push(place.running(key).await);
    }
    assert_eq!(place.host.remembered(), 0, "they are all awake");

    for &id in &ids {
        place.sleep(id).await.unwrap();
    }
    place.settle().await;

    assert_eq!(place.host.remembered(), 2);
    for (key, id) in ["a", "b", "c", "d"].into_iter().zip(ids) {
        assert_eq!(place.resolve(get(key)).await.unwrap().id, id);
        place.call(Address::Id(id), "echo", "").await.unwrap();
    }
    assert_eq!(place.script.overlaps(), 0);
}

#[tokio::test]
async fn a_list_of_the_newest_goes_back_page_by_page_within_its_type() {
    let place = Place::new().await;
    let other = ActorName::new("other").unwrap();
    place.host.register(HERE, other.clone(), place.script.factory(HOOKS, config()));
    for of in ["a", "b", "c"] {
        place.resolve(or_create(of)).await.unwrap();
        let create = Some(greenroom::host::embedded::Create::default());
        place.resolve(Address::Key { name: other.clone(), key: key(of), create }).await.unwrap();
    }

    let first = within(place.host.list_newest(counter(), None, 2)).await.unwrap();
    let before = first.last().map(|row| row.number);
    let second = within(place.host.list_newest(counter(), before, 2)).await.unwrap();

    let shown = |rows: &[greenroom::store::ActorRow]| -> Vec<_> {
        rows.iter().map(|row| row.key.to_string()).collect()
    };
    assert_eq!((shown(&first), shown(&second)), (vec!["c".into(), "b".into()], vec!["a".into()]));
    assert!(within(place.host.list_newest(counter(), None, 0)).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_types_that_can_run_are_listed_once_with_their_settings() {
    let place = Place::new().await;
    place.host.register(HERE, counter(), place.script.factory(HOOKS, config()));

    let types = place.host.types();

    assert_eq!(types.into_keys().collect::<Vec<_>>(), [counter()]);
    assert_eq!(place.host.config(&counter()).as_deref(), Some(&config()));
    assert_eq!(place.host.config(&ActorName::new("other").unwrap()), None);
}
