//! What is kept and understood of the lines that a tool prints.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::ToolError;
use super::files::failed;
use crate::plan::{Listen, Loading, Progress, Seconds, ToolStep};

/// How many lines of failure are told of: with many threads there are as many of each.
const TOLD: usize = 4;
/// How much of a line is told of, characters.
const LINE: usize = 300;

/// Hears a program's standard output.
pub(super) struct Ear<'a> {
    path: PathBuf,
    file: File,
    broken: Option<std::io::Error>,
    failure: Option<Regex>,
    seconds: Option<(Regex, &'a Seconds)>,
    loading: Option<(Regex, &'a Loading)>,
    progress: &'a mut (dyn FnMut(Progress) + Send),
    /// The lines of failure, each once.
    failures: Vec<String>,
    /// Lines of failure beyond [`TOLD`].
    more: usize,
    /// Rows told of.
    rows: u64,
    /// The last line that is not empty.
    last: String,
}

impl<'a> Ear<'a> {
    pub(super) fn new(
        listen: &'a Listen,
        path: &Path,
        progress: &'a mut (dyn FnMut(Progress) + Send),
    ) -> Result<Self, ToolError> {
        let (seconds, loading) = (listen.seconds.as_ref(), listen.loading.as_ref());
        Ok(Self {
            file: File::create(path).map_err(|error| failed("write", path, error))?,
            path: path.to_owned(),
            broken: None,
            failure: listen.failure.as_deref().map(pattern).transpose()?,
            seconds: seconds.map(|s| Ok((pattern(&s.line)?, s))).transpose()?,
            loading: loading.map(|l| Ok((pattern(&l.line)?, l))).transpose()?,
            progress,
            failures: Vec::new(),
            more: 0,
            rows: 0,
            last: String::new(),
        })
    }

    /// Keeps a line and tells what it says.
    pub(super) fn hear(&mut self, text: &str) {
        if self.broken.is_none() {
            self.broken = self.file.write_all(format!("{text}\n").as_bytes()).err();
        }
        if !text.trim().is_empty() {
            text.trim().clone_into(&mut self.last);
        }
        if self.failure.as_ref().is_some_and(|f| f.is_match(text)) {
            self.fail(text);
        }
        if let Some((line, seconds)) = &self.seconds
            && let Some(second) = second(line, seconds, text)
        {
            (self.progress)(second);
        }
        if let Some((line, loading)) = &self.loading
            && line.is_match(text)
        {
            self.rows += loading.rows;
            (self.progress)(Progress::Loaded {
                rows: self.rows,
                of: loading.of,
            });
        }
    }

    fn fail(&mut self, text: &str) {
        let text = cut(text);
        if self.failures.contains(&text) {
            return;
        }
        if self.failures.len() < TOLD {
            self.failures.push(text);
        } else {
            self.more += 1;
        }
    }

    /// Whether a program that ended with `status` and said this did its work; `stderr` is what it said elsewhere.
    pub(super) fn judge(
        self,
        step: &ToolStep,
        status: Option<i32>,
        stderr: &Path,
    ) -> Result<(), ToolError> {
        if let Some(error) = self.broken {
            return Err(failed("write", &self.path, error));
        }
        let (name, program) = (step.name.clone(), step.program.clone());
        if status != Some(0) || !self.failures.is_empty() {
            return Err(ToolError::Failed {
                step: name,
                program,
                how: match status {
                    Some(status) => format!("with status {status}"),
                    None => "by a signal".to_owned(),
                },
                said: self.said(stderr),
            });
        }
        match self.loading {
            Some((_, loading)) if self.rows != loading.of => Err(ToolError::Short {
                step: name,
                program,
                rows: self.rows,
                of: loading.of,
            }),
            _ => Ok(()),
        }
    }

    /// The lines that tell why it failed, else the last ones that it printed.
    fn said(&self, stderr: &Path) -> String {
        let mut told = self.failures.clone();
        if self.more > 0 {
            told.push(format!("and {} lines more", self.more));
        }
        if told.is_empty() {
            let stderr = std::fs::read(stderr).unwrap_or_default();
            let stderr = String::from_utf8_lossy(&stderr);
            let last = stderr.lines().rfind(|line| !line.trim().is_empty());
            told.extend(last.map(cut));
            if !self.last.is_empty() {
                told.push(format!("its last line is `{}`", cut(&self.last)));
            }
        }
        if told.is_empty() {
            return ", and said nothing".to_owned();
        }
        format!(": {}", told.join("; "))
    }
}

fn cut(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= LINE {
        return line.to_owned();
    }
    line.chars().take(LINE).chain(['…']).collect()
}

fn pattern(line: &str) -> Result<Regex, ToolError> {
    Regex::new(line).map_err(|source| ToolError::Pattern {
        line: line.to_owned(),
        source: Box::new(source),
    })
}

/// The second that a line tells of. Rates are those of about a second, so that they are about counts.
fn second(line: &Regex, seconds: &Seconds, text: &str) -> Option<Progress> {
    let found = line.captures(text)?;
    let number = |group: &str| found.name(group)?.as_str().parse::<f64>().ok();
    let second: u64 = found.name("second")?.as_str().parse().ok()?;
    Some(Progress::Second {
        phase: seconds.phase,
        second: second.saturating_sub(1),
        count: number("rate")?.round() as u64,
        errors: number("errors").unwrap_or(0.0).round() as u64,
    })
}
