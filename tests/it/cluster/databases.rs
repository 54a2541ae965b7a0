//! Databases on hosts of the lab: deployed, measured, misbehaving, stopped and removed. Stand-ins play TiDB; MariaDB and
//! PostgreSQL are themselves.

mod failures;
mod removal;
mod repeated;
mod rounds;
mod systems;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::user::{Said, User};
use crate::support::lab::{Lab, LabHost, Taken};
use crate::support::mirror::Mirror;
use crate::support::skipped;

/// The version of a cluster on one host.
const VERSION: &str = "v6.1.2";

/// Somebody with an experiment on hosts of the lab. What runs there ends with it.
struct Site<'a> {
    user: User,
    hosts: Vec<Taken<'a>>,
    experiment: PathBuf,
}

impl<'a> Site<'a> {
    /// An experiment with hosts by these names.
    fn new(lab: &'a Lab, experiment: PathBuf, names: &[&str]) -> Self {
        let hosts = lab.take_hosts(names.len());
        let user = User::new();
        let pins: Vec<String> = hosts
            .iter()
            .map(|host| format!(", host_key: \"{}\"", host.fingerprint()))
            .collect();
        let rows: Vec<(&str, &LabHost, &str)> = names
            .iter()
            .zip(&hosts)
            .zip(&pins)
            .map(|((name, host), pin)| (*name, &**host, &**pin))
            .collect();
        user.inventory(&rows);
        Self {
            user,
            hosts,
            experiment,
        }
    }

    /// An experiment of the fixtures, with a mirror of stand-ins beside it.
    fn of_stand_ins(
        lab: &'a Lab,
        fixture: &str,
        names: &[&str],
        versions: &[(&str, Value)],
    ) -> Self {
        let mut site = Self::new(lab, PathBuf::new(), names);
        site.experiment = site.user.path("cluster.yaml");
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/databases");
        fs::copy(fixtures.join(fixture), &site.experiment).unwrap();
        Mirror::make_misbehaving(&site.user.path("mirror"), versions);
        site
    }

    /// A cluster on one host whose programs misbehave.
    fn misbehaving(lab: &'a Lab, misbehaviour: Value) -> Self {
        Self::of_stand_ins(lab, "one.yaml", &["db"], &[(VERSION, misbehaviour)])
    }

    /// A cluster on one host.
    fn of_one(lab: &'a Lab) -> Self {
        Self::misbehaving(lab, json!({}))
    }

    /// The first host.
    fn host(&self) -> &LabHost {
        &self.hosts[0]
    }

    /// The program with the experiment.
    fn assay(&self, command: &str, more: &[&str]) -> Command {
        let mut assay = self.user.assay(&[command]);
        assay.arg(&self.experiment).args(["-i", "hosts.yaml"]);
        assay.args(more);
        assay
    }

    /// What the program says, and its exit code.
    fn says(&self, command: &str, more: &[&str]) -> Said {
        Said::of(&self.assay(command, more).output().unwrap())
    }

    /// The same of what has to work.
    #[track_caller]
    fn does(&self, command: &str, more: &[&str]) -> Said {
        let said = self.says(command, more);
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    }

    /// Runs the experiment; containers have few of the settings that databases want.
    fn run(&self, settings: &[&str]) -> Said {
        let mut more = vec!["--ignore-preflight"];
        more.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
        self.says("run", &more)
    }

    /// The folder of the latest run.
    fn run_folder(&self) -> PathBuf {
        let experiments = fs::read_dir(self.user.path("artifacts")).unwrap();
        let runs = experiments.flat_map(|e| fs::read_dir(e.unwrap().path()).into_iter().flatten());
        let runs = runs.map(|run| run.unwrap().path());
        let runs = runs.filter(|run| run.join("events.jsonl").exists());
        let begun = |run: &PathBuf| {
            fs::metadata(run.join("plan.json"))
                .unwrap()
                .modified()
                .unwrap()
        };
        runs.max_by_key(begun).unwrap()
    }

    /// What happened in the latest run, of one kind.
    fn events(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.run_folder().join("events.jsonl")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        events
            .filter(|event: &Value| event["event"] == kind)
            .collect()
    }

    /// How the rounds of the latest run ended: status and reason.
    fn ended(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ended = self.events("round_finished");
        ended
            .iter()
            .map(|event| (text(&event["status"]), text(&event["reason"])))
            .collect()
    }

    /// What a file of each round of the latest run holds, by the round's name.
    fn of_rounds(&self, file: &str) -> Vec<(String, Value)> {
        let rounds = fs::read_dir(self.run_folder().join("rounds")).unwrap();
        let mut found: Vec<(String, Value)> = rounds
            .map(|round| {
                let round = round.unwrap();
                let name = round.file_name().to_string_lossy().into_owned();
                (name, json_of(&round.path().join(file)))
            })
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// Destroys the deployments: of what was deployed and of what was run nothing is left on any host.
    #[track_caller]
    fn is_destroyed_whole(&self) {
        self.does("destroy", &[]);
        let left = format!("ls -d {}/*/ 2>/dev/null || true", self.user.directory());
        for host in &self.hosts {
            assert_eq!(host.run(&left), "", "{}", host.name);
            assert_eq!(self.units(host), Vec::<String>::new());
        }
    }

    /// The units of the experiment on a host that run.
    fn units(&self, host: &LabHost) -> Vec<String> {
        let listed = host.run("systemctl list-units --plain --no-legend --state=active 'assay-*'");
        let names = listed.lines().filter_map(|l| l.split_whitespace().next());
        names.map(str::to_owned).collect()
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        let ended = "systemctl kill -s KILL 'assay-*'; systemctl stop 'assay-*'; \
                     rm -f /etc/systemd/system/assay-*; systemctl daemon-reload; systemctl reset-failed";
        for host in &self.hosts {
            let _ = host.ssh(ended).output();
        }
    }
}

fn json_of(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

/// The lab, where this machine has these programs; why not, else.
fn lab_with(programs: &[&str]) -> Option<&'static Lab> {
    let is_there = |name: &str| {
        let mut folders = ["/usr/sbin", "/usr/bin", "/usr/lib/postgresql/15/bin"].iter();
        folders.any(|folder| Path::new(folder).join(name).exists())
    };
    let missing: Vec<&&str> = programs.iter().filter(|name| !is_there(name)).collect();
    if !missing.is_empty() {
        skipped(&format!("no {missing:?} on this machine"));
        return None;
    }
    Lab::shared()
}

/// The lab, where a stand-in of TiDB can be driven.
fn lab() -> Option<&'static Lab> {
    lab_with(&["mariadbd", "sysbench"])
}
