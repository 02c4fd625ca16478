//! The numbers of a client's messages, of which those that are not stored may never be so
//! many that the next generation takes a later one for an earlier one.

use greenroom::core::config::ActorConfig;
use greenroom::core::connections::{Arrival, ConnHandle};
use greenroom::core::context::ActorContext;
use greenroom::error::{Error, ErrorCode};
#[cfg(feature = "faults")]
use greenroom::store::faults::CommitFault;

use crate::fixture::Fixture;
use crate::hibernation::{SOCKET, interval, lasting};

fn reply() -> ActorConfig {
    ActorConfig { has_state: true, ..ActorConfig::default() }
}

/// Handles ten thousand messages behind `last`, as they come from a socket.
async fn handle(fixture: &Fixture, connection: &ConnHandle, last: u16) {
    for number in 1..=10_000 {
        connection.acknowledge(last + number).unwrap();
        if number % 1_000 == 0 {
            fixture.settle().await;
        }
    }
}

/// The next generation, of one that broke, goes on behind the last of 40,000 messages.
async fn goes_on(fixture: &Fixture, actor: &ActorContext) {
    actor.break_generation(Error::new(ErrorCode::new("user", "no"), "no"));
    fixture.settle().await;

    let next = fixture.started().await;
    let again = next.connection_of(SOCKET).unwrap();
    again.acknowledge(40_000).unwrap();

    assert_eq!(again.arrival(40_000).unwrap(), Arrival::Duplicate);
    assert_eq!(again.arrival(40_001).unwrap(), Arrival::Next);
}

#[tokio::test]
async fn the_number_of_the_last_message_is_stored_before_it_could_look_like_an_earlier_one() {
    for (config, passes) in [(reply(), true), (reply(), false), (interval(), true)] {
        let fixture = Fixture::with(config).await;
        let actor = fixture.started().await;
        let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
        for batch in 0..4 {
            handle(&fixture, &connection, batch * 10_000).await;
            if passes {
                fixture.advance_ms(1_000).await;
            }
        }

        goes_on(&fixture, &actor).await;
    }
}

#[tokio::test]
async fn a_number_that_is_due_is_stored_also_where_the_next_save_is_far() {
    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    fixture.advance_ms(1_000).await;

    for batch in 0..4 {
        handle(&fixture, &connection, batch * 10_000).await;
    }

    goes_on(&fixture, &actor).await;
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn a_number_whose_commit_failed_counts_as_not_stored() {
    let fixture = Fixture::with(interval()).await;
    let actor = fixture.started().await;
    let (_, connection) = lasting(&fixture, &actor, SOCKET).await;
    fixture.advance_ms(1_000).await;
    fixture.faults.fail_commits(2, CommitFault::Full);

    for batch in 0..4 {
        handle(&fixture, &connection, batch * 10_000).await;
        if batch < 2 {
            // A save that carries nothing else begins with it.
            connection.set_state("s".into());
            fixture.advance_ms(1_000).await;
        }
    }

    goes_on(&fixture, &actor).await;
}
