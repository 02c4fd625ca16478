use super::*;

#[test]
fn messages_of_wanted_names_go_out_by_id_and_the_others_stay() {
    let mut queue = empty();
    for name in ["ignored", "target", "target", "target"] {
        send(&mut queue, name);
    }

    let batch = poll(&mut queue, wanted(&["target"], 2, false), at(0));
    let rest = poll(&mut queue, wanted(&[], 10, false), at(0));

    assert_eq!((ids(&batch), ids(&rest)), (vec![2, 3], vec![1, 4]));
}

#[test]
fn several_names_share_one_order_and_doubles_count_once() {
    let mut queue = empty();
    for name in ["a", "b", "c", "b", "a"] {
        send(&mut queue, name);
    }

    let batch = poll(&mut queue, wanted(&["b", "a", "a"], 3, false), at(0));

    assert_eq!(ids(&batch), [1, 2, 4]);
}

#[test]
fn any_number_of_names_finds_its_message() {
    let names: Vec<String> = (0..1_100).map(|n| format!("{n:0>120}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut queue = empty();
    send(&mut queue, "other");
    send(&mut queue, names[1_099]);

    assert_eq!(ids(&poll(&mut queue, wanted(&names, 1, false), at(0))), [2]);
}

#[test]
fn a_count_of_zero_is_one() {
    let mut queue = empty();
    send(&mut queue, "a");
    send(&mut queue, "a");

    assert_eq!(ids(&poll(&mut queue, wanted(&[], 0, false), at(0))), [1]);
}

#[test]
fn a_look_at_an_empty_queue_times_out_at_once() {
    let mut queue = empty();

    let (waiter, change) = queue.receive(wanted(&[], 1, false), within(0), at(0));

    assert_eq!(change.wakes, [Wake::TimedOut(waiter)]);
    assert_eq!(queue.active_waits(), 0);
}

#[test]
fn what_is_there_goes_before_a_cancelled_signal_and_a_stop() {
    let mut queue = empty();
    send(&mut queue, "a");
    let cancelled = Patience { timeout: None, is_cancelled: true };

    let first = queue.receive(wanted(&[], 1, false), cancelled, at(0));
    let second = queue.receive(wanted(&[], 1, false), cancelled, at(0));

    assert_eq!(messages(first.1).len(), 1);
    assert_eq!(second.1.wakes, [Wake::Aborted(second.0)]);
}

#[test]
fn a_stop_ends_the_waits_for_messages_and_no_more_begin() {
    let mut queue = empty();
    let (waiter, _) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));
    let (_, completion, _) = queue.send_and_wait(delayed("a", 1_000), within(500), at(0)).unwrap();
    assert_eq!(queue.active_waits(), 1);

    assert_eq!(queue.stop(at(0)).wakes, [Wake::Aborted(waiter)]);

    assert_eq!(queue.active_waits(), 0);
    let (late, change) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));
    assert_eq!(change.wakes, [Wake::Aborted(late)]);
    send(&mut queue, "b");
    assert_eq!(poll(&mut queue, wanted(&[], 1, false), at(0)).len(), 1);
    assert_eq!(queue.tick(at(500)).wakes, [Wake::TimedOut(completion)]);
}

#[test]
fn what_comes_due_after_a_stop_is_an_alarm_that_has_passed() {
    let mut queue = empty();
    send(&mut queue, "ready");
    drop(queue.send(delayed("before", 50), at(0)).unwrap());
    drop(queue.send(delayed("after", 150), at(0)).unwrap());
    drop(queue.send(delayed("long after", 9_000), at(0)).unwrap());
    let alarm = |queue: &Queue| queue.alarm_ms(at(200).unix_ms);
    assert_eq!(alarm(&queue), Some(at(9_000).unix_ms));

    drop(queue.stop(at(100)));
    drop(queue.send(message("late"), at(120)).unwrap());

    assert_eq!(alarm(&queue), Some(at(150).unix_ms));
    assert_eq!(ids(&poll(&mut queue, wanted(&["after"], 1, false), at(200))), [3]);
    assert_eq!(alarm(&queue), Some(at(9_000).unix_ms), "somebody took it after all");
}

#[test]
fn what_is_sent_after_a_stop_is_an_alarm_if_somebody_waited_for_it() {
    for somebody in [false, true] {
        let mut queue = empty();
        send(&mut queue, "before");
        if somebody {
            drop(queue.receive(wanted(&["job"], 1, false), Patience::default(), at(0)).1);
        }
        drop(queue.stop(at(100)));
        assert_eq!(queue.alarm_ms(at(200).unix_ms), None);

        drop(queue.send(message("job"), at(150)).unwrap());

        let sent = somebody.then_some(at(150).unix_ms);
        assert_eq!(queue.alarm_ms(at(200).unix_ms), sent);
    }
}

#[test]
fn a_send_wakes_the_wait_that_began_first_and_wants_it() {
    let mut queue = empty();
    let patience = Patience::default();
    drop(queue.receive(wanted(&["b"], 1, false), patience, at(0)).1);
    let (first, _) = queue.receive(wanted(&["a"], 1, false), patience, at(0));
    let (second, _) = queue.receive(wanted(&[], 1, false), patience, at(0));

    let woken = |queue: &mut Queue| match &queue.send(message("a"), at(1)).unwrap().1.wakes[..] {
        [Wake::Messages { waiter, .. }] => *waiter,
        other => panic!("one wait was expected to wake, got {other:?}"),
    };
    assert_eq!([woken(&mut queue), woken(&mut queue)], [first, second]);
    assert_eq!(queue.active_waits(), 1);
}

#[test]
fn a_message_that_comes_at_the_deadline_goes_before_the_timeout() {
    let mut queue = empty();
    drop(queue.send(delayed("a", 100), at(0)).unwrap());
    drop(queue.receive(wanted(&[], 1, false), within(100), at(0)).1);

    assert_eq!(ids(&messages(queue.tick(at(100)))), [1]);
}

#[test]
fn a_cancelled_wait_takes_nothing() {
    let mut queue = empty();
    let (waiter, _) = queue.receive(wanted(&[], 1, false), within(5), at(0));

    assert_eq!(queue.cancel(waiter).wakes, [Wake::Aborted(waiter)]);

    assert_eq!(queue.cancel(waiter), Change::default());
    assert_eq!(queue.send(message("a"), at(0)).unwrap().1.wakes, []);
    assert_eq!(queue.next_due(at(0)), None);
}

#[test]
fn a_notice_takes_nothing_and_passes_over_other_names() {
    let mut queue = empty();
    let notice = Wanted { names: Names::of(["a"]), want: Want::Notice };
    let (waiter, _) = queue.receive(notice, Patience::default(), at(0));

    assert_eq!(queue.send(message("b"), at(0)).unwrap().1.wakes, []);
    assert_eq!(queue.send(message("a"), at(0)).unwrap().1.wakes, [Wake::Notice(waiter)]);
    assert_eq!(queue.len(), 2);
}

/// A queue that has just started with these messages, whose bodies must be read.
fn restarted(names: &[&str]) -> Queue {
    let (mut rows, mut queue) = (Rows::default(), empty());
    for name in names {
        rows.apply(&queue.send(message(name), at(0)).unwrap().1.ops);
    }
    Queue::load(rows.load(), settings(1_000), START_MS).0
}

fn read(id: i64) -> (MessageId, Option<Bytes>) {
    (MessageId(id), Some(Bytes::from_static(b"read")))
}

#[test]
fn a_message_whose_body_is_read_is_nobody_elses_and_leaves_when_it_is_there() {
    let mut queue = restarted(&["a", "a"]);

    let (waiter, change) = queue.receive(wanted(&[], 1, false), within(10), at(0));
    assert_eq!(change.ops, []);
    assert_eq!(change.wakes, [Wake::Read { waiter, ids: vec![MessageId(1)] }]);
    assert_eq!(queue.cancel(waiter), Change::default());
    assert_eq!(queue.next_due(at(0)), None);
    let (other, change) = queue.receive(wanted(&[], 9, false), within(10), at(0));
    assert_eq!(change.wakes, [Wake::Read { waiter: other, ids: vec![MessageId(2)] }]);
    let change = queue.supply(waiter, vec![read(1)], at(20)).unwrap();

    assert_eq!(change.ops, [QueueOp::Remove(MessageId(1))]);
    assert_eq!(&messages(change)[0].body[..], b"read");
}

#[test]
fn a_body_that_cannot_be_read_gives_its_message_to_the_next() {
    let mut queue = restarted(&["a"]);
    let (waiter, _) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));
    let (next, _) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));

    let change = queue.unread(waiter, at(0));

    assert_eq!(change.wakes, [Wake::Read { waiter: next, ids: vec![MessageId(1)] }]);
}

#[test]
fn a_wait_goes_on_when_its_message_is_done_while_it_is_read() {
    let mut queue = restarted(&["a"]);
    let (waiter, _) = queue.receive(wanted(&[], 1, true), within(50), at(0));
    let (was_there, _) = queue.complete_by_id(MessageId(1), "a", None, at(1)).unwrap();
    assert!(was_there);

    assert_eq!(queue.supply(waiter, vec![read(1)], at(2)).unwrap(), Change::default());
    assert_eq!(queue.active_waits(), 1);

    let change = queue.send(message("b"), at(3)).unwrap().1;
    assert_eq!(ids(&messages(change)), [2]);
}

#[test]
fn a_wait_whose_message_was_thrown_away_while_it_was_read_may_be_over() {
    let mut queue = restarted(&["a"]);
    let (waiter, _) = queue.receive(wanted(&[], 1, true), within(50), at(0));
    drop(queue.reset());

    let change = queue.supply(waiter, vec![read(1)], at(60)).unwrap();

    assert_eq!(change.wakes, [Wake::TimedOut(waiter)]);
}

#[test]
fn a_wait_that_was_given_up_ends_when_its_message_is_done_while_it_is_read() {
    let mut queue = restarted(&["a"]);
    let (waiter, _) = queue.receive(wanted(&[], 1, false), Patience::default(), at(0));
    assert_eq!(queue.cancel(waiter), Change::default(), "its message is on its way");
    drop(queue.complete_by_id(MessageId(1), "a", None, at(1)).unwrap());

    let change = queue.supply(waiter, vec![read(1)], at(2)).unwrap();

    assert_eq!((change.wakes, queue.active_waits()), (vec![Wake::Aborted(waiter)], 0));
    assert_eq!(queue.send(message("b"), at(3)).unwrap().1.wakes, [], "nobody takes the next one");
}

#[test]
fn a_message_without_a_row_is_an_error() {
    let mut queue = restarted(&["a"]);
    let (waiter, _) = queue.receive(wanted(&[], 1, true), Patience::default(), at(0));

    let missing = queue.supply(waiter, vec![(MessageId(1), None)], at(0)).unwrap_err();

    assert_eq!(missing, MissingBody(MessageId(1)));
}

#[test]
fn a_delivery_of_another_time_is_no_claim_on_a_message_that_is_read() {
    let mut rows = Rows::default();
    let mut queue = empty();
    rows.apply(&queue.send(message("a"), at(0)).unwrap().1.ops);
    rows.apply(&queue.receive(wanted(&[], 1, true), within(0), at(0)).1.ops);
    let (mut queue, _) = Queue::load(rows.load(), settings(10), START_MS);
    let (waiter, _) = queue.receive(wanted(&[], 1, true), Patience::default(), at(0));

    let stale = queue.complete(MessageId(1), 1, None, at(0)).unwrap_err();

    assert_eq!(stale, QueueError::AlreadyCompleted);
    let change = queue.supply(waiter, vec![read(1)], at(0)).unwrap();
    assert_eq!(messages(change)[0].deliveries, 2);
}

#[test]
fn bodies_beyond_the_bound_are_read_and_those_within_are_not() {
    let mut queue = Queue::load(
        QueueRows::default(),
        QueueSettings { max_message_len: usize::MAX, ..settings(10) },
        START_MS,
    )
    .0;
    let of = |len: usize| NewMessage { body: Bytes::from(vec![0; len]), ..message("a") };
    drop(queue.send(of(index::CACHED_BYTES), at(0)).unwrap());
    drop(queue.send(of(1), at(0)).unwrap());

    assert_eq!(ids(&poll(&mut queue, wanted(&[], 1, false), at(0))), [1]);
    let (waiter, change) = queue.receive(wanted(&[], 1, false), within(0), at(0));
    assert_eq!(change.wakes, [Wake::Read { waiter, ids: vec![MessageId(2)] }]);
    drop(queue.send(of(index::CACHED_BYTES), at(0)).unwrap());
    assert_eq!(ids(&poll(&mut queue, wanted(&[], 1, false), at(0))), [3]);
}
