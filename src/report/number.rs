//! Numbers as people read them: thousands apart, no more digits than were measured.

use crate::spec::Metric;

/// A whole number with its thousands apart: `12,345`.
#[must_use]
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Operations/s to about four digits: `12,345`, `123.4`, `1.234`.
#[must_use]
pub(super) fn rate(value: f64) -> String {
    decimals(value, if value >= 999.95 { 0 } else { places(value, 4) })
}

/// A latency given in µs, in ms to three digits and at most to the µs: `123`, `12.3`, `1.23`, `0.012`.
#[must_use]
pub(super) fn milliseconds(us: f64) -> String {
    let ms = us / 1000.0;
    decimals(ms, if ms >= 99.95 { 0 } else { places(ms, 3).min(3) })
}

/// A ratio to three digits: `0.987×`, `1.23×`, `12.3×`.
#[must_use]
pub(super) fn ratio(value: f64) -> String {
    // Rounded first, since 0.9996 has as many digits before the point as 1.
    let value = format!("{value:.2e}").parse().unwrap_or(value);
    format!("{}×", decimals(value, places(value, 3)))
}

/// Two ratios: `1.23–1.34×`.
#[must_use]
pub(super) fn ratio_range(low: f64, high: f64) -> String {
    let low = ratio(low);
    format!("{}–{}", low.trim_end_matches('×'), ratio(high))
}

/// CPUs kept busy: `0.25`, `1.9`.
#[must_use]
pub(super) fn cores(value: f64) -> String {
    decimals(value, if value < 0.995 { 2 } else { 1 })
}

/// The value of a metric in the unit of tables: operations/s or ms.
#[must_use]
pub(super) fn of(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Throughput => rate(value),
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Max => milliseconds(value),
    }
}

/// A length of time in s, as `0.4 s`, `12 s`, `3m 5s` or `1h 2m 3s`.
#[must_use]
pub(super) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".into();
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let whole = std::time::Duration::from_secs(seconds.round() as u64);
    if seconds < 59.5 {
        format!("{} s", whole.as_secs())
    } else {
        humantime::format_duration(whole).to_string()
    }
}

/// A point in time to the second: `2026-03-01 10:00:00 UTC`.
#[must_use]
pub(super) fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn places(value: f64, digits: i32) -> usize {
    if value <= 0.0 || !value.is_finite() {
        return 0;
    }
    let before = value.log10().floor() as i32 + 1;
    usize::try_from(digits - before).unwrap_or(0).min(6)
}

fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    match whole.parse() {
        Ok(n) if fraction.is_empty() => grouped(n),
        Ok(n) => format!("{}.{fraction}", grouped(n)),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_apart_and_sensible_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.2345, "1.234"),
            (123.45, "123.5"),
            (999.96, "1,000"),
            (12_345.6, "12,346"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(rate(value), text);
        }
        for (us, text) in [
            (0.0, "0"),
            (5.0, "0.005"),
            (123.0, "0.123"),
            (1_234.0, "1.23"),
            (12_340.0, "12.3"),
            (123_400.0, "123"),
            (3_600_000_000.0, "3,600,000"),
        ] {
            assert_eq!(milliseconds(us), text);
        }
        for (value, text) in [
            (1.0, "1.00×"),
            (0.9996, "1.00×"),
            (0.09996, "0.100×"),
            (1.2345, "1.23×"),
            (0.98765, "0.988×"),
            (0.5, "0.500×"),
            (0.0123, "0.0123×"),
            (12.34, "12.3×"),
            (123.4, "123×"),
            (1234.0, "1,230×"),
        ] {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn durations_lose_their_fractions_when_long() {
        for (seconds, text) in [
            (0.44, "0.4 s"),
            (12.3, "12 s"),
            (185.2, "3m 5s"),
            (3723.0, "1h 2m 3s"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
