//! How much clients may do: how often one sends, and how many come from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::core::config::ClientLimits;
use crate::ids::ActorId;
use crate::time::Instant;

/// How many parts of a message a bucket counts in, so that nothing is lost to rounding.
const PARTS: u64 = 1_000_000;

/// Lets so many messages pass in a second in the long run, and so many at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Messages a second.
    rate: u64,
    /// In parts of a message.
    room: u64,
    level: u64,
    at: Instant,
}

impl Bucket {
    /// A full one; `None` where nothing is limited.
    pub(super) fn new(limits: ClientLimits, now: Instant) -> Option<Self> {
        let rate = u64::from(limits.messages_per_second?);
        let room = limits.burst.map_or(rate, u64::from).max(1) * PARTS;
        Some(Self { rate, room, level: room, at: now })
    }

    /// Whether one more message may pass.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = u64::try_from(now.since(self.at).as_micros()).unwrap_or(u64::MAX);
        self.level = self.level.saturating_add(passed.saturating_mul(self.rate)).min(self.room);
        self.at = now;
        let may_pass = self.level >= PARTS;
        if may_pass {
            self.level -= PARTS;
        }
        may_pass
    }
}

/// How many sockets each address has at each actor that limits them.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Arc<Mutex<HashMap<(ActorId, IpAddr), u32>>>);

/// The place of one of them, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    addresses: Addresses,
    of: (ActorId, IpAddr),
}

impl Addresses {
    /// Takes a place, unless `limit` are taken.
    pub(super) fn take(&self, actor: ActorId, from: IpAddr, limit: u32) -> Option<Place> {
        let of = (actor, from);
        let mut taken = self.0.lock();
        let count = taken.entry(of).or_default();
        if *count >= limit {
            if *count == 0 {
                taken.remove(&of);
            }
            return None;
        }
        *count += 1;
        drop(taken);
        Some(Place { addresses: self.clone(), of })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.addresses.0.lock();
        if let Some(count) = taken.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::ids::IdSource;
    use crate::time::Duration;

    fn bucket(per_second: u32, burst: Option<u32>) -> Bucket {
        let limits =
            ClientLimits { messages_per_second: Some(per_second), burst, connections_per_ip: None };
        Bucket::new(limits, Instant::START).unwrap()
    }

    #[test]
    fn a_burst_passes_and_what_follows_does_at_the_rate() {
        let mut bucket = bucket(10, Some(3));
        let at = |ms| Instant::START + Duration::from_millis(ms);

        let passed: Vec<_> = [0, 0, 0, 0, 99, 100, 100, 200].map(|ms| bucket.take(at(ms))).into();

        assert_eq!(passed, [true, true, true, false, false, true, false, true]);
    }

    #[test]
    fn without_a_burst_a_second_of_messages_may_come_at_once_and_never_more() {
        let mut bucket = bucket(2, None);
        let later = Instant::START + Duration::from_secs(3600);

        let passed: Vec<_> = (0..3).map(|_| bucket.take(later)).collect();

        assert_eq!(passed, [true, true, false]);
        assert!(Bucket::new(ClientLimits::default(), later).is_none());
    }

    #[test]
    fn an_address_has_so_many_places_at_an_actor_and_gets_them_back() {
        let addresses = Addresses::default();
        let ids = IdSource::seeded(1);
        let (a, b) = (ids.actor_id(), ids.actor_id());
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);

        let first = addresses.take(a, here, 1).unwrap();
        assert!(addresses.take(a, here, 1).is_none());
        assert!(addresses.take(b, here, 1).is_some());
        assert!(addresses.take(b, here, 0).is_none());
        drop(first);

        assert!(addresses.take(a, here, 1).is_some());
        assert!(addresses.0.lock().is_empty());
    }
}
