use chrono::{Datelike, Timelike};
use chrono_tz::TZ_VARIANTS;
use proptest::prelude::*;

use super::*;

/// Milliseconds since the epoch of a moment in RFC 3339.
fn at(moment: &str) -> i64 {
    DateTime::parse_from_rfc3339(moment).unwrap().timestamp_millis()
}

fn next(expression: &str, zone: &str, after: &str) -> Option<i64> {
    CronTimes::parse(expression, zone).unwrap().next(at(after))
}

#[test]
fn an_expression_that_is_not_five_readable_fields_is_refused() {
    for expression in
        ["", "* * * *", "* * * * * *", "@daily", "61 * * * *", "* * * 13 *", "a b c d e"]
    {
        let refused = CronTimes::parse(expression, "UTC").unwrap_err();
        assert!(refused.is_some_and(|reason| !reason.is_empty()), "{expression}");
    }
    let long = format!("{} * * * *", "0,".repeat(400));
    assert!(CronTimes::parse(&long, "UTC").unwrap_err().is_some());

    assert!(CronTimes::parse("  */5\t9-17 * jan MON-FRI ", "UTC").is_ok());
}

#[test]
fn a_zone_is_known_by_its_name_as_written_in_the_database() {
    for zone in ["", "Mars/Olympus", "europe/berlin", "+01:00", "PST8"] {
        assert!(!zone_exists(zone), "{zone}");
        assert_eq!(CronTimes::parse("* * * * *", zone).unwrap_err(), None);
    }

    assert!(zone_exists("UTC") && zone_exists("Europe/Berlin"));
}

#[test]
fn the_wall_clock_of_the_zone_counts() {
    let next = next("0 9 * * *", "America/Los_Angeles", "2026-01-01T16:00:00Z");

    assert_eq!(next, Some(at("2026-01-01T17:00:00Z")));
}

#[test]
fn a_wall_time_that_does_not_exist_is_skipped() {
    let next = next("30 2 * * *", "America/Los_Angeles", "2026-03-08T08:00:00Z");

    assert_eq!(next, Some(at("2026-03-09T09:30:00Z")));
}

#[test]
fn a_wall_time_that_occurs_twice_is_due_the_first_time_only() {
    let zone = "America/Los_Angeles";

    let first = next("30 1 * * *", zone, "2026-11-01T07:00:00Z");
    assert_eq!(first, Some(at("2026-11-01T08:30:00Z")));
    let second = next("30 1 * * *", zone, "2026-11-01T08:30:00Z");
    assert_eq!(second, Some(at("2026-11-02T09:30:00Z")));
    let during_the_second = next("*/5 * * * *", zone, "2026-11-01T09:12:00Z");
    assert_eq!(during_the_second, Some(at("2026-11-01T10:00:00Z")));
}

#[test]
fn a_day_that_a_zone_left_out_is_skipped() {
    let next = next("0 * 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z");

    assert_eq!(next, Some(at("2012-12-29T10:00:00Z")));
}

#[test]
fn the_next_moment_lies_after_the_given_one_to_the_millisecond() {
    let next = |after| next("0 9 * * *", "UTC", after);

    assert_eq!(next("2026-01-01T08:59:59.999Z"), Some(at("2026-01-01T09:00:00Z")));
    assert_eq!(next("2026-01-01T09:00:00Z"), Some(at("2026-01-02T09:00:00Z")));
    assert_eq!(next("2026-01-01T09:00:00.001Z"), Some(at("2026-01-02T09:00:00Z")));
}

#[test]
fn a_date_that_never_comes_has_no_next_moment() {
    assert_eq!(next("0 0 31 2 *", "UTC", "2026-01-01T00:00:00Z"), None);
    assert_eq!(next("0 0 30 2 *", "Europe/Berlin", "2026-01-01T00:00:00Z"), None);

    let leap = next("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z");
    assert_eq!(leap, Some(at("2104-02-29T00:00:00Z")));
}

#[test]
fn a_moment_beyond_all_calendars_has_no_next_one() {
    let every_minute = CronTimes::parse("* * * * *", "UTC").unwrap();

    for after in [i64::MIN, i64::MAX, 8_640_000_000_000_000] {
        assert_eq!(every_minute.next(after), None);
    }
}

#[test]
fn every_zone_answers_around_each_change_of_its_clock_with_a_later_moment() {
    const HOUR: i64 = 3_600_000;
    let start = at("2025-01-01T00:00:00Z");
    for zone in TZ_VARIANTS {
        let times = CronTimes::parse("17 * * * *", zone.name()).unwrap();
        let mut offset = None;
        for hour in (0..(366 * 24)).step_by(6) {
            let now = start + hour * HOUR;
            let here = DateTime::from_timestamp_millis(now).unwrap().with_timezone(&zone);
            let is_change = offset
                .replace(here.naive_local() - here.naive_utc())
                .is_some_and(|before| before != here.naive_local() - here.naive_utc());
            if !is_change {
                continue;
            }
            // The change lies within the six hours before.
            for minutes in (-480..=120).step_by(7) {
                let after = now + minutes * 60_000;
                let next = times.next(after).unwrap();
                assert!(next > after && next - after <= 4 * HOUR, "{zone} {after} {next}");
                assert_matches(&zone, next, 17);
            }
        }
    }
}

fn assert_matches(zone: &Tz, moment: i64, minute: u32) {
    let here = DateTime::from_timestamp_millis(moment).unwrap().with_timezone(zone);
    assert_eq!((here.minute(), here.second()), (minute, 0), "{here}");
    let wall = zone.from_local_datetime(&here.naive_local());
    assert_eq!(wall.earliest().map(|first| first.timestamp_millis()), Some(moment), "{here}");
}

/// The first minute after `after` that matches, found by looking at each.
fn naive(zone: &Tz, after: i64, minute: u32, hours: &[u32], day: Option<u32>) -> Option<i64> {
    const MINUTE: i64 = 60_000;
    let mut moment = after.div_euclid(MINUTE) * MINUTE;
    for _ in 0..(40 * 24 * 60) {
        moment += MINUTE;
        let here = DateTime::from_timestamp_millis(moment).unwrap().with_timezone(zone);
        let wall = here.naive_local();
        let is_first = zone.from_local_datetime(&wall).earliest() == Some(here);
        if wall.minute() == minute
            && (hours.is_empty() || hours.contains(&wall.hour()))
            && day.is_none_or(|day| wall.day() == day)
            && is_first
        {
            return Some(moment);
        }
    }
    None
}

fn field(low: u32, high: u32) -> BoxedStrategy<String> {
    let value = low..=high;
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => value.clone().prop_map(|value| value.to_string()),
        1 => (1..=high).prop_map(|step| format!("*/{step}")),
        1 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (value.clone(), value).prop_map(|(a, b)| format!("{a},{b}")),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_next_moment_is_later_and_none_lies_between(
        zone in prop::sample::select(TZ_VARIANTS.to_vec()),
        // 1975 to 2060.
        after in 157_766_400_000_i64..2_840_140_800_000,
        minute in 0_u32..60,
        hours in prop::collection::vec(0_u32..24, 0..3),
        day in prop::option::weighted(0.3, 1_u32..=28),
    ) {
        // The zones of that time have whole minutes.
        let hour = match hours.as_slice() {
            [] => "*".to_owned(),
            hours => hours.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        };
        let days = day.map_or_else(|| "*".to_owned(), |day| day.to_string());
        let times = CronTimes::parse(&format!("{minute} {hour} {days} * *"), zone.name()).unwrap();

        let expected = naive(&zone, after, minute, &hours, day);

        prop_assume!(expected.is_some());
        prop_assert_eq!(times.next(after), expected);
    }

    #[test]
    fn any_expression_in_any_zone_is_answered_with_a_later_moment_or_never(
        zone in prop::sample::select(TZ_VARIANTS.to_vec()),
        after in -2_208_988_800_000_i64..4_102_444_800_000,
        fields in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)),
    ) {
        let (minute, hour, day, month, weekday) = fields;
        let expression = format!("{minute} {hour} {day} {month} {weekday}");
        let times = CronTimes::parse(&expression, zone.name()).unwrap();

        let mut moment = after;
        for _ in 0..4 {
            let Some(next) = times.next(moment) else { break };
            prop_assert!(next > moment, "{} {} {}", expression, moment, next);
            moment = next;
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}|[0-9*/,\\-LW#? ]{0,30}") {
        if let Ok(times) = CronTimes::parse(&text, "UTC") {
            let next = times.next(0);
            prop_assert!(next.is_none_or(|next| next > 0));
        }
    }
}
