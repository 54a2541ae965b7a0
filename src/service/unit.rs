//! The text of a systemd unit. Whatever is in a value stays in its line and means itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// What a unit waits for, besides what the deployment names.
const AFTER: [&str; 4] = [
    "syslog.target",
    "network.target",
    "remote-fs.target",
    "nss-lookup.target",
];

/// A service of a deployment, as `text` writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What it is, for people.
    pub description: String,
    /// The program, an absolute path, and its arguments.
    pub exec: Vec<String>,
    /// The user whom it runs as; `None` in a user's own systemd.
    pub user: Option<String>,
    /// Where it runs.
    pub directory: Option<PathBuf>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Limits of its processes.
    pub limits: Limits,
    /// Whether it is started again when it ends.
    pub restart: Restart,
    /// The time before it is.
    pub restart_sec: Duration,
    /// The most memory of all its processes: `16G`.
    pub memory_limit: Option<String>,
    /// The most processor time: `200%` is that of two CPUs.
    pub cpu_quota: Option<String>,
    /// The most that it reads from devices: `/dev/nvme0n1 100M`.
    pub io_read_bandwidth_max: Vec<String>,
    /// The most that it writes to devices.
    pub io_write_bandwidth_max: Vec<String>,
    /// How long it may take to start.
    pub timeout_start: Option<Duration>,
    /// How long it may take to stop before systemd kills it.
    pub timeout_stop: Option<Duration>,
    /// Further units that it is started after.
    pub after: Vec<String>,
}

/// Limits of a service's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open files.
    pub nofile: u64,
    /// Bytes of stack.
    pub stack: u64,
    /// Bytes of a core file: a number, or `infinity`.
    pub core: Option<String>,
}

impl Default for Limits {
    /// What databases are deployed with.
    fn default() -> Self {
        Self {
            nofile: 1_000_000,
            stack: 10_485_760,
            core: None,
        }
    }
}

/// Whether a service is started again when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// However it ends.
    Always,
    /// When it fails.
    OnFailure,
    /// Never.
    No,
}

impl Restart {
    fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::OnFailure => "on-failure",
            Self::No => "no",
        }
    }
}

/// Why a unit cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot write `{value}` as the {field} of a unit: {why}")]
pub struct UnitError {
    /// The field.
    pub field: String,
    /// What it was to be.
    pub value: String,
    /// Why not.
    pub why: &'static str,
}

impl Unit {
    /// A service that runs a program as systemd would, and is started again 15 seconds after it ends, however that is.
    #[must_use]
    pub fn new(description: impl Into<String>, exec: Vec<String>) -> Self {
        Self {
            description: description.into(),
            exec,
            user: None,
            directory: None,
            environment: BTreeMap::new(),
            limits: Limits::default(),
            restart: Restart::Always,
            restart_sec: Duration::from_secs(15),
            memory_limit: None,
            cpu_quota: None,
            io_read_bandwidth_max: Vec::new(),
            io_write_bandwidth_max: Vec::new(),
            timeout_start: None,
            timeout_stop: None,
            after: Vec::new(),
        }
    }

    /// The unit's text.
    ///
    /// # Errors
    /// A value cannot be written so that it means itself: it has a line end, or is no value of its field.
    pub fn text(&self) -> Result<String, UnitError> {
        let mut lines = Lines::default();
        lines.section("Unit");
        lines.plain("Description", &self.description)?;
        let after = self.after.iter().map(String::as_str);
        let after: Vec<&str> = AFTER.into_iter().chain(after).collect();
        for unit in &after {
            word("After", unit, "@:-_.\\")?;
        }
        lines.line("After", &after.join(" "));
        lines.section("Service");
        self.resources(&mut lines)?;
        self.program(&mut lines)?;
        lines.line("Restart", self.restart.word());
        lines.line("RestartSec", &span(self.restart_sec));
        for (key, time) in [
            ("TimeoutStartSec", self.timeout_start),
            ("TimeoutStopSec", self.timeout_stop),
        ] {
            if let Some(time) = time {
                lines.line(key, &span(time));
            }
        }
        lines.section("Install");
        lines.line("WantedBy", "multi-user.target");
        Ok(lines.0)
    }

    fn resources(&self, lines: &mut Lines) -> Result<(), UnitError> {
        if let Some(memory) = &self.memory_limit {
            word("MemoryLimit", memory, ".%")?;
            // The one for hosts where each controller has a hierarchy of its own, the other for all later ones.
            lines.line("MemoryLimit", memory);
            lines.line("MemoryMax", memory);
        }
        if let Some(quota) = &self.cpu_quota {
            word("CPUQuota", quota, ".%")?;
            lines.line("CPUQuota", quota);
        }
        for (key, values) in [
            ("IOReadBandwidthMax", &self.io_read_bandwidth_max),
            ("IOWriteBandwidthMax", &self.io_write_bandwidth_max),
        ] {
            for value in values {
                let is_pair = value.starts_with('/') && value.split(' ').count() == 2;
                if !is_pair {
                    return Err(wrong(key, value, "a device and a rate are wanted"));
                }
                word(key, &value.replace(' ', ""), "/.-_:")?;
                lines.line(key, value);
            }
        }
        lines.line("LimitNOFILE", &self.limits.nofile.to_string());
        lines.line("LimitSTACK", &self.limits.stack.to_string());
        if let Some(core) = &self.limits.core {
            word("LimitCORE", core, "")?;
            lines.line("LimitCORE", core);
        }
        Ok(())
    }

    fn program(&self, lines: &mut Lines) -> Result<(), UnitError> {
        if let Some(user) = &self.user {
            word("User", user, "._-@")?;
            lines.line("User", user);
        }
        if let Some(directory) = &self.directory {
            let text = directory.to_str().filter(|text| text.starts_with('/'));
            let Some(text) = text else {
                let value = directory.display().to_string();
                return Err(wrong(
                    "WorkingDirectory",
                    &value,
                    "an absolute path is wanted",
                ));
            };
            lines.plain("WorkingDirectory", text)?;
        }
        for (name, value) in &self.environment {
            let starts_well = !name.starts_with(|c: char| c.is_ascii_digit());
            word("Environment", name, "_")?;
            if !starts_well {
                return Err(wrong("Environment", name, "it is no name of a variable"));
            }
            lines.line(
                "Environment",
                &quoted("Environment", &format!("{name}={value}"))?,
            );
        }
        lines.line("ExecStart", &self.command()?);
        Ok(())
    }

    fn command(&self) -> Result<String, UnitError> {
        let program = self.exec.first().map_or("", String::as_str);
        if !program.starts_with('/') {
            return Err(wrong("ExecStart", program, "an absolute path is wanted"));
        }
        // systemd replaces no variables in the path of the program, and so takes back no doubled `$`.
        if program.contains('$') {
            return Err(wrong(
                "ExecStart",
                program,
                "the path of a program has no `$`",
            ));
        }
        let words = self.exec.iter().map(|word| {
            let word = quoted("ExecStart", word)?;
            Ok(word.replace('$', "$$"))
        });
        let words: Vec<String> = words.collect::<Result<_, _>>()?;
        Ok(words.join(" "))
    }
}

/// The lines of a unit.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn section(&mut self, name: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        writeln!(self.0, "{gap}[{name}]").expect("a text takes everything");
    }

    fn line(&mut self, key: &str, value: &str) {
        writeln!(self.0, "{key}={value}").expect("a text takes everything");
    }

    /// A value that is read as it stands, but for `%`.
    fn plain(&mut self, key: &str, value: &str) -> Result<(), UnitError> {
        one_line(key, value)?;
        if value.ends_with('\\') {
            return Err(wrong(
                key,
                value,
                "a `\\` at its end would take in the next line",
            ));
        }
        if value.trim() != value {
            return Err(wrong(key, value, "space around it would be lost"));
        }
        self.line(key, &percent(value));
        Ok(())
    }
}

fn wrong(field: &str, value: &str, why: &'static str) -> UnitError {
    UnitError {
        field: field.to_owned(),
        value: value.escape_debug().to_string(),
        why,
    }
}

fn one_line(field: &str, value: &str) -> Result<(), UnitError> {
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err(wrong(
            field,
            value,
            "it has a line end or another control character",
        ));
    }
    Ok(())
}

/// Refuses what is not one word of letters, digits and these characters.
fn word(field: &str, value: &str, others: &str) -> Result<(), UnitError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    if value.is_empty() || !value.chars().all(is_plain) {
        return Err(wrong(field, value, "it is no value of that field"));
    }
    Ok(())
}

/// One word, in quotes if it has to be; `%` means itself.
fn quoted(field: &str, value: &str) -> Result<String, UnitError> {
    one_line(field, value)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return Ok(percent(value));
    }
    let mut out = String::from("\"");
    for c in percent(value).chars() {
        match c {
            '\\' | '"' => out.extend(['\\', c]),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(out)
}

fn percent(value: &str) -> String {
    value.replace('%', "%%")
}

/// A time as systemd reads it.
fn span(time: Duration) -> String {
    match time.subsec_micros() {
        0 => format!("{}s", time.as_secs()),
        micros => format!("{}s {micros}us", time.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(words: &[&str]) -> Unit {
        Unit::new("x", words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn line(unit: &Unit, key: &str) -> String {
        let text = unit.text().unwrap();
        let start = format!("{key}=");
        let found = text.lines().find_map(|line| line.strip_prefix(&start));
        found.unwrap().to_owned()
    }

    #[test]
    fn a_unit_has_the_fields_that_tiup_gives_it() {
        let mut tikv = unit(&["/bin/bash", "-c", "/srv/kv/scripts/run_tikv.sh"]);
        tikv.description = "tikv service".into();
        tikv.user = Some("tidb".into());
        let expected = "[Unit]\nDescription=tikv service\n\
            After=syslog.target network.target remote-fs.target nss-lookup.target\n\n\
            [Service]\nLimitNOFILE=1000000\nLimitSTACK=10485760\nUser=tidb\n\
            ExecStart=/bin/bash -c /srv/kv/scripts/run_tikv.sh\nRestart=always\nRestartSec=15s\n\n\
            [Install]\nWantedBy=multi-user.target\n";
        assert_eq!(tikv.text().unwrap(), expected);
    }

    #[test]
    fn every_further_field_is_written() {
        let mut full = unit(&["/bin/true"]);
        full.directory = Some("/srv/a b/100%".into());
        full.environment
            .insert("GODEBUG".into(), "a=\"1\" $x %n".into());
        full.limits.core = Some("infinity".into());
        full.restart = Restart::OnFailure;
        full.restart_sec = Duration::from_millis(1500);
        full.memory_limit = Some("50%".into());
        full.cpu_quota = Some("200%".into());
        full.io_read_bandwidth_max = vec!["/dev/nvme0n1 100M".into()];
        full.io_write_bandwidth_max = vec!["/dev/sda 1G".into(), "/dev/sdb 2G".into()];
        full.timeout_start = Some(Duration::from_secs(60));
        full.timeout_stop = Some(Duration::from_secs(120));
        full.after = vec!["assay-x.service".into()];
        for (key, value) in [
            ("WorkingDirectory", "/srv/a b/100%%"),
            ("Environment", r#""GODEBUG=a=\"1\" $x %%n""#),
            ("LimitCORE", "infinity"),
            ("Restart", "on-failure"),
            ("RestartSec", "1s 500000us"),
            ("MemoryMax", "50%"),
            ("CPUQuota", "200%"),
            ("IOReadBandwidthMax", "/dev/nvme0n1 100M"),
            ("IOWriteBandwidthMax", "/dev/sda 1G"),
            ("TimeoutStartSec", "60s"),
            ("TimeoutStopSec", "120s"),
        ] {
            assert_eq!(line(&full, key), value, "{key}");
        }
        assert!(line(&full, "After").ends_with("nss-lookup.target assay-x.service"));
    }

    #[test]
    fn arguments_stay_one_word_each_and_mean_themselves() {
        let words = [
            "/bin/a b", "", "c'd", "e\"f", "g\\h", "100%n", "$HOME", ";", "i\tj", "ü",
        ];
        assert_eq!(
            line(&unit(&words), "ExecStart"),
            r#""/bin/a b" "" "c'd" "e\"f" "g\\h" 100%%n "$$HOME" ";" "i\tj" "ü""#
        );
    }

    #[test]
    fn no_value_can_begin_another_line() {
        let evil = "x\nExecStartPre=/bin/sh";
        type Spoil = fn(&mut Unit, &str);
        let spoils: [Spoil; 13] = [
            |u, v| u.description = v.into(),
            |u, v| u.exec.push(v.into()),
            |u, v| u.user = Some(v.into()),
            |u, v| u.directory = Some(format!("/{v}").into()),
            |u, v| drop(u.environment.insert(v.into(), String::new())),
            |u, v| drop(u.environment.insert("A".into(), v.into())),
            |u, v| u.limits.core = Some(v.into()),
            |u, v| u.memory_limit = Some(v.into()),
            |u, v| u.cpu_quota = Some(v.into()),
            |u, v| u.io_read_bandwidth_max.push(format!("/{v}")),
            |u, v| u.io_write_bandwidth_max.push(format!("/dev/sda {v}")),
            |u, v| u.after.push(v.into()),
            |u, v| u.exec[0] = format!("/{v}"),
        ];
        for (number, spoil) in spoils.iter().enumerate() {
            for value in [evil, "x\ry", "x\0y"] {
                let mut spoilt = unit(&["/bin/true"]);
                spoil(&mut spoilt, value);
                assert!(spoilt.text().is_err(), "{number}: {value:?}");
            }
        }
        let mut joined = unit(&["/bin/true"]);
        joined.description = "takes in the next line \\".into();
        assert!(joined.text().is_err());
    }

    #[test]
    fn a_program_is_an_absolute_path() {
        for words in [&["true"][..], &[], &["-/bin/true"], &["/bin/$x"]] {
            assert!(unit(words).text().is_err(), "{words:?}");
        }
    }
}
