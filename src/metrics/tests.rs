use super::*;
use crate::time::{Clock, Duration};

const MS: Duration = Duration::from_millis(1);

/// The value of the line of that name and those labels, without the prefix.
fn value(metrics: &Metrics, line: &str) -> Option<f64> {
    let text = metrics.encode();
    let start = format!("rivetkit_actor_{line} ");
    let found: Vec<_> = text.lines().filter_map(|text| text.strip_prefix(&start)).collect();
    assert!(found.len() <= 1, "{line} occurs {} times", found.len());
    found.first().map(|value| value.parse().unwrap())
}

#[test]
fn a_gauge_is_the_sum_of_what_the_live_actors_of_a_name_contribute() {
    let metrics = Metrics::new();
    let (first, second) = (metrics.actor("chat"), metrics.actor("chat"));
    let requests = || value(&metrics, "http_requests_active{actor_name=\"chat\"}");
    first.set_http_requests(2);
    second.set_http_requests(3);
    assert_eq!(requests(), Some(5.0));

    first.set_http_requests(1);
    assert_eq!(requests(), Some(4.0));
    drop(first);
    assert_eq!(requests(), Some(3.0));
    drop(second);
    assert_eq!(requests(), Some(0.0));
}

#[test]
fn an_actor_gives_back_every_share_once() {
    let metrics = Metrics::new();
    let actor = metrics.actor("a");
    actor.set_http_requests(1);
    actor.set_shutdown_tasks(2);
    actor.set_connections(7);
    actor.connection_accepted();
    actor.queue_moved(9, 8, 6);
    actor.set_keep_awake(KeepAwakeKind::User, 3);
    actor.set_keep_awake(KeepAwakeKind::Internal, 4);
    actor.set_inbox_depth(Inbox::Dispatch, 5);
    actor.begin_user_task(UserTaskKind::Action);
    let gauges = [
        ("active_count{actor_name=\"a\"}", 1.0),
        ("http_requests_active{actor_name=\"a\"}", 1.0),
        ("shutdown_tasks_active{actor_name=\"a\"}", 2.0),
        ("connections_active{actor_name=\"a\"}", 7.0),
        ("queue_depth{actor_name=\"a\"}", 6.0),
        ("keep_awake_active{actor_name=\"a\",kind=\"keep_awake\"}", 3.0),
        ("keep_awake_active{actor_name=\"a\",kind=\"internal_keep_awake\"}", 4.0),
        ("inbox_depth{actor_name=\"a\",inbox=\"dispatch\"}", 5.0),
        ("user_tasks_active{actor_name=\"a\",kind=\"action\"}", 1.0),
    ];
    for (gauge, expected) in gauges {
        assert_eq!(value(&metrics, gauge), Some(expected), "{gauge}");
    }

    actor.stop();
    actor.stop();
    drop(actor);

    for (gauge, _) in gauges {
        assert_eq!(value(&metrics, gauge), Some(0.0), "{gauge}");
    }
    let counted =
        |what| value(&metrics, &format!("queue_messages_{what}_total{{actor_name=\"a\"}}"));
    assert_eq!((counted("sent"), counted("received")), (Some(9.0), Some(8.0)));
    assert_eq!(value(&metrics, "connections_total{actor_name=\"a\"}"), Some(1.0));
    assert_eq!(value(&metrics, "started_total{actor_name=\"a\"}"), Some(1.0));
    assert_eq!(value(&metrics, "stopped_total{actor_name=\"a\"}"), Some(1.0));
}

#[test]
fn work_that_ends_after_the_stop_is_measured_and_leaves_the_gauge_alone() {
    let metrics = Metrics::new();
    let actor = metrics.actor("a");
    actor.begin_user_task(UserTaskKind::Action);
    actor.stop();

    actor.end_user_task(UserTaskKind::Action, 20 * MS);
    actor.begin_user_task(UserTaskKind::Action);
    actor.set_http_requests(7);

    let labels = "{actor_name=\"a\",kind=\"action\"}";
    assert_eq!(value(&metrics, &format!("user_tasks_active{labels}")), Some(0.0));
    assert_eq!(value(&metrics, &format!("user_task_duration_seconds_count{labels}")), Some(1.0));
    assert_eq!(value(&metrics, "http_requests_active{actor_name=\"a\"}"), Some(0.0));
}

#[test]
fn a_start_counts_as_failed_unless_it_is_finished() {
    let metrics = Metrics::new();
    let manual = Clock::manual(0);
    let actor = metrics.actor("a");

    drop(actor.begin_startup(manual.clock()));
    let mut timer = actor.begin_startup(manual.clock());
    manual.advance(3 * MS);
    timer.set_is_new(true);
    timer.end_phase(StartupPhase::LoadPersisted);
    manual.advance(4 * MS);
    timer.end_phase(StartupPhase::CoreInit);

    assert_eq!(timer.finish(), 7 * MS);
    let line = |what: &str, phase: &str, is_new: &str, outcome: &str| {
        let labels = format!("phase=\"{phase}\",is_new=\"{is_new}\",outcome=\"{outcome}\"");
        let name = format!("startup_phase_duration_seconds_{what}");
        value(&metrics, &format!("{name}{{actor_name=\"a\",{labels}}}"))
    };
    assert_eq!(line("count", "total", "unknown", "error"), Some(1.0));
    assert_eq!(line("count", "total", "true", "success"), Some(1.0));
    assert_eq!(line("count", "total", "true", "error"), None);
    assert_eq!(line("sum", "load_persisted", "true", "success"), Some(0.003));
    assert_eq!(line("sum", "core_init", "true", "success"), Some(0.004));
    assert_eq!(line("sum", "total", "true", "success"), Some(0.007));
}

#[test]
fn a_duration_counts_in_every_bucket_from_its_own_upwards() {
    let metrics = Metrics::new();
    let actor = metrics.actor("a");
    for duration in [5 * MS, 6 * MS, 11_000 * MS] {
        actor.create_state(duration);
    }

    let bucket = |le: &str| {
        let line = format!("create_state_duration_seconds_bucket{{actor_name=\"a\",le=\"{le}\"}}");
        value(&metrics, &line)
    };
    assert_eq!(bucket("0.005"), Some(1.0));
    assert_eq!(bucket("0.01"), Some(2.0));
    assert_eq!(bucket("10"), Some(2.0));
    assert_eq!(bucket("+Inf"), Some(3.0));
    let sum = value(&metrics, "create_state_duration_seconds_sum{actor_name=\"a\"}");
    assert_eq!(sum, Some(11.011));
}

#[test]
fn counters_carry_their_labels() {
    let metrics = Metrics::new();
    let actor = metrics.actor("a");
    actor.state_mutation(StateMutation::InternalReplace);
    actor.state_mutation(StateMutation::HasInitialized);
    actor.shutdown_timeout("sleep");
    actor.shutdown_wait("destroy", 2 * MS);
    actor.create_vars(MS);
    actor.direct_subsystem_shutdown_warning("http_requests", "destroy_drain");

    let lines = [
        "state_mutation_total{actor_name=\"a\",reason=\"internal_replace\"}",
        "state_mutation_total{actor_name=\"a\",reason=\"has_initialized\"}",
        "shutdown_timeout_total{actor_name=\"a\",reason=\"sleep\"}",
        "shutdown_wait_seconds_count{actor_name=\"a\",reason=\"destroy\"}",
        "create_vars_duration_seconds_count{actor_name=\"a\"}",
        "direct_subsystem_shutdown_warning_total{actor_name=\"a\",subsystem=\"http_requests\",\
         operation=\"destroy_drain\"}",
    ];
    for line in lines {
        assert_eq!(value(&metrics, line), Some(1.0), "{line}");
    }
}

#[test]
fn a_scrape_describes_each_family_once_and_escapes_names() {
    let metrics = Metrics::new();
    let actors = [metrics.actor("a"), metrics.actor("say \"hi\"")];
    for actor in &actors {
        actor.begin_user_task(UserTaskKind::QueueWait);
    }

    let text = metrics.encode();

    let types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let mut distinct = types.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(types.len(), distinct.len());
    assert!(types.contains(&"# TYPE rivetkit_actor_active_count gauge"), "{text}");
    assert!(types.contains(&"# TYPE rivetkit_actor_started_total counter"), "{text}");
    assert!(text.contains("rivetkit_actor_active_count{actor_name=\"say \\\"hi\\\"\"} 1\n"));
}

#[test]
fn the_handle_of_an_actor_is_small() {
    assert!(size_of::<ActorMetrics>() <= 96);
}
