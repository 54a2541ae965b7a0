//! Per-second intervals of one round and their CSV form.

use std::fmt::Write as _;

/// Whether a second counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Load ran, nothing of it counts.
    Warmup,
    /// The measurement window.
    Measure,
}

/// One second of one operation (or of `all` of them).
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Warm-up or measurement.
    pub phase: Phase,
    /// The second's index within its phase, from 0.
    pub second: u64,
    /// The operation, such as `read`, or `all`.
    pub operation: String,
    /// Operations that succeeded.
    pub count: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Mean latency, µs; 0 without operations.
    pub mean_us: f64,
    /// Median latency, µs.
    pub p50_us: u64,
    /// 95th percentile, µs.
    pub p95_us: u64,
    /// 99th percentile, µs.
    pub p99_us: u64,
    /// Largest latency, µs.
    pub max_us: u64,
}

/// A line that is no interval.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the intervals is not `{HEADER}`: `{text}`")]
pub struct IntervalError {
    line: usize,
    text: String,
}

const HEADER: &str = "phase,second,operation,count,errors,mean_us,p50_us,p95_us,p99_us,max_us";

/// The CSV text of `intervals`, header first.
#[must_use]
pub fn write_intervals(intervals: &[Interval]) -> String {
    let mut text = format!("{HEADER}\n");
    for i in intervals {
        let phase = match i.phase {
            Phase::Warmup => "warmup",
            Phase::Measure => "measure",
        };
        writeln!(
            text,
            "{phase},{},{},{},{},{:.1},{},{},{},{}",
            i.second,
            i.operation,
            i.count,
            i.errors,
            i.mean_us,
            i.p50_us,
            i.p95_us,
            i.p99_us,
            i.max_us
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// Reads what [`write_intervals`] writes.
///
/// # Errors
/// A line with missing or wrong fields.
pub fn read_intervals(text: &str) -> Result<Vec<Interval>, IntervalError> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, HEADER)) => {}
        other => {
            return Err(IntervalError {
                line: 1,
                text: other.map(|l| l.1.to_owned()).unwrap_or_default(),
            });
        }
    }
    // A number that lost its last digits is still a number: only the line break says that a line is whole.
    let whole = text.ends_with('\n');
    let last = text.lines().count();
    lines
        .map(|(n, line)| {
            read_line(line)
                .filter(|_| whole || n + 1 < last)
                .ok_or_else(|| IntervalError {
                    line: n + 1,
                    text: line.to_owned(),
                })
        })
        .collect()
}

fn read_line(line: &str) -> Option<Interval> {
    let fields: Vec<&str> = line.split(',').collect();
    let [
        phase,
        second,
        operation,
        count,
        errors,
        mean,
        p50,
        p95,
        p99,
        max,
    ] = fields[..]
    else {
        return None;
    };
    Some(Interval {
        phase: match phase {
            "warmup" => Phase::Warmup,
            "measure" => Phase::Measure,
            _ => return None,
        },
        second: second.parse().ok()?,
        operation: operation.to_owned(),
        count: count.parse().ok()?,
        errors: errors.parse().ok()?,
        mean_us: mean.parse().ok()?,
        p50_us: p50.parse().ok()?,
        p95_us: p95.parse().ok()?,
        p99_us: p99.parse().ok()?,
        max_us: max.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Interval {
        Interval {
            phase: Phase::Measure,
            second: 3,
            operation: "read".into(),
            count: 10,
            errors: 1,
            mean_us: 12.5,
            p50_us: 12,
            p95_us: 20,
            p99_us: 21,
            max_us: 22,
        }
    }

    #[test]
    fn intervals_survive_their_csv() {
        let all = vec![
            Interval {
                phase: Phase::Warmup,
                ..sample()
            },
            sample(),
        ];
        assert_eq!(read_intervals(&write_intervals(&all)).unwrap(), all);
    }

    #[test]
    fn a_cut_line_is_named() {
        let whole = write_intervals(&[sample(), sample()]);
        for lost in [1, 2, 12] {
            let error = read_intervals(&whole[..whole.len() - lost]).unwrap_err();
            assert!(error.to_string().starts_with("line 3 "), "{lost}");
        }
    }
}
