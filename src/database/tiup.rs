//! A deployment that an installed `tiup cluster` of this machine deploys, starts, stops and destroys. What TiUP has no word
//! for is done as for a cluster of assay's own: it answers before a round, variables, what took effect, snapshots.

mod display;
mod topology;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use self::display::Shown;
use super::{
    Cluster, Database, DatabaseError, Done, Effective, InstanceStatus, Parts, Place, Process, Work,
};
use crate::host::{Bounds, Command, Host as _, LocalHost, Program, Watch};
use crate::plan::{Instance, Target};
use crate::service::Removed;
use crate::snapshot::Marker;
use crate::spec::Settle;

/// The program, unless the experiment names another.
const PROGRAM: &str = "tiup";
/// How many of its last lines are kept.
const KEPT: usize = 12;
/// The status of `env` when there is no such program.
const NOT_FOUND: i32 = 127;

/// A cluster of TiUP's.
pub(super) struct Tiup {
    cluster: Cluster,
    program: String,
    /// What TiUP calls it.
    name: String,
    version: String,
    /// A mirror of packages instead of TiUP's own.
    mirror: Option<String>,
    topology: String,
    /// Where TiUP reads the topology.
    file: PathBuf,
    /// Whom it logs in as, and with which key, while it deploys.
    login: Vec<String>,
}

/// What TiUP printed, the last lines of it.
type Lines = VecDeque<String>;

impl Tiup {
    /// The cluster of a deployment.
    ///
    /// # Errors
    /// There is no pack of its system, or a text of it cannot be rendered, or the experiment names no version.
    pub(super) fn new(parts: Parts<'_>) -> Result<Self, DatabaseError> {
        let name = name_of(&parts.marker());
        let file = parts.packages.join("tiup").join(format!("{name}.yaml"));
        let unit = |i: &Instance| format!("{}-{}.service", i.role, i.port);
        let user = parts.deployment.run_as.as_deref();
        let user = user.unwrap_or(topology::USER).to_owned();
        let cluster = Cluster::new(parts)?.with_units(&user, unit);
        let deployment = cluster.deployment();
        let no_version = || DatabaseError::Other("TiUP needs a `version`".to_owned());
        Ok(Self {
            topology: topology::of(&cluster, None),
            program: deployment
                .deploy
                .tiup
                .clone()
                .unwrap_or_else(|| PROGRAM.to_owned()),
            version: deployment.version.clone().ok_or_else(no_version)?,
            mirror: deployment.packages.mirror.clone(),
            login: login(&cluster),
            cluster,
            name,
            file,
        })
    }

    /// Runs a command of `tiup cluster` to its end.
    async fn tell(
        &self,
        args: &[&str],
        bounds: Bounds<'_>,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Lines, DatabaseError> {
        let mut words = vec!["NO_COLOR=1".to_owned()];
        words.extend(self.mirror.iter().map(|m| format!("TIUP_MIRRORS={m}")));
        words.extend([self.program.clone(), "cluster".to_owned()]);
        words.extend(args.iter().map(|&arg| arg.to_owned()));
        let program = Program::Path(PathBuf::from("/usr/bin/env"));
        let command = Command::new(program, words, bounds.limit);
        let mut lines = Lines::new();
        let mut hear = |line: &str| {
            let line = plain(line);
            if !line.is_empty() {
                say(&line);
                keep(&mut lines, line);
            }
        };
        let watch = Watch {
            stop: bounds.stop.clone(),
            line: &mut hear,
            log: &mut |_: &str| {},
        };
        let machine = LocalHost::new("this machine", "/", PROGRAM);
        let output = machine.run(&command, watch).await?;
        if output.status == Some(0) {
            return Ok(lines);
        }
        for line in output.stderr.lines().map(plain).filter(|l| !l.is_empty()) {
            keep(&mut lines, line);
        }
        Err(DatabaseError::Tiup {
            command: format!("{} cluster {}", self.program, args.join(" ")),
            ended: match output.status {
                Some(NOT_FOUND) => "cannot be run".to_owned(),
                Some(status) => format!("ended with status {status}"),
                None => "was killed".to_owned(),
            },
            said: Vec::from(lines).join("; "),
        })
    }

    /// What TiUP knows of it; nothing if it has no such cluster.
    async fn known(&self, bounds: Bounds<'_>) -> Result<Option<Shown>, DatabaseError> {
        let args = ["display", &*self.name, "--format", "json"];
        let mut text = String::new();
        let mut hear = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        match self.tell(&args, bounds, &mut hear).await {
            Ok(_) => {
                let shown = Shown::read(&text)?;
                shown.is_of(self.cluster.members(), &self.name)?;
                Ok(Some(shown))
            }
            Err(DatabaseError::Tiup { said, .. }) if is_unknown(&said) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put(&self, fresh: bool, work: Work<'_>) -> Result<Value, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let mut known = self.known(bounds).await?;
        if fresh {
            if known.take().is_some() {
                self.tell(&["destroy", &self.name, "--yes"], bounds, say)
                    .await?;
            }
            self.cluster.clear_all(hosts, bounds).await?;
        }
        let lines = match known {
            None => {
                self.write(&self.topology)?;
                self.cluster.claim(false, hosts, bounds).await?;
                self.make(bounds, say).await?
            }
            Some(shown) => self.reload(&shown, bounds, say).await?,
        };
        self.cluster.claim(true, hosts, bounds).await?;
        Ok(json!({
            "engine": "tiup",
            "cluster": self.name,
            "version": self.version,
            "topology": self.topology,
            "said": lines,
        }))
    }

    async fn make(
        &self,
        bounds: Bounds<'_>,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Lines, DatabaseError> {
        let file = self.file.to_string_lossy();
        // Where labels are missing is for `assay check` to say.
        let mut args = vec!["deploy", &*self.name, &*self.version, &*file];
        args.extend(["--yes", "--no-labels"]);
        args.extend(self.login.iter().map(String::as_str));
        self.tell(&args, bounds, say).await
    }

    /// Brings a new configuration to a cluster that is there; one that runs takes it at once, instance by instance.
    async fn reload(
        &self,
        shown: &Shown,
        bounds: Bounds<'_>,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Lines, DatabaseError> {
        if shown.version != self.version {
            return Err(DatabaseError::Other(format!(
                "TiUP has deployed `{}` as {}, not {}: destroy it first",
                self.name, shown.version, self.version
            )));
        }
        let file = self.file.to_string_lossy();
        // What TiUP has found out by itself must not change either.
        self.write(&topology::of(&self.cluster, shown.arch()))?;
        let edit = [
            "edit-config",
            &*self.name,
            "--topology-file",
            &*file,
            "--yes",
        ];
        let lines = self.tell(&edit, bounds, say).await?;
        // That is no failure to TiUP.
        if lines.iter().any(|line| line.contains("could not be saved")) {
            return Err(DatabaseError::Tiup {
                command: format!("{} cluster {}", self.program, edit.join(" ")),
                ended: "changed nothing".to_owned(),
                said: Vec::from(lines).join("; "),
            });
        }
        let mut reload = vec!["reload", &*self.name, "--yes"];
        if !shown.runs() {
            reload.push("--skip-restart");
        }
        self.tell(&reload, bounds, say).await
    }

    /// Writes the topology to where TiUP reads it. It may hold secrets.
    fn write(&self, topology: &str) -> Result<(), DatabaseError> {
        let write = || {
            if let Some(folder) = self.file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&self.file)?.write_all(topology.as_bytes())
        };
        write().map_err(|error| {
            let file = self.file.display();
            DatabaseError::Other(format!("cannot write `{file}`: {error}"))
        })
    }

    async fn bring_up(&self, work: Work<'_>) -> Result<Effective, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let begun = std::time::Instant::now();
        let seconds = bounds.limit.as_secs().max(1).to_string();
        let args = ["start", &*self.name, "--yes", "--wait-timeout", &*seconds];
        self.tell(&args, bounds, say).await?;
        let limit = bounds.limit.saturating_sub(begun.elapsed());
        let bounds = Bounds { limit, ..bounds };
        self.cluster.found(Work { hosts, bounds, say }).await
    }

    async fn bring_down(&self, work: Work<'_>) -> Result<(), DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let seconds = bounds.limit.as_secs().max(1).to_string();
        let args = ["stop", &*self.name, "--yes", "--wait-timeout", &*seconds];
        if let Err(error) = self.tell(&args, bounds, say).await {
            let is_there = error.host().is_some() || self.known(bounds).await?.is_some();
            return if is_there { Err(error) } else { Ok(()) };
        }
        let left = self.cluster.processes(Work { hosts, bounds, say }).await?;
        match left.first() {
            None => Ok(()),
            Some(process) => Err(DatabaseError::Other(format!(
                "TiUP has stopped `{}`, but `{}` still runs",
                self.name, process.instance
            ))),
        }
    }

    async fn take_away(
        &self,
        dry_run: bool,
        keep_data: bool,
        work: Work<'_>,
    ) -> Result<BTreeMap<String, Removed>, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        if !dry_run && self.known(bounds).await?.is_some() {
            let mut args = vec!["destroy", &*self.name, "--yes"];
            let members = self.cluster.members().iter();
            let roles = members.filter(|m| m.data.is_some() && keep_data);
            let mut roles: Vec<&str> = roles.map(|m| &*m.instance.role).collect();
            roles.dedup();
            for role in roles {
                args.extend(["--retain-role-data", role]);
            }
            self.tell(&args, bounds, say).await?;
        }
        let work = Work { hosts, bounds, say };
        self.cluster.remove(dry_run, keep_data, work).await
    }
}

impl Database for Tiup {
    fn places(&self) -> Vec<Place> {
        self.cluster.places()
    }

    fn deploy<'a>(&'a self, fresh: bool, work: Work<'a>) -> Done<'a, Value> {
        Box::pin(self.put(fresh, work))
    }

    fn start<'a>(&'a self, work: Work<'a>) -> Done<'a, Effective> {
        Box::pin(self.bring_up(work))
    }

    fn equip<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        self.cluster.equip(work)
    }

    fn analyze<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        self.cluster.analyze(work)
    }

    fn settle<'a>(&'a self, settle: &'a Settle, work: Work<'a>) -> Done<'a, Option<String>> {
        self.cluster.settle(settle, work)
    }

    fn processes<'a>(&'a self, work: Work<'a>) -> Done<'a, Vec<Process>> {
        self.cluster.processes(work)
    }

    fn status<'a>(&'a self, work: Work<'a>) -> Done<'a, Vec<InstanceStatus>> {
        self.cluster.status(work)
    }

    fn remove<'a>(
        &'a self,
        dry_run: bool,
        keep_data: bool,
        work: Work<'a>,
    ) -> Done<'a, BTreeMap<String, Removed>> {
        Box::pin(self.take_away(dry_run, keep_data, work))
    }

    fn stop<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        Box::pin(self.bring_down(work))
    }

    fn target(&self) -> Target {
        self.cluster.target()
    }
}

/// The name of a deployment as TiUP takes one: letters, digits, `-`, `_` and `.`.
fn name_of(marker: &Marker) -> String {
    let name = format!("assay-{}-{}", marker.experiment, marker.deployment);
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars()
        .map(|c| if is_taken(c) { c } else { '_' })
        .collect()
}

/// The options of `deploy` that say whom to log in as: that of the first host, since TiUP takes one for all.
fn login(cluster: &Cluster) -> Vec<String> {
    let Some(login) = cluster.deployment().logins.values().next() else {
        return Vec::new();
    };
    let user = login.user.iter().map(|user| ["--user", user]);
    let key = login.identity_file.iter().map(|file| ["-i", file]);
    user.chain(key).flatten().map(str::to_owned).collect()
}

/// Whether TiUP says that it has no such cluster.
fn is_unknown(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    said.contains("cluster")
        && ["not found", "not exist", "non-exist"]
            .iter()
            .any(|words| said.contains(words))
}

fn keep(lines: &mut Lines, line: String) {
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// A line without colours and other commands to a terminal.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' {
            // `ESC [ ... letter`
            let _ = rest.find(|c| c.is_ascii_alphabetic());
        } else if !c.is_control() {
            text.push(c);
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_only_characters_that_tiup_takes() {
        let marker = Marker {
            experiment: "tidb upgrade".into(),
            deployment: "v6.1.2".into(),
        };
        assert_eq!(name_of(&marker), "assay-tidb_upgrade-v6.1.2");
    }

    #[test]
    fn a_line_is_kept_without_its_colours() {
        assert_eq!(plain("\u{1b}[31mError:\u{1b}[0m no\r"), "Error: no");
    }

    #[test]
    fn a_cluster_that_tiup_does_not_know_is_told_from_other_failures() {
        assert!(is_unknown("Error: Cluster assay-a-b not found"));
        assert!(!is_unknown(
            "Error: failed to connect to db1: host not found"
        ));
    }
}
