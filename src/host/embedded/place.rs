//! Which environments can run which types of actors.
//!
//! # Invariants
//!
//! 1. An environment that left can run nothing.
//! 2. Where several can run a type, the one that asks wins, else the one with the
//!    lowest number: the same registrations always give the same place.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::EnvironmentId;
use super::error::HostError;
use crate::core::behavior::BehaviorFactory;
use crate::core::config::ActorConfig;
use crate::ids::ActorName;

/// The environments of a host and what they can run.
#[derive(Default)]
pub(super) struct Places {
    live: BTreeMap<EnvironmentId, Types>,
    /// How often each has opened the host and not left it.
    openings: HashMap<EnvironmentId, usize>,
    /// Who could run a type and has left, for the error when nobody else can.
    departed: HashMap<ActorName, EnvironmentId>,
}

/// What one environment can run.
type Types = HashMap<ActorName, Registered>;

/// By what a type of actors runs.
pub(super) struct Registered {
    factory: Arc<dyn BehaviorFactory>,
    /// A generation by an earlier factory is to end at once.
    evicts: bool,
}

/// Where a generation runs, and with what code.
pub(super) type Place = (EnvironmentId, Arc<dyn BehaviorFactory>);

impl Places {
    /// An environment that uses the host, whether it can run anything or not; once
    /// more for each of its openings.
    pub(super) fn join(&mut self, environment: EnvironmentId) {
        self.live.entry(environment).or_default();
        *self.openings.entry(environment).or_default() += 1;
    }

    /// One opening of an environment fewer; returns how many it has left. The last
    /// one stays until [`Places::leave`].
    pub(super) fn part(&mut self, environment: EnvironmentId) -> usize {
        let Some(openings) = self.openings.get_mut(&environment) else { return 0 };
        if *openings <= 1 {
            return 0;
        }
        *openings -= 1;
        *openings
    }

    /// Whether nobody but this environment uses the host.
    pub(super) fn is_alone(&self, environment: EnvironmentId) -> bool {
        self.live.keys().all(|&other| other == environment)
    }

    /// What an environment can run, in place of what it ran under this name; with
    /// `evicts` whatever runs by that is outdated.
    pub(super) fn register(
        &mut self,
        environment: EnvironmentId,
        name: ActorName,
        factory: Arc<dyn BehaviorFactory>,
        evicts: bool,
    ) -> Option<Registered> {
        let types = self.live.entry(environment).or_default();
        types.insert(name, Registered { factory, evicts })
    }

    /// Whether what runs by this factory is to end, because another one replaced it
    /// that evicts.
    pub(super) fn is_outdated(
        &self,
        environment: EnvironmentId,
        name: &ActorName,
        factory: &Arc<dyn BehaviorFactory>,
    ) -> bool {
        let current = self.live.get(&environment).and_then(|types| types.get(name));
        current.is_some_and(|current| current.evicts && !Arc::ptr_eq(&current.factory, factory))
    }

    /// Forgets what everybody could run, and returns it.
    pub(super) fn clear(&mut self) -> Vec<Types> {
        self.live.values_mut().map(std::mem::take).collect()
    }

    /// Forgets an environment; returns what it could run, `None` when it was not
    /// there.
    pub(super) fn leave(&mut self, environment: EnvironmentId) -> Option<Types> {
        let types = self.live.remove(&environment)?;
        self.openings.remove(&environment);
        self.departed.extend(types.keys().map(|name| (name.clone(), environment)));
        Some(types)
    }

    /// Whether the environment uses this host.
    pub(super) fn has(&self, environment: EnvironmentId) -> bool {
        self.live.contains_key(&environment)
    }

    /// Whether nobody uses this host.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The environment with the lowest number.
    pub(super) fn first(&self) -> Option<EnvironmentId> {
        self.live.keys().next().copied()
    }

    /// Whether anybody can run the type.
    pub(super) fn can_run(&self, name: &ActorName) -> bool {
        self.live.values().any(|types| types.contains_key(name))
    }

    /// The types that anybody can run with their settings, by their names. Where several
    /// run one, the settings are those of the lowest number (invariant 2).
    pub(super) fn types(&self) -> BTreeMap<ActorName, Arc<ActorConfig>> {
        let mut found = BTreeMap::new();
        for (name, registered) in self.live.values().flatten() {
            found.entry(name.clone()).or_insert_with(|| Arc::clone(registered.factory.config()));
        }
        found
    }

    /// The settings of a type, as [`Places::types`] gives them.
    pub(super) fn config(&self, name: &ActorName) -> Option<Arc<ActorConfig>> {
        Some(Arc::clone(self.factory(name)?.config()))
    }

    /// Who runs a type, in the environment whose settings are given.
    pub(super) fn factory(&self, name: &ActorName) -> Option<Arc<dyn BehaviorFactory>> {
        let registered = self.live.values().find_map(|types| types.get(name))?;
        Some(Arc::clone(&registered.factory))
    }

    /// Where a generation of this type is to run when `wish` asks for it.
    ///
    /// # Errors
    ///
    /// [`HostError::EnvironmentGone`] when nobody can run it any more or `wish` has
    /// left, [`HostError::NotRegistered`] when nobody ever could.
    pub(super) fn choose(&self, name: &ActorName, wish: EnvironmentId) -> Result<Place, HostError> {
        let at = |environment: EnvironmentId| {
            let registered = self.live.get(&environment)?.get(name)?;
            Some((environment, Arc::clone(&registered.factory)))
        };
        at(wish).or_else(|| self.live.keys().find_map(|&environment| at(environment))).ok_or_else(
            || {
                let gone = self.departed.get(name).copied();
                match gone.or_else(|| (!self.has(wish)).then_some(wish)) {
                    Some(environment) => HostError::EnvironmentGone { environment },
                    None => HostError::NotRegistered { name: name.clone() },
                }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::behavior::{Behavior, Hooks};
    use crate::core::config::ActorConfig;
    use crate::core::context::ActorContext;

    struct Nothing(Arc<ActorConfig>);

    impl BehaviorFactory for Nothing {
        fn config(&self) -> &Arc<ActorConfig> {
            &self.0
        }

        fn hooks(&self) -> Hooks {
            Hooks::default()
        }

        fn attach(&self, _: ActorContext) -> Arc<dyn Behavior> {
            unreachable!("these tests start nothing")
        }
    }

    const A: EnvironmentId = EnvironmentId(1);
    const B: EnvironmentId = EnvironmentId(2);
    const C: EnvironmentId = EnvironmentId(3);

    fn name() -> ActorName {
        ActorName::new("counter").unwrap()
    }

    fn places(environments: &[EnvironmentId]) -> Places {
        let mut places = Places::default();
        for &environment in environments {
            let factory = Arc::new(Nothing(Arc::default()));
            assert!(places.register(environment, name(), factory, false).is_none());
        }
        places
    }

    fn chosen(places: &Places, wish: EnvironmentId) -> Result<EnvironmentId, HostError> {
        places.choose(&name(), wish).map(|(environment, _)| environment)
    }

    #[test]
    fn the_environment_that_asks_wins_if_it_can_run_the_type() {
        let mut places = places(&[A, B]);
        places.join(C);

        assert_eq!(chosen(&places, B), Ok(B));
        assert_eq!(chosen(&places, C), Ok(A));
    }

    #[test]
    fn a_type_that_nobody_runs_is_named() {
        let mut places = places(&[]);
        places.join(A);

        assert_eq!(chosen(&places, A), Err(HostError::NotRegistered { name: name() }));
        assert!(!places.can_run(&name()));
    }

    #[test]
    fn what_was_replaced_is_outdated_only_by_one_that_evicts() {
        let mut places = places(&[A]);
        let (_, old) = places.choose(&name(), A).unwrap();
        let next = |places: &mut Places, evicts| {
            let factory: Arc<dyn BehaviorFactory> = Arc::new(Nothing(Arc::default()));
            places.register(A, name(), Arc::clone(&factory), evicts);
            factory
        };

        next(&mut places, false);
        assert!(!places.is_outdated(A, &name(), &old));
        let new = next(&mut places, true);
        assert!(places.is_outdated(A, &name(), &old));
        assert!(!places.is_outdated(A, &name(), &new));
        assert!(!places.is_outdated(B, &name(), &old));
    }

    #[test]
    fn an_environment_that_left_runs_nothing() {
        let mut places = places(&[A]);

        assert!(places.leave(A).is_some());

        assert!(places.leave(A).is_none() && places.is_empty());
        assert_eq!(chosen(&places, A), Err(HostError::EnvironmentGone { environment: A }));
    }
}
