use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Call,
    Destroy,
    Sleep,
    Wake,
    Resign,
    Start,
    End(u8),
    Delete(bool),
    Refuse,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Call),
        1 => Just(Event::Destroy),
        1 => Just(Event::Sleep),
        1 => Just(Event::Wake),
        1 => Just(Event::Resign),
        3 => Just(Event::Start),
        2 => (0..4u8).prop_map(Event::End),
        1 => any::<bool>().prop_map(Event::Delete),
        1 => Just(Event::Refuse),
    ]
}

proptest! {
    /// Whatever happens in whatever order: one generation at a time, calls are
    /// accepted in the order in which they came, and everybody is answered once.
    #[test]
    fn one_life_at_a_time_and_everybody_is_served_in_order(
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut actor = actor();
        let (mut calls, mut generations) = (0, 0);
        let mut living: Option<Generation> = None;
        let mut served = Vec::new();
        let mut held = None;
        let mut deleting = false;
        let mut gone = false;
        for event in events {
            if gone {
                break;
            }
            match event {
                Event::Call => {
                    calls += 1;
                    actor.enqueue(call(calls));
                }
                Event::Destroy => actor.enqueue(destroy().0),
                Event::Sleep => actor.enqueue(sleep().0),
                Event::Wake => actor.enqueue(wake().0),
                Event::Resign => if let Some(g) = living { actor.resign(g); }
                Event::Start => if let Some(g) = living { actor.started(g); }
                Event::End(how) => if let Some(g) = living.take() {
                    let outcome = match how {
                        0 => Slept,
                        1 => Destroyed,
                        2 => Broken(oops()),
                        _ => StartFailed(oops()),
                    };
                    served.extend(calls_among(&actor.ended(g, &outcome, false).unwrap()));
                },
                Event::Delete(fails) if deleting => {
                    deleting = false;
                    let result = if fails { Err(oops()) } else { Ok(()) };
                    if let Some((refused, _)) = actor.deleted(result) {
                        let calls = refused.waiters.iter().filter_map(|w| match w.want {
                            Want::Call(n) => Some(n),
                            _ => None,
                        });
                        served.extend(calls);
                    }
                }
                Event::Delete(_) => {}
                Event::Refuse => if let Some((g, waiter)) = held.take() {
                    actor.refused(g, waiter);
                },
            }
            if held.is_some() {
                // A call is in the hands of the pump: no other step may happen.
                prop_assert!(!actor.take_pump());
                continue;
            }
            actor.take_pump();
            loop {
                match actor.step(&open()) {
                    Step::Rest => break,
                    Step::Open(_) => {
                        prop_assert!(living.is_none() && !deleting);
                        generations += 1;
                        prop_assert!(actor.opened(Gen(generation(generations)), HERE));
                        living = Some(generation(generations));
                    }
                    Step::Accept(live, waiter) => {
                        prop_assert_eq!(Some(live.0), living);
                        // Every third call is refused, some later.
                        let n = numbers(std::slice::from_ref(&waiter))[0];
                        if n.is_multiple_of(3) && generations % 2 == 1 {
                            held = Some((live.0, waiter));
                            break;
                        }
                        served.push(n);
                    }
                    Step::Delete(_) => {
                        prop_assert!(living.is_none() && !deleting);
                        deleting = true;
                    }
                    Step::Vanish(farewell) => {
                        let orphans = farewell.orphans.iter().filter_map(|w| match w.want {
                            Want::Call(n) => Some(n),
                            _ => None,
                        });
                        served.extend(orphans);
                        gone = true;
                        break;
                    }
                    Step::Sleep(live) | Step::Destroy(live) => {
                        prop_assert_eq!(Some(live.0), living);
                    }
                    Step::Woken(_) => prop_assert!(living.is_some()),
                    Step::Slept(_) | Step::Found(_) | Step::Exists(_) => {}
                    Step::Refuse(..) => prop_assert!(false, "the world is open"),
                }
            }
        }
        let mut sorted = served.clone();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(&served, &sorted, "in order, nobody twice");
        let waiting = served.len() + usize::from(held.is_some());
        let left = actor.waiting.iter().filter(|w| matches!(w.want, Want::Call(_))).count();
        prop_assert_eq!(waiting + left, calls as usize, "nobody lost");
    }
}
