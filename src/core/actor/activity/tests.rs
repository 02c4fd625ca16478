use super::*;

/// What puts one blocker on an actor, what takes it off, and the answer.
type Blocker = (fn(&mut Activity), fn(&mut Activity), CanSleep);

const BLOCKERS: [Blocker; 10] = [
    (|a| a.http_requests = 1, |a| a.http_requests = 0, CanSleep::ActiveHttpRequests),
    (
        |a| a.begin(WorkKind::KeepAwake),
        |a| assert!(a.end(WorkKind::KeepAwake)),
        CanSleep::ActiveKeepAwake,
    ),
    (Activity::begin_state_change, |a| assert!(a.end_state_change()), CanSleep::ActiveKeepAwake),
    (
        |a| a.begin(WorkKind::Action),
        |a| assert!(a.end(WorkKind::Action)),
        CanSleep::ActiveInternalKeepAwake,
    ),
    (
        |a| a.begin(WorkKind::InternalKeepAwake),
        |a| assert!(a.end(WorkKind::InternalKeepAwake)),
        CanSleep::ActiveInternalKeepAwake,
    ),
    (|a| a.run_active = true, |a| a.run_active = false, CanSleep::ActiveRunHandler),
    (
        |a| a.begin(WorkKind::DisconnectCallback),
        |a| assert!(a.end(WorkKind::DisconnectCallback)),
        CanSleep::ActiveDisconnectCallbacks,
    ),
    (|a| a.connections = 1, |a| a.connections = 0, CanSleep::ActiveConnections),
    (
        |a| a.begin(WorkKind::WebSocketCallback),
        |a| assert!(a.end(WorkKind::WebSocketCallback)),
        CanSleep::ActiveWebSocketCallbacks,
    ),
    (|a| a.dirty = true, |a| a.dirty = false, CanSleep::Dirty),
];

#[test]
fn each_blocker_alone_keeps_the_actor_awake_until_it_is_gone() {
    for (put, take, answer) in BLOCKERS {
        let mut activity = Activity::default();
        put(&mut activity);
        assert_eq!(activity.can_sleep(true, false), answer);

        take(&mut activity);
        assert_eq!(activity.can_sleep(true, false), CanSleep::Yes, "{answer:?}");
    }
}

#[test]
fn the_first_reason_in_the_table_wins() {
    let mut activity = Activity::default();
    for (put, _, _) in BLOCKERS {
        put(&mut activity);
    }

    assert_eq!(activity.can_sleep(false, true), CanSleep::NotReady);
    assert_eq!(activity.can_sleep(true, true), CanSleep::NoSleep);
    let mut left = Vec::new();
    for (_, take, answer) in BLOCKERS {
        assert_eq!(activity.can_sleep(true, false), answer);
        take(&mut activity);
        left.push(activity.can_sleep(true, false));
    }
    assert_eq!(left.last(), Some(&CanSleep::Yes));
}

#[test]
fn a_run_handler_that_waits_for_the_queue_does_not_keep_the_actor_awake() {
    let mut activity = Activity { run_active: true, queue_waits: 1, ..Activity::default() };
    assert_eq!(activity.can_sleep(true, false), CanSleep::Yes);

    activity.queue_waits = 0;

    assert_eq!(activity.can_sleep(true, false), CanSleep::ActiveRunHandler);
}

#[test]
fn a_run_handler_that_waits_for_its_restart_keeps_the_actor_awake_but_not_its_grace() {
    let activity = Activity { run_restarting: true, ..Activity::default() };

    assert_eq!(activity.can_sleep(true, false), CanSleep::ActiveRunHandler);
    assert_eq!(activity.holds(), [Hold { what: "run (restarting)", count: 1 }]);
    assert!(activity.grace_drained(StopReason::Sleep));
}

#[test]
fn background_work_does_not_keep_an_idle_actor_awake() {
    let mut activity = Activity::default();
    activity.begin(WorkKind::WaitUntil);
    activity.begin(WorkKind::RegisteredTask);

    assert_eq!(activity.can_sleep(true, false), CanSleep::Yes);
    assert!(!activity.grace_drained(StopReason::Destroy));
}

#[test]
fn each_kind_has_its_row_of_the_policy_table() {
    use WorkKind::*;
    // Kind, blocks idle sleep, cancelled at the deadline, measured as.
    let table = [
        (Action, true, true, Some("action")),
        (KeepAwake, true, true, None),
        (InternalKeepAwake, true, false, None),
        (WaitUntil, false, true, Some("wait_until")),
        (RegisteredTask, false, true, Some("registered_task")),
        (WebSocketCallback, true, true, Some("websocket_callback")),
        (DisconnectCallback, true, true, Some("disconnect_callback")),
    ];

    assert_eq!(table.map(|row| row.0), WorkKind::ALL);
    for (kind, blocks_idle_sleep, cancelled_at_deadline, user_task) in table {
        let holds_grace = true;
        let policy =
            WorkPolicy { blocks_idle_sleep, holds_grace, cancelled_at_deadline, user_task };
        assert_eq!(kind.policy(), policy, "{kind:?}");
    }
}

#[test]
fn the_answers_follow_the_policy_of_every_kind() {
    for kind in WorkKind::ALL {
        let mut activity = Activity::default();
        activity.begin(kind);

        let awake = activity.can_sleep(true, false) != CanSleep::Yes;
        assert_eq!(awake, kind.policy().blocks_idle_sleep, "{kind:?}");
        for reason in [StopReason::Sleep, StopReason::Destroy] {
            assert_eq!(activity.grace_drained(reason), !kind.policy().holds_grace, "{kind:?}");
        }
        assert_eq!(activity.holds(), [Hold { what: kind.label(), count: 1 }]);
    }
}

#[test]
fn grace_waits_for_hooks_requests_and_state_change_callbacks() {
    let blockers: [fn(&mut Activity); 3] =
        [|a| a.core_hooks = 1, |a| a.http_requests = 1, Activity::begin_state_change];

    for put in blockers {
        let mut activity = Activity::default();
        put(&mut activity);
        assert!(!activity.grace_drained(StopReason::Sleep));
        assert!(!activity.grace_drained(StopReason::Destroy));
    }
}

#[test]
fn only_a_sleep_waits_for_the_run_handler() {
    let activity = Activity { run_active: true, queue_waits: 1, ..Activity::default() };

    assert!(!activity.grace_drained(StopReason::Sleep));
    assert!(activity.grace_drained(StopReason::Destroy));
}

#[test]
fn grace_does_not_wait_for_connections_and_unsaved_state() {
    let activity = Activity { connections: 3, dirty: true, ..Activity::default() };

    assert!(activity.grace_drained(StopReason::Sleep));
}

#[test]
fn ending_what_was_not_begun_is_refused_and_changes_nothing() {
    let mut activity = Activity::default();
    assert!(!activity.end(WorkKind::Action));
    assert!(!activity.end_state_change());

    activity.begin(WorkKind::Action);

    assert_eq!(activity.internal_keep_awake_count(), 1);
    assert_eq!(activity.keep_awake_count(), 0);
}

#[test]
fn a_report_names_everything_with_its_count() {
    let mut activity = Activity {
        http_requests: 2,
        run_active: true,
        queue_waits: 1,
        connections: 3,
        core_hooks: 1,
        dirty: true,
        ..Activity::default()
    };
    activity.begin(WorkKind::Action);
    activity.begin(WorkKind::Action);
    activity.begin_state_change();

    let holds: Vec<_> = activity.holds().iter().map(|hold| (hold.what, hold.count)).collect();
    let expected = [
        ("action", 2),
        ("state_change_callback", 1),
        ("http_request", 2),
        ("run (waiting for the queue)", 1),
        ("connection", 3),
        ("hook", 1),
        ("unsaved_state", 1),
    ];
    assert_eq!(holds, expected);
    assert_eq!(Activity::default().holds(), []);
}
