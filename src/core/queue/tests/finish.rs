use super::*;

#[test]
fn a_message_to_complete_has_one_consumer_at_a_time() {
    let mut queue = empty();
    let id = send(&mut queue, "a");
    let first = take(&mut queue, "a", at(0)).unwrap();
    assert_eq!(take(&mut queue, "a", at(0)), None);

    drop(queue.release(id, first.deliveries, None, None, at(0)).unwrap());
    let second = take(&mut queue, "a", at(0)).unwrap();

    assert_eq!((first.deliveries, second.deliveries), (1, 2));
    let stale = queue.complete(id, first.deliveries, None, at(0)).unwrap_err();
    assert_eq!(stale, QueueError::AlreadyCompleted);
    assert_eq!(
        queue.complete(id, second.deliveries, None, at(0)).unwrap().ops,
        [QueueOp::Remove(id)]
    );
}

#[test]
fn a_message_that_was_not_completed_comes_again_after_a_restart_and_was_counted() {
    let mut rows = Rows::default();
    let mut queue = empty();
    rows.apply(&queue.send(message("a"), at(0)).unwrap().1.ops);
    rows.apply(&queue.receive(wanted(&[], 1, true), within(0), at(0)).1.ops);

    let (mut queue, _) = Queue::load(rows.load(), settings(10), START_MS);
    let (waiter, _) = queue.receive(wanted(&[], 1, true), within(0), at(0));
    let body = Some(Bytes::from_static(b"body"));
    let change = queue.supply(waiter, vec![(MessageId(1), body)], at(0)).unwrap();

    assert_eq!(messages(change)[0].deliveries, 2);
}

#[test]
fn the_completion_of_a_message_that_was_thrown_away_is_fine() {
    let mut queue = empty();
    let (_, waiter, _) = queue.send_and_wait(message("a"), Patience::default(), at(0)).unwrap();
    let delivery = take(&mut queue, "a", at(0)).unwrap();

    let reset = queue.reset();

    let error = QueueError::CompletionWaiterDropped { message_id: 1 };
    assert_eq!(reset.wakes, [Wake::Failed { waiter, error }]);
    assert_eq!(queue.complete(delivery.id, 1, None, at(0)).unwrap(), Change::default());
}

#[test]
fn a_message_is_completed_by_its_id_only_under_its_name() {
    let mut queue = empty();
    let id = send(&mut queue, "a");

    let mismatch = queue.complete_by_id(id, "b", None, at(0)).unwrap_err();
    assert_eq!(
        mismatch,
        QueueError::MessageIdentityMismatch {
            message_id: 1,
            expected_name: "b".into(),
            actual_name: "a".into()
        }
    );
    let (was_there, change) = queue.complete_by_id(id, "a", None, at(0)).unwrap();
    assert!(was_there);
    assert_eq!(change.ops, [QueueOp::Remove(id)]);
    assert_eq!(queue.complete_by_id(id, "a", None, at(0)).unwrap(), (false, Change::default()));
}

#[test]
fn who_waits_for_a_message_that_is_taken_without_completion_hears_of_its_end() {
    let mut queue = empty();
    let (_, waiter, _) = queue.send_and_wait(message("a"), Patience::default(), at(0)).unwrap();

    let (_, change) = queue.receive(wanted(&[], 1, false), within(0), at(0));

    assert_eq!(change.wakes[0], Wake::Completed { waiter, response: None });
}

#[test]
fn a_released_message_waits_as_long_as_it_was_told_or_as_its_policy_says() {
    let mut queue = with_policy("a", 0, 1_000);
    send(&mut queue, "a");
    let delivery = take(&mut queue, "a", at(0)).unwrap();
    let told = Some(Duration::from_millis(50));
    drop(queue.release(delivery.id, 1, told, None, at(0)).unwrap());
    assert_eq!(take(&mut queue, "a", at(49)), None);
    assert_eq!(take(&mut queue, "a", at(50)).unwrap().deliveries, 2);

    let change = queue.release(delivery.id, 2, None, Some("later"), at(100)).unwrap();

    let (id, available_at_ms) = (delivery.id, at(2_100).unix_ms);
    let error = Some("later".into());
    assert_eq!(change.ops, [QueueOp::Release { id, available_at_ms, error }]);
    assert_eq!(take(&mut queue, "a", at(2_099)), None);
    assert!(take(&mut queue, "a", at(2_100)).is_some());
}

#[test]
fn one_bad_message_does_not_block_the_rest_and_dies_after_its_last_delivery() {
    let mut queue = with_policy("a", 2, 1_000);
    let (bad, waiter, _) = queue.send_and_wait(message("a"), Patience::default(), at(0)).unwrap();
    send(&mut queue, "a");
    take(&mut queue, "a", at(0)).unwrap();
    drop(queue.release(bad.id, 1, None, Some("no"), at(0)).unwrap());
    assert_eq!(take(&mut queue, "a", at(0)).unwrap().id, MessageId(2));
    assert_eq!(take(&mut queue, "a", at(1_000)).unwrap().id, bad.id);

    let change = queue.release(bad.id, 2, None, Some("no, no"), at(1_001)).unwrap();

    let error = Some("no, no".into());
    assert_eq!(change.ops, [QueueOp::Bury { id: bad.id, died_at_ms: at(1_001).unix_ms, error }]);
    let error = QueueError::Dead { message_id: 1, deliveries: 2 };
    assert_eq!(change.wakes, [Wake::Failed { waiter, error }]);
    assert_eq!((queue.len(), queue.dead_len()), (1, 1));
}

#[test]
fn a_message_whose_last_delivery_ended_with_the_actor_is_dead_at_the_next_start() {
    let (mut rows, mut queue) = (Rows::default(), with_policy("a", 1, 0));
    rows.apply(&queue.send(message("a"), at(0)).unwrap().1.ops);
    rows.apply(&queue.receive(wanted(&[], 1, true), within(0), at(0)).1.ops);

    let (queue, ops) = Queue::load(rows.load(), queue.settings, at(7).unix_ms);

    rows.apply(&ops);
    assert_eq!((queue.len(), queue.dead_len()), (0, 1));
    assert_eq!((rows.messages.len(), rows.dead.len()), (0, 1));
}

#[test]
fn a_delivery_that_is_lost_with_its_process_is_due_again_after_the_pause() {
    let (mut rows, mut queue) = (Rows::default(), with_policy("a", 0, 1_000));
    rows.apply(&queue.send(message("a"), at(0)).unwrap().1.ops);
    rows.apply(&queue.receive(wanted(&[], 1, true), within(0), at(10)).1.ops);
    assert_eq!(queue.alarm_ms(at(10).unix_ms), Some(at(1_010).unix_ms));
    assert_eq!(queue.next_due(at(10)), None);

    let (queue, _) = Queue::load(rows.load(), queue.settings, at(20).unix_ms);

    assert_eq!(queue.alarm_ms(at(20).unix_ms), Some(at(1_010).unix_ms));
}

#[test]
fn a_dead_message_is_revived_as_if_it_were_new_and_first_of_its_name() {
    let mut queue = with_policy("a", 1, 0);
    let id = queue.send(keyed("a", "k"), at(0)).unwrap().0.id;
    take(&mut queue, "a", at(0)).unwrap();
    drop(queue.release(id, 1, None, None, at(0)).unwrap());
    send(&mut queue, "a");

    let (was_there, change) = queue.revive(id, at(5)).unwrap();

    assert!(was_there);
    assert_eq!(change.ops, [QueueOp::Revive { id, available_at_ms: at(5).unix_ms }]);
    let (waiter, change) = queue.receive(wanted(&[], 1, true), within(0), at(5));
    assert_eq!(change.wakes, [Wake::Read { waiter, ids: vec![id] }]);
    let body = Some(Bytes::from_static(b"body"));
    let change = queue.supply(waiter, vec![(id, body)], at(5)).unwrap();
    assert_eq!(messages(change)[0].deliveries, 1);
    assert!(queue.send(keyed("a", "k"), at(5)).unwrap().0.is_duplicate);
    assert_eq!(queue.revive(id, at(5)).unwrap(), (false, Change::default()));
}

#[test]
fn a_dead_message_stays_dead_while_there_is_no_room_and_is_deleted_once() {
    let mut queue = with_policy("a", 1, 0);
    queue.settings.max_size = 1;
    let id = send(&mut queue, "a");
    take(&mut queue, "a", at(0)).unwrap();
    drop(queue.release(id, 1, None, None, at(0)).unwrap());
    send(&mut queue, "a");

    assert_eq!(queue.revive(id, at(0)).unwrap_err(), QueueError::Full { limit: 1 });
    let (was_there, change) = queue.delete_dead(id);

    assert!(was_there);
    assert_eq!(change.ops, [QueueOp::DeleteDead(id)]);
    assert_eq!(queue.delete_dead(id), (false, Change::default()));
}

#[test]
fn an_error_is_cut_between_characters() {
    let mut queue = with_policy("a", 1, 0);
    let id = send(&mut queue, "a");
    take(&mut queue, "a", at(0)).unwrap();

    let error = format!("x{}", "é".repeat(2_000));
    let change = queue.release(id, 1, None, Some(&error), at(0)).unwrap();

    let [QueueOp::Bury { error: Some(stored), .. }] = &change.ops[..] else { panic!("{change:?}") };
    assert_eq!(stored.len(), 2_047);
    assert!(error.starts_with(&**stored));
}
