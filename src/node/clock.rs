//! The clock of the place that an actor runs in, as its author sees it.
//!
//! # Invariants
//!
//! 1. A sleep settles its ticket exactly once, unless its environment ends first.
//! 2. A sleep has no task: it is an entry of its actor's machine.

use napi_derive::napi;

use super::env::{self, number, to_js};
use super::guard::trip;
use super::host::settles;
use crate::core::actor::waits::WaitId;
use crate::core::behavior::Reply;
use crate::error::Result;
use crate::time::{Clock, Duration};

/// The time of the place that an actor runs in, in milliseconds since the epoch; of
/// the machine when the generation is over.
#[napi(catch_unwind)]
pub fn clock_now(actor: f64) -> f64 {
    trip();
    let now = match env::context(actor) {
        Some(context) => context.unix_ms(),
        None => Clock::system().unix_ms(),
    };
    now as f64
}

/// Begins a sleep of an actor for `ms` milliseconds, for ever if that is infinite.
/// Settles `ticket` when it is due, given up, or ended by the generation
/// (`actor.aborted`). Its number, or 0 when the generation is over: then nobody may be
/// left to settle `ticket`.
#[napi(catch_unwind)]
pub fn begin_sleep(actor: f64, ms: f64, ticket: f64) -> f64 {
    trip();
    let Some((context, hub)) = env::context_and_hub(actor) else { return 0.0 };
    let settled = settles(&hub, number(ticket));
    let reply = Reply::new(move |result: Result<()>| settled.send(result.map(|()| None)));
    let wait = context.begin_wait(duration(ms), reply);
    wait.map_or(0.0, |WaitId(wait)| to_js(wait))
}

/// Gives up a sleep of an actor by its number. False when it has ended.
#[napi(catch_unwind)]
pub fn end_sleep(actor: f64, sleep: f64) -> bool {
    trip();
    env::context(actor).is_some_and(|context| context.give_up_wait(WaitId(number(sleep))))
}

/// Whole milliseconds, upwards, so that no sleep is shorter than what was asked for.
fn duration(ms: f64) -> Duration {
    if ms.is_infinite() && ms > 0.0 {
        return Duration::MAX;
    }
    Duration::from_millis(number(ms.ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_never_shorter_than_what_was_asked_for() {
        assert_eq!(duration(0.2), Duration::from_millis(1));
        assert_eq!(duration(60.0 * 86_400_000.0), Duration::from_secs(60 * 86_400));
        assert_eq!(duration(f64::INFINITY), Duration::MAX);
    }

    #[test]
    fn what_lies_behind_and_what_is_no_number_is_now() {
        assert_eq!(duration(-5.0), Duration::ZERO);
        assert_eq!(duration(f64::NEG_INFINITY), Duration::ZERO);
        assert_eq!(duration(f64::NAN), Duration::ZERO);
    }
}
