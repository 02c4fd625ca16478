//! The numbers of messages (invariant 3).
//!
//! A table lists messages in the order of the newest version with the version that brought
//! each; a version's number of a message is its place among those that the version has. The
//! first version had messages that no later one has, so it has a table of its own.

use super::Version;

/// A message and the version that brought it.
pub(super) type Since<K> = (K, Version);

/// The number of a message in a version; `None` if it has none there.
pub(super) fn tag_of<K: Copy + PartialEq>(
    newest: &[Since<K>],
    first: &[K],
    version: Version,
    kind: K,
) -> Option<u64> {
    let place = match version {
        Version::V1 => first.iter().position(|known| *known == kind),
        _ => of(newest, version).position(|known| known == kind),
    };
    place.map(|place| place as u64)
}

/// The message of a number in a version.
pub(super) fn kind_of<K: Copy + PartialEq>(
    newest: &[Since<K>],
    first: &[K],
    version: Version,
    tag: u64,
) -> Option<K> {
    let place = usize::try_from(tag).ok()?;
    match version {
        Version::V1 => first.get(place).copied(),
        _ => of(newest, version).nth(place),
    }
}

fn of<K: Copy>(newest: &[Since<K>], version: Version) -> impl Iterator<Item = K> + '_ {
    newest.iter().filter(move |(_, since)| *since <= version).map(|(kind, _)| *kind)
}
