//! Any order of requests, successes, failures, cancellations and passing time.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Statement,
    Batch,
    Begin(u8),
    Inside(u8),
    Commit(u8),
    RollBack(u8),
    Expire(u8),
    Succeed,
    /// The step fails; whether an open transaction is gone behind it.
    Fail(bool),
    /// A statement outside begins or ends a transaction by hand.
    ByHand,
    Cancel(u8),
    Pass(u16),
}

fn event() -> impl Strategy<Value = Event> {
    let key = 0..4u8;
    prop_oneof![
        3 => Just(Event::Statement),
        1 => Just(Event::Batch),
        2 => key.clone().prop_map(Event::Begin),
        3 => key.clone().prop_map(Event::Inside),
        2 => key.clone().prop_map(Event::Commit),
        1 => key.clone().prop_map(Event::RollBack),
        1 => key.prop_map(Event::Expire),
        9 => Just(Event::Succeed),
        1 => any::<bool>().prop_map(Event::Fail),
        1 => Just(Event::ByHand),
        1 => any::<u8>().prop_map(Event::Cancel),
        2 => (0..1500u16).prop_map(Event::Pass),
    ]
}

/// Looks on beside a desk.
#[derive(Default)]
struct Witness {
    /// What was taken, with whether it comes from outside of transactions.
    taken: Vec<(Ticket, bool)>,
    /// Of those, what is a batch or a beginning.
    may_wait: Vec<Ticket>,
    /// How many transactions are begun under a key, and which attempt is the last.
    attempts: [u32; 4],
    was_manual: bool,
}

impl Witness {
    fn key(&self, key: u8) -> String {
        format!("{key}.{}", self.attempts[usize::from(key)])
    }

    fn take(&mut self, desk: &mut Desk, request: Request, outside: bool) {
        let may_wait = !matches!(request, Request::Statement { .. });
        if let Ok(ticket) = desk.submit(request) {
            self.taken.push((ticket, outside));
            if may_wait && outside {
                self.may_wait.push(ticket);
            }
        }
    }

    fn see(&mut self, desk: &mut Desk, event: Event) {
        let own = |key: &Self, n| key.key(n);
        match event {
            Event::Statement => self.take(desk, Request::Statement { by_hand: false }, true),
            Event::Batch => self.take(desk, Request::Batch, true),
            Event::Begin(n) => {
                self.attempts[usize::from(n)] += 1;
                let key = own(self, n);
                self.take(desk, Request::Begin { key, timeout: SECOND }, true);
            }
            Event::Inside(n) => {
                let key = own(self, n);
                self.take(desk, Request::Inside { key, ends_as: Ending::RolledBack }, false);
            }
            Event::Commit(n) => {
                let key = own(self, n);
                self.take(desk, Request::Commit { key }, false);
            }
            Event::RollBack(n) => {
                let key = own(self, n);
                self.take(desk, Request::RollBack { key }, false);
            }
            Event::Expire(n) => {
                let key = own(self, n);
                self.take(desk, Request::Expire { key }, false);
            }
            Event::Succeed if desk.running.is_some() => desk.finish(),
            Event::Fail(gone) if desk.running.is_some() => {
                let is_rollback = desk.running.is_some_and(|(_, step)| step == Step::RollBack);
                desk.autocommit |= gone || is_rollback;
                desk.report(Err(failure()));
            }
            Event::ByHand if self.runs_statement_outside(desk) => {
                self.was_manual = true;
                desk.autocommit = !desk.autocommit;
                desk.report(Ok(()));
            }
            Event::Cancel(n) => {
                if let Some(&(ticket, _)) = self.taken.iter().rev().nth(usize::from(n))
                    && !desk.answers.contains_key(&ticket)
                {
                    desk.cancel(ticket);
                }
            }
            Event::Pass(ms) => desk.pass(Duration::from_millis(u64::from(ms))),
            Event::Succeed | Event::Fail(_) | Event::ByHand => {}
        }
    }

    fn runs_statement_outside(&self, desk: &Desk) -> bool {
        desk.running.is_some_and(|(running, _)| {
            self.taken.contains(&(running, true)) && !self.may_wait.contains(&running)
        })
    }
}

proptest! {
    #[test]
    fn everybody_is_answered_once_and_nobody_slips_in(events in prop::collection::vec(event(), 0..120)) {
        let (mut desk, mut witness) = (Desk::new(), Witness::default());

        for event in events {
            let before = desk.started.len();
            let in_transaction = desk.coordinator.transaction.is_some();
            witness.see(&mut desk, event);
            // Invariant 3: what starts behind an open transaction is its own.
            if in_transaction && desk.coordinator.transaction.is_some() {
                for (ticket, _) in &desk.started[before..] {
                    prop_assert!(!witness.taken.contains(&(*ticket, true)));
                }
            }
            prop_assert!(desk.coordinator.admitted <= ADMITTED);
            // Nothing is left lying that could run.
            let idle = desk.running.is_none() && desk.coordinator.transaction.is_none();
            prop_assert!(!idle || desk.coordinator.waiting.is_empty());
        }
        // Invariant 2.
        if !witness.was_manual {
            let outside: Vec<Ticket> = desk
                .started
                .iter()
                .map(|(ticket, _)| *ticket)
                .filter(|ticket| witness.taken.contains(&(*ticket, true)))
                .collect();
            prop_assert!(outside.is_sorted());
        }

        let close = desk.submit(Request::Close).unwrap();
        desk.finish_all();

        prop_assert_eq!(desk.answer(close), &Ok(()));
        for (ticket, _) in witness.taken {
            prop_assert!(desk.answers.contains_key(&ticket), "{:?} has no answer", ticket);
        }
        prop_assert_eq!(desk.coordinator.admitted, 0);
        prop_assert_eq!(desk.coordinator.next_deadline(), None);
        prop_assert!(desk.autocommit && desk.failures.is_empty());
    }
}
