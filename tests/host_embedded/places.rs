//! Several environments on one host.

use std::sync::Arc;

use greenroom::core::behavior::{Behavior, BehaviorFactory, Hooks};
use greenroom::core::config::ActorConfig;
use greenroom::core::context::ActorContext;
use greenroom::host::embedded::{Address, EmbeddedHost};
use greenroom::ids::ActorName;
use greenroom::store::StoreLocation;
use greenroom::time::{Clock, Duration};
use parking_lot::Mutex;

use crate::place::{
    HERE, Place, THERE, call, code, config, counter, get, options, or_create, within,
};
use crate::script::{HOOKS, Script};

/// A place, and the script of the same type in a second environment.
async fn two() -> (Place, Script) {
    let place = Place::new().await;
    let there = Script::default();
    place.host.register(THERE, counter(), there.factory(HOOKS, config()));
    (place, there)
}

#[tokio::test]
async fn an_actor_runs_where_it_was_asked_for_first_and_stays_there() {
    let (place, there) = two().await;

    call(&place.host, or_create("a"), THERE, "echo", "1").await.unwrap();
    call(&place.host, get("a"), HERE, "echo", "2").await.unwrap();

    assert_eq!(there.seen("echo"), ["echo 1", "echo 2"]);
    assert!(place.script.log().is_empty());
}

#[tokio::test]
async fn an_environment_that_cannot_run_the_type_is_served_by_one_that_can() {
    let (place, there) = two().await;
    let other = ActorName::new("other").unwrap();
    place.host.register(THERE, other.clone(), there.factory(HOOKS, config()));
    let Address::Key { key, create, .. } = or_create("a") else { unreachable!() };

    let address = Address::Key { name: other, key, create };
    call(&place.host, address, HERE, "echo", "").await.unwrap();

    assert_eq!(there.count("echo"), 1);
}

#[tokio::test]
async fn a_registration_takes_effect_at_the_next_start() {
    let place = Place::new().await;
    let id = place.running("a").await;
    let newer = Script::default();
    place.host.register(HERE, counter(), newer.factory(HOOKS, config()));

    place.call(get("a"), "echo", "old").await.unwrap();
    place.sleep(id).await.unwrap();
    place.call(get("a"), "echo", "new").await.unwrap();

    assert_eq!(place.script.seen("echo"), ["echo x", "echo old"]);
    assert_eq!(newer.seen("echo"), ["echo new"]);
}

#[tokio::test]
async fn a_reload_puts_what_runs_to_sleep_once_its_calls_have_ended() {
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("hold");
    let open = place.call(get("a"), "hold", "");
    place.until(|| place.script.waiting("hold") == 1).await;
    let newer = Script::default();

    place.host.reload(HERE, counter(), newer.factory(HOOKS, config()));
    let next = place.call(get("a"), "echo", "new");
    place.script.release("hold");

    open.await.unwrap();
    next.await.unwrap();
    assert_eq!(newer.seen("echo"), ["echo new"]);
    assert_eq!(place.script.count("on_sleep"), 1);
    assert_eq!(place.script.alive(), 0);
}

#[tokio::test]
async fn a_reload_meets_an_actor_that_is_about_to_start() {
    let place = Place::new().await;
    place.script.hold("on_wake");
    let waiting = place.call(or_create("a"), "echo", "");
    place.until(|| place.script.waiting("on_wake") == 1).await;
    let newer = Script::default();

    place.host.reload(HERE, counter(), newer.factory(HOOKS, config()));
    place.script.release("on_wake");

    waiting.await.unwrap();
    assert_eq!(newer.count("echo"), 1);
    assert_eq!((newer.overlaps(), place.script.alive()), (0, 0));
}

/// Has its type reloaded while it makes a generation.
struct Overtaken {
    host: Arc<EmbeddedHost>,
    by: Mutex<Option<Arc<dyn BehaviorFactory>>>,
    old: Arc<dyn BehaviorFactory>,
}

impl BehaviorFactory for Overtaken {
    fn config(&self) -> &Arc<ActorConfig> {
        self.old.config()
    }

    fn hooks(&self) -> Hooks {
        self.old.hooks()
    }

    fn attach(&self, context: ActorContext) -> Arc<dyn Behavior> {
        let by = self.by.lock().take();
        if let Some(by) = by {
            self.host.reload(HERE, counter(), by);
        }
        self.old.attach(context)
    }
}

#[tokio::test]
async fn a_reload_meets_an_actor_that_is_being_made() {
    let place = Place::new().await;
    let newer = Script::default();
    let overtaken = Overtaken {
        host: Arc::clone(&place.host),
        by: Mutex::new(Some(newer.factory(HOOKS, config()))),
        old: place.script.factory(HOOKS, config()),
    };
    place.host.register(HERE, counter(), Arc::new(overtaken));

    place.call(or_create("a"), "echo", "").await.unwrap();

    assert_eq!((place.script.count("echo"), newer.count("echo")), (0, 1));
    assert_eq!((place.script.alive(), newer.alive()), (0, 1));
}

#[tokio::test]
async fn a_reload_leaves_other_types_and_other_environments_alone() {
    let (place, there) = two().await;
    call(&place.host, or_create("a"), THERE, "echo", "1").await.unwrap();
    let other = ActorName::new("other").unwrap();
    place.host.register(HERE, other.clone(), place.script.factory(HOOKS, config()));
    let Address::Key { key, create, .. } = or_create("b") else { unreachable!() };
    let address = Address::Key { name: other, key, create };
    call(&place.host, address, HERE, "echo", "2").await.unwrap();

    place.host.reload(HERE, counter(), Script::default().factory(HOOKS, config()));

    call(&place.host, get("a"), HERE, "echo", "3").await.unwrap();
    assert_eq!(there.seen("echo"), ["echo 1", "echo 3"]);
    assert_eq!((there.alive(), place.script.alive()), (1, 1));
}

#[tokio::test]
async fn calls_of_an_environment_that_goes_are_answered_and_its_actors_start_elsewhere() {
    let (place, there) = two().await;
    call(&place.host, or_create("a"), THERE, "set", "kept").await.unwrap();
    there.hold("hold");
    let open = call(&place.host, get("a"), HERE, "hold", "");

    place.host.environment_gone(THERE);
    let error = open.await.unwrap_err();

    assert!(error.is("actor", "environment_gone"));
    assert_eq!(error.metadata.as_ref().unwrap()["retryable"], true);
    assert_eq!(place.call(get("a"), "get", "").await.unwrap(), "kept");
    assert_eq!(place.script.count("get"), 1);
    assert_eq!(there.alive(), 0);
}

#[tokio::test]
async fn an_actor_that_is_busy_when_its_environment_leaves_is_asked_for_its_last_state() {
    let place = Place::new().await;
    let there = Script::default();
    let hooks = Hooks { serialize_state: true, ..HOOKS };
    place.host.register(THERE, counter(), there.factory(hooks, config()));
    call(&place.host, or_create("a"), THERE, "echo", "").await.unwrap();
    there.hold("hold");
    let open = call(&place.host, get("a"), HERE, "hold", "");
    place.until(|| there.waiting("hold") == 1).await;
    let before = there.count("serialize");

    let parted = place.host.leave(THERE, Duration::from_secs(1));
    place.settle().await;
    place.clock.advance(Duration::from_secs(1));
    let departure = within(parted).await;

    assert_eq!(departure.report.not_drained.len(), 1);
    assert_eq!(code(open.await), "actor/environment_gone");
    assert_eq!(there.count("serialize"), before + 1);
    assert_eq!(there.alive(), 0);
}

#[tokio::test]
async fn who_waits_for_a_start_in_an_environment_that_goes_gets_the_next_one() {
    let (place, there) = two().await;
    there.hold("on_wake");
    let waiting = call(&place.host, or_create("a"), THERE, "echo", "");
    place.until(|| there.waiting("on_wake") == 1).await;

    place.host.environment_gone(THERE);

    waiting.await.unwrap();
    assert_eq!(place.script.count("echo"), 1);
    assert_eq!((there.overlaps(), there.alive()), (0, 0));
}

#[tokio::test]
async fn who_waits_for_a_start_that_nobody_else_can_make_is_told_so() {
    let place = Place::new().await;
    let there = Script::default();
    let only = ActorName::new("only").unwrap();
    place.host.register(THERE, only.clone(), there.factory(HOOKS, config()));
    there.hold("on_wake");
    let Address::Key { key, create, .. } = or_create("a") else { unreachable!() };
    let address = Address::Key { name: only, key, create };
    let waiting = call(&place.host, address.clone(), HERE, "echo", "");
    place.until(|| there.waiting("on_wake") == 1).await;

    place.host.environment_gone(THERE);

    assert_eq!(code(waiting.await), "actor/environment_gone");
    let later = call(&place.host, address, HERE, "echo", "").await;
    assert_eq!(code(later), "actor/not_registered");
}

#[tokio::test]
async fn an_environment_that_goes_twice_or_was_never_there_changes_nothing() {
    let (place, _there) = two().await;
    place.running("a").await;

    place.host.environment_gone(THERE);
    place.host.environment_gone(THERE);

    assert!(!place.host.is_shut_down());
    place.call(get("a"), "echo", "").await.unwrap();
}

#[tokio::test]
async fn the_last_environment_that_goes_closes_the_store_and_frees_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::folder(dir.path()).await;
    place.running("a").await;
    place.call(get("a"), "set", "kept").await.unwrap();

    place.host.environment_gone(HERE);
    within(place.host.shutdown(Duration::ZERO)).await;

    let clock = Clock::manual(0);
    let location = StoreLocation::Folder(dir.path().to_owned());
    let again = within(EmbeddedHost::open(options(location, &clock))).await.unwrap();
    assert!(!Arc::ptr_eq(&again, &place.host));
    let script = Script::default();
    again.register(HERE, counter(), script.factory(HOOKS, config()));
    assert_eq!(call(&again, get("a"), HERE, "get", "").await.unwrap(), "kept");
}
