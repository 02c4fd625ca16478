//! By which number a caller's environment knows a call again.
//!
//! A ticket is unique within its environment; with the environment in front it
//! is unique within the process.

/// How many bits a ticket has: more than a process can count.
const TICKET_BITS: u32 = 44;

/// The origin of what `environment` submitted under `ticket`; 0 when either is
/// too large to be told apart from another's.
pub(super) fn of(environment: u64, ticket: u64) -> u64 {
    if ticket >> TICKET_BITS != 0 || environment >> (64 - TICKET_BITS) != 0 {
        return 0;
    }
    environment << TICKET_BITS | ticket
}

/// The ticket of an origin, if `environment` submitted it; else 0.
pub(super) fn ticket_within(environment: u64, origin: u64) -> u64 {
    if origin >> TICKET_BITS == environment { origin & ((1 << TICKET_BITS) - 1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_environment_that_submitted_a_call_knows_it_again() {
        let origin = of(3, 77);

        assert_eq!(ticket_within(3, origin), 77);
        assert_eq!(ticket_within(4, origin), 0);
        assert_eq!(ticket_within(3, of(3, 1 << 44)), 0);
        assert_eq!(ticket_within(1 << 20, of(1 << 20, 5)), 0);
    }
}
