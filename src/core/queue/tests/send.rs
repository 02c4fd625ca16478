use super::*;

#[test]
fn the_message_beyond_the_limit_is_refused_and_room_comes_back() {
    let mut queue = Queue::load(QueueRows::default(), settings(1), START_MS).0;
    send(&mut queue, "a");

    let refused = queue.send(message("a"), at(0)).unwrap_err();

    assert_eq!(refused, QueueError::Full { limit: 1 });
    assert!(refused.to_string().starts_with("Queue is full. Limit is 1"));
    assert_eq!(poll(&mut queue, wanted(&[], 1, false), at(0)).len(), 1);
    assert_eq!(send(&mut queue, "a"), MessageId(2));
}

#[test]
fn a_message_as_long_as_the_limit_is_taken_and_a_longer_one_is_not() {
    let limits = QueueSettings { max_message_len: 24, ..settings(10) };
    let mut queue = Queue::load(QueueRows::default(), limits, START_MS).0;
    let of = |len| NewMessage { body: Bytes::from(vec![0; len]), ..message("job") };

    assert!(queue.send(of(5), at(0)).is_ok());
    let refused = queue.send(of(6), at(0)).unwrap_err();

    assert_eq!(refused, QueueError::MessageTooLarge { size: 25, limit: 24 });
    assert_eq!(queue.len(), 1);
}

#[test]
fn ids_go_on_after_a_reset_and_a_restart() {
    let mut rows = Rows::default();
    let mut queue = empty();
    for _ in 0..2 {
        rows.apply(&queue.send(message("a"), at(0)).unwrap().1.ops);
    }
    rows.apply(&queue.reset().ops);

    let (mut queue, _) = Queue::load(rows.load(), settings(10), START_MS);

    assert!(queue.is_empty());
    assert_eq!(send(&mut queue, "a"), MessageId(3));
}

#[test]
fn a_second_send_of_a_key_is_the_first_one_also_after_a_restart() {
    let mut rows = Rows::default();
    let mut queue = empty();
    rows.apply(&queue.send(keyed("a", "k"), at(0)).unwrap().1.ops);

    let (again, change) = queue.send(keyed("a", "k"), at(5)).unwrap();
    let first = Sent { id: MessageId(1), created_at_ms: START_MS, is_duplicate: true };
    assert_eq!((again, change), (first, Change::default()));
    let (mut queue, _) = Queue::load(rows.load(), settings(1), START_MS);

    // Also while there is no room, since none is needed.
    assert_eq!(queue.send(keyed("a", "k"), at(9)).unwrap().0, first);
    let other = queue.send(keyed("b", "k"), at(9)).unwrap_err();
    assert_eq!(other, QueueError::Full { limit: 1 });
}

#[test]
fn a_key_is_known_for_a_day_and_longer_while_its_message_waits() {
    let day = u64::try_from(REMEMBERED_FOR.as_millis()).unwrap();
    let mut queue = empty();
    drop(queue.send(keyed("a", "done"), at(0)).unwrap());
    poll(&mut queue, wanted(&[], 1, false), at(0));
    drop(queue.send(keyed("a", "waits"), at(0)).unwrap());

    let is_known = |queue: &mut Queue, key: &str, ms| {
        queue.send(keyed("a", key), at(ms)).unwrap().0.is_duplicate
    };
    assert!(is_known(&mut queue, "done", day - 1));
    assert!(!is_known(&mut queue, "done", day));
    assert!(is_known(&mut queue, "waits", day + 1));
}

#[test]
fn of_keys_whose_messages_are_gone_the_last_are_known() {
    let mut rows = Rows::default();
    let mut queue = empty();
    for n in 0..=REMEMBERED {
        let key = n.to_string();
        rows.apply(&queue.send(keyed("a", &key), at(n as u64)).unwrap().1.ops);
        let (_, change) = queue.receive(wanted(&[], 1, false), within(0), at(n as u64));
        rows.apply(&change.ops);
    }

    let last = u64::try_from(REMEMBERED).unwrap();
    assert_eq!(rows.keys.len(), REMEMBERED);
    assert!(!queue.send(keyed("a", "0"), at(last)).unwrap().0.is_duplicate);
    assert!(queue.send(keyed("a", "1"), at(last)).unwrap().0.is_duplicate);
}

#[test]
fn a_delayed_message_is_handed_out_at_its_moment_and_not_before() {
    let mut queue = empty();
    drop(queue.send(delayed("a", 5_000), at(0)).unwrap());
    let (waiter, change) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));

    assert_eq!(change, Change::default());
    assert_eq!(queue.next_due(at(1_000)), Some(at(5_000).now));
    assert_eq!(queue.alarm_ms(at(1_000).unix_ms), Some(at(5_000).unix_ms));
    assert_eq!(queue.tick(at(4_999)), Change::default());
    let change = queue.tick(at(5_000));

    assert!(matches!(&change.wakes[..], [Wake::Messages { waiter: w, .. }] if *w == waiter));
    assert_eq!(queue.next_due(at(5_000)), None);
}

#[test]
fn a_delay_without_end_never_comes_and_breaks_nothing() {
    let mut queue = empty();
    drop(queue.send(NewMessage { delay: Duration::MAX, ..message("a") }, at(0)).unwrap());
    let (_, change) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));

    assert_eq!(change, Change::default());
    assert!(queue.next_due(at(0)).is_some());
    assert_eq!(queue.alarm_ms(START_MS), Some(i64::MAX));
}

#[test]
fn who_sends_and_waits_hears_the_response() {
    let mut queue = empty();
    let (sent, waiter, _) = queue.send_and_wait(message("a"), Patience::default(), at(0)).unwrap();
    let delivery = take(&mut queue, "a", at(0)).unwrap();

    let response = Some(Bytes::from_static(b"done"));
    let change = queue.complete(sent.id, delivery.deliveries, response.clone(), at(1)).unwrap();

    assert_eq!(change.ops, [QueueOp::Remove(sent.id)]);
    assert_eq!(change.wakes, [Wake::Completed { waiter, response }]);
}

#[test]
fn a_wait_for_a_completion_times_out_and_leaves_the_message() {
    let mut queue = empty();
    let (_, waiter, _) = queue.send_and_wait(message("a"), within(50), at(0)).unwrap();

    assert_eq!(queue.next_due(at(0)), Some(at(50).now));
    assert_eq!(queue.active_waits(), 0);
    assert_eq!(queue.tick(at(50)).wakes, [Wake::TimedOut(waiter)]);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_wait_that_was_given_up_before_it_began_leaves_its_message() {
    let mut queue = empty();
    let cancelled = Patience { timeout: None, is_cancelled: true };

    let (_, waiter, change) = queue.send_and_wait(message("a"), cancelled, at(0)).unwrap();

    assert_eq!(change.wakes, [Wake::Aborted(waiter)]);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_second_wait_under_one_key_hears_of_the_first_message() {
    let mut queue = empty();
    let patience = Patience::default();
    let (_, first, _) = queue.send_and_wait(keyed("a", "k"), patience, at(0)).unwrap();
    let (sent, second, _) = queue.send_and_wait(keyed("a", "k"), patience, at(0)).unwrap();
    assert!(sent.is_duplicate);

    let (_, change) = queue.complete_by_id(sent.id, "a", None, at(0)).unwrap();
    let over = queue.send_and_wait(keyed("a", "k"), patience, at(0)).unwrap();

    let completed = |waiter| Wake::Completed { waiter, response: None };
    assert_eq!(change.wakes, [completed(first), completed(second)]);
    assert_eq!(over.2.wakes, [completed(over.1)]);
}
