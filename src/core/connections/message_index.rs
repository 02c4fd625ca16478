//! The numbers of messages from a client: 16 bits, the first one is 1, and after the
//! largest comes 0.

/// How many messages may be handled before their number is stored: a quarter of all numbers.
/// With more than half of them behind it, a number that was stored would look like a later
/// one.
pub(super) const MAX_UNSTORED: u16 = 16_384;

/// Where a message stands that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one: handle it.
    Next,
    /// It was handled before: drop it silently.
    Duplicate,
    /// Messages before it are missing: the socket cannot go on.
    Skipped,
}

impl Arrival {
    /// What `index` is after `last`, which was handled.
    pub(super) fn of(index: u16, last: u16) -> Self {
        match index.wrapping_sub(last) {
            1 => Self::Next,
            ahead if is_ahead(ahead) => Self::Skipped,
            _ => Self::Duplicate,
        }
    }
}

/// The later one of two numbers.
pub(super) fn later(a: u16, b: u16) -> u16 {
    if is_ahead(b.wrapping_sub(a)) { b } else { a }
}

/// The earlier one of two numbers.
pub(super) fn earlier(a: u16, b: u16) -> u16 {
    if later(a, b) == a { b } else { a }
}

/// Whether a number that is so much larger is a later one, and not an earlier one that
/// lies before the wrap.
const fn is_ahead(distance: u16) -> bool {
    distance != 0 && distance <= u16::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_is_one_more_across_the_wrap() {
        assert_eq!(Arrival::of(1, 0), Arrival::Next);
        assert_eq!(Arrival::of(0, u16::MAX), Arrival::Next);
    }

    #[test]
    fn the_same_and_earlier_numbers_are_duplicates_across_the_wrap() {
        assert_eq!(Arrival::of(7, 7), Arrival::Duplicate);
        assert_eq!(Arrival::of(6, 7), Arrival::Duplicate);
        assert_eq!(Arrival::of(u16::MAX, 3), Arrival::Duplicate);
    }

    #[test]
    fn a_number_beyond_the_next_is_a_gap() {
        assert_eq!(Arrival::of(3, 1), Arrival::Skipped);
        assert_eq!(Arrival::of(1, u16::MAX), Arrival::Skipped);
    }

    #[test]
    fn the_later_of_two_numbers_never_goes_back() {
        assert_eq!(later(5, 4), 5);
        assert_eq!(later(5, 6), 6);
        assert_eq!(later(u16::MAX, 2), 2);
        assert_eq!(later(2, u16::MAX), 2);
    }

    #[test]
    fn of_two_numbers_one_is_the_earlier_and_the_other_the_later() {
        for (a, b) in [(5, 4), (5, 5), (5, 6), (u16::MAX, 2), (2, u16::MAX)] {
            let mut both = [earlier(a, b), later(a, b)];
            assert_eq!(earlier(a, b), earlier(b, a));
            both.sort_unstable();
            assert_eq!(both, [a.min(b), a.max(b)]);
        }
    }
}
