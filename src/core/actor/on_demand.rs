//! A part that most actors never use, made when it is first asked for: an idle actor
//! keeps no room for it.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::core::config::ActorConfig;

/// A part, or how to make it.
#[derive(Debug)]
pub(super) struct OnDemand<T> {
    made: OnceCell<Box<T>>,
    make: fn(&ActorConfig) -> T,
    config: Arc<ActorConfig>,
}

impl<T> OnDemand<T> {
    /// One that is not made.
    pub(super) fn new(config: &Arc<ActorConfig>, make: fn(&ActorConfig) -> T) -> Self {
        Self { made: OnceCell::new(), make, config: Arc::clone(config) }
    }

    /// The part, if it was ever asked for. Whoever only looks asks here.
    pub(super) fn made(&self) -> Option<&T> {
        self.made.get().map(|made| &**made)
    }

    /// The same, to change it.
    pub(super) fn made_mut(&mut self) -> Option<&mut T> {
        self.made.get_mut().map(|made| &mut **made)
    }
}

impl<T> Deref for OnDemand<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.made.get_or_init(|| Box::new((self.make)(&self.config)))
    }
}

impl<T> DerefMut for OnDemand<T> {
    fn deref_mut(&mut self) -> &mut T {
        let _: &T = self;
        // Just made, if it was not there.
        self.made.get_mut().expect("a cell that was read is filled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_made_by_the_first_who_uses_it() {
        let config = Arc::new(ActorConfig::default());
        let mut part = OnDemand::new(&config, |config| vec![config.max_schedules]);

        assert!(part.made().is_none() && part.made_mut().is_none());
        part.push(7);

        assert_eq!(part.made().map(Vec::len), Some(2));
        assert_eq!(part[1], 7);
    }
}
