//! Metrics that a server tells: the text format of Prometheus (version 0.0.4, and what OpenMetrics adds to its lines).

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Http, ProbeError, Tls, http};
use crate::units::Duration;

/// A request for some of a server's metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Where they are: `http://kv1:20180/metrics`.
    pub url: String,
    /// The names of the samples that are wanted, as they stand there; those of a histogram end with `_bucket`, `_sum`, `_count`.
    pub names: Vec<String>,
    /// Whom to trust and who asks; wanted for `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// How long the whole answer may take.
    #[serde(default = "super::timeout")]
    pub timeout: Duration,
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The metric.
    pub name: String,
    /// What the value is of.
    pub labels: BTreeMap<String, String>,
    /// The value, which may be infinite or not a number.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub value: f64,
}

/// JSON has no infinity, so that such values go as texts.
fn write<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else {
        serializer.collect_str(value)
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(f64),
        Text(String),
    }
    match Form::deserialize(deserializer)? {
        Form::Number(value) => Ok(value),
        Form::Text(text) => text.parse().map_err(de::Error::custom),
    }
}

/// Asks for the metrics and picks those that are wanted.
pub(super) async fn fetch(request: &Metrics) -> Result<Vec<Sample>, ProbeError> {
    let question = Http {
        tls: request.tls.clone(),
        timeout: request.timeout,
        ..Http::get(&request.url)
    };
    let answer = http::send(&question).await?;
    if !answer.is_success() {
        return Err(ProbeError::Http {
            url: question.to_string(),
            source: super::Cause::Connection(format!("status {}, wanted 200", answer.status)),
        });
    }
    parse(&answer.body, &request.names).map_err(|(line, why)| ProbeError::Metric {
        url: question.to_string(),
        line,
        why,
    })
}

/// The samples of these names in the text that a server gives, in its order.
///
/// # Errors
/// A line that begins as one of them cannot be read: its number from 1, and why.
pub fn parse(text: &str, names: &[String]) -> Result<Vec<Sample>, (usize, &'static str)> {
    let mut samples = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let end = line.find(|c| !is_of_name(c)).unwrap_or(line.len());
        // Most lines are of other metrics; they are not looked at further.
        if !line.starts_with('{') && !names.iter().any(|name| *name == line[..end]) {
            continue;
        }
        let sample = Line(line.chars().peekable()).sample();
        let sample = sample.map_err(|why| (number, why))?;
        if names.contains(&sample.name) {
            samples.push(sample);
        }
    }
    Ok(samples)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.')
}

/// What is left of a line.
struct Line<'a>(Peekable<Chars<'a>>);

impl Line<'_> {
    /// `name{label="value", …} value [time] [# exemplar]`; the name may stand within the braces, in quotes.
    fn sample(mut self) -> Result<Sample, &'static str> {
        let mut name = self.word();
        let mut labels = BTreeMap::new();
        self.blank();
        if self.0.next_if_eq(&'{').is_some() {
            while self.blank() != Some('}') {
                let (key, value) = self.label()?;
                match value {
                    Some(value) => _ = labels.insert(key, value),
                    None if name.is_empty() => name = key,
                    None => return Err("a label without a value"),
                }
                if self.blank() != Some('}') && self.0.next_if_eq(&',').is_none() {
                    return Err("no comma or brace after a label");
                }
            }
            self.0.next();
        }
        if name.is_empty() {
            return Err("no name");
        }
        self.blank();
        let value: String = std::iter::from_fn(|| self.0.next_if(|c| !c.is_whitespace())).collect();
        let value = value.parse().map_err(|_| "no number as its value")?;
        Ok(Sample {
            name,
            labels,
            value,
        })
    }

    /// A label; what has no value is a metric's name in quotes.
    fn label(&mut self) -> Result<(String, Option<String>), &'static str> {
        let key = match self.0.peek() {
            Some('"') => self.quoted()?,
            _ => self.word(),
        };
        if key.is_empty() {
            return Err("a label without a name");
        }
        if self.blank() != Some('=') {
            return Ok((key, None));
        }
        self.0.next();
        match self.blank() {
            Some('"') => Ok((key, Some(self.quoted()?))),
            _ => Err("a label's value without quotes"),
        }
    }

    /// Skips blanks; what comes then.
    fn blank(&mut self) -> Option<char> {
        while self.0.next_if(|c| c.is_whitespace()).is_some() {}
        self.0.peek().copied()
    }

    /// The characters of a name without quotes.
    fn word(&mut self) -> String {
        std::iter::from_fn(|| self.0.next_if(|c| is_of_name(*c))).collect()
    }

    /// A text in quotes. Of `\x` that the format does not know, both characters stay.
    fn quoted(&mut self) -> Result<String, &'static str> {
        self.0.next();
        let mut text = String::new();
        loop {
            match self.0.next().ok_or("quotes that do not end")? {
                '"' => return Ok(text),
                '\\' => match self.0.next().ok_or("quotes that do not end")? {
                    'n' => text.push('\n'),
                    c @ ('"' | '\\') => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c => text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn sample(name: &str, labels: &[(&str, &str)], value: f64) -> Sample {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Sample {
            name: name.to_owned(),
            labels: labels.collect(),
            value,
        }
    }

    /// The example of the format's description, and oddities beside it.
    const TEXT: &str = r#"
# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="+Inf"} 144320
http_request_duration_seconds_sum 53423
odd { a = "x, y} z" , b="\q", } -1e-3
odd{} NaN # {trace_id="x"} 1
{"my.metric", "a b"="ä"} 2
"#;

    #[test]
    fn samples_of_wanted_names_are_read_with_their_labels() {
        let names = wanted(&[
            "http_requests_total",
            "msdos_file_access_time_seconds",
            "metric_without_timestamp_and_labels",
            "something_weird",
            "http_request_duration_seconds_bucket",
            "my.metric",
            "absent",
        ]);
        let expected = [
            sample(
                "http_requests_total",
                &[("method", "post"), ("code", "200")],
                1027.0,
            ),
            sample(
                "http_requests_total",
                &[("method", "post"), ("code", "400")],
                3.0,
            ),
            sample(
                "msdos_file_access_time_seconds",
                &[
                    ("path", r"C:\DIR\FILE.TXT"),
                    ("error", "Cannot find file:\n\"FILE.TXT\""),
                ],
                1.458_255_915e9,
            ),
            sample("metric_without_timestamp_and_labels", &[], 12.47),
            sample(
                "something_weird",
                &[("problem", "division by zero")],
                f64::INFINITY,
            ),
            sample(
                "http_request_duration_seconds_bucket",
                &[("le", "+Inf")],
                144_320.0,
            ),
            sample("my.metric", &[("a b", "ä")], 2.0),
        ];
        assert_eq!(parse(TEXT, &names).unwrap(), expected);
    }

    #[test]
    fn odd_labels_and_values_are_read() {
        let found = parse(TEXT, &wanted(&["odd"])).unwrap();
        let first = sample("odd", &[("a", "x, y} z"), ("b", r"\q")], -1e-3);
        assert_eq!(found[0], first);
        assert!(found[1].value.is_nan());
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_longer_name_is_another_metric() {
        assert_eq!(parse(TEXT, &wanted(&["http_request"])), Ok(Vec::new()));
    }

    #[test]
    fn a_broken_line_of_a_wanted_metric_is_named() {
        for (line, why) in [
            ("a", "no number as its value"),
            ("a{b=\"c\" 1", "no comma or brace after a label"),
            ("a{b=\"c} 1", "quotes that do not end"),
            ("a{b=c} 1", "a label's value without quotes"),
            ("a{b} 1", "a label without a value"),
            ("a{,} 1", "a label without a name"),
            ("a 1x", "no number as its value"),
            ("{b=\"c\"} 1", "no name"),
        ] {
            let text = format!("b 1\n{line}\n");
            assert_eq!(parse(&text, &wanted(&["a"])), Err((2, why)), "{line}");
        }
    }

    #[test]
    fn values_that_json_does_not_have_survive_it() {
        for value in [1.5, f64::INFINITY, f64::NEG_INFINITY] {
            let text = serde_json::to_string(&sample("a", &[], value)).unwrap();
            assert_eq!(serde_json::from_str::<Sample>(&text).unwrap().value, value);
        }
        let text = serde_json::to_string(&sample("a", &[], f64::NAN)).unwrap();
        assert!(
            serde_json::from_str::<Sample>(&text)
                .unwrap()
                .value
                .is_nan()
        );
    }
}
