//! The text of a date, as `JSON.stringify` has it.

/// The milliseconds around the epoch that a date may be away from it.
const MAX_MS: f64 = 8.64e15;

/// The text of so many seconds since the epoch; `None` of what is no date.
pub fn text(seconds: f64) -> Option<String> {
    let ms = (seconds * 1_000.0).trunc();
    if ms.is_nan() || ms.abs() > MAX_MS {
        return None;
    }
    let ms = ms as i64;
    let (day, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, date) = civil(day);
    let year = match year {
        0..=9_999 => format!("{year:04}"),
        10_000.. => format!("+{year:06}"),
        _ => format!("-{:06}", -year),
    };
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, ms) = (of_day / 1_000 % 60, of_day % 1_000);
    Some(format!("{year}-{month:02}-{date:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z"))
}

/// Year, month and day of so many days since the epoch. Counts in years that begin in
/// March, so that a leap day is the last one.
fn civil(day: i64) -> (i64, i64, i64) {
    // From 0000-03-01; 400 years have 146,097 days.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right sides are what `new Date(ms).toISOString()` gives.
    #[test]
    fn dates_read_as_javascript_writes_them() {
        let cases = [
            (0_i64, "1970-01-01T00:00:00.000Z"),
            (1_500, "1970-01-01T00:00:01.500Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
            (8_640_000_000_000_000, "+275760-09-13T00:00:00.000Z"),
            (-8_640_000_000_000_000, "-271821-04-20T00:00:00.000Z"),
        ];

        for (ms, expected) in cases {
            assert_eq!(text(ms as f64 / 1_000.0).as_deref(), Some(expected), "{ms}");
        }
    }

    #[test]
    fn what_is_no_date_has_no_text() {
        for seconds in [f64::NAN, f64::INFINITY, 8.64e12 + 1.0] {
            assert_eq!(text(seconds), None);
        }
    }
}
