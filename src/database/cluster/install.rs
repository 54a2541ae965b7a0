//! Puts a cluster on its hosts: folders, files and units, programs, empty data, the programs' own checks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::render::{EXECUTABLE, PRIVATE};
use super::{Cluster, DatabaseError, Hosts, Member, Work, render::Rendered};
use crate::database::RESULTS;
use crate::host::{Bounds, Host, ask};
use crate::pack;
use crate::service::{
    Directory, File, Install, Installed, Ran, Removal, Remove, Removed, UnitFile, unit_prefix,
};
use crate::snapshot::MarkedDirectory;
use crate::units;

/// The longest that units may take to stop before their files are removed.
pub(super) const STOPPING: Duration = Duration::from_secs(90);
/// What lies beside a program while its data is initialised, and is locked as long as that goes on.
const MARK: &str = ".initialising";
/// How long an initialisation that was cut short is given to end, s.
const WAIT: u64 = 240;
/// The mode of a folder, and of one with data.
const FOLDER: u32 = 0o755;
const DATA: u32 = 0o750;

impl Cluster {
    /// Installs everything. Returns what is recorded: packages, and files that were written.
    pub(super) async fn install(
        &self,
        fresh: bool,
        work: Work<'_>,
    ) -> Result<Value, DatabaseError> {
        let Work { hosts, bounds, say } = work;
        say("packages");
        let packages = self.obtain(hosts, bounds, say).await?;
        say("folders and files");
        self.make_authority(fresh, hosts, bounds).await?;
        let names = self.host_names();
        let each = names.iter().map(async |name| {
            let host = &*hosts[*name];
            if fresh {
                self.clear(host, bounds).await?;
            }
            let request = self.request(name)?;
            let installed: Installed = ask(host, "service-install", &request, bounds).await?;
            Ok::<_, DatabaseError>(installed)
        });
        try_join_all(each).await?;
        say("programs");
        let each = self.members.iter().map(async |member| {
            let host = &*hosts[&member.instance.host];
            self.bring(host, member, &packages).await
        });
        try_join_all(each).await?;
        say("data and checks");
        let each = self.members.iter().map(async |member| {
            let host = &*hosts[&member.instance.host];
            self.initialise(host, member, bounds).await?;
            self.check(host, member, bounds).await
        });
        try_join_all(each).await?;
        Ok(json!({ "packages": packages.records() }))
    }

    /// The hosts that it lies on, each once.
    pub(super) fn host_names(&self) -> BTreeSet<&str> {
        let hosts = self.members.iter().map(|m| &*m.instance.host);
        hosts.collect()
    }

    fn here<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Member> {
        self.members.iter().filter(move |m| m.instance.host == host)
    }

    /// Marks the folders that somebody else's tool puts the cluster into as the deployment's: those above everything, or
    /// those of data, which that tool has made.
    pub(in crate::database) async fn claim(
        &self,
        data: bool,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let each = self.host_names().into_iter().map(async |name| {
            let base = self.base(name);
            let outside = |root: &PathBuf| !root.starts_with(&base);
            let folders = self.here(name).flat_map(|member| {
                let roots = roots(member).filter(outside);
                let roots = roots.map(|path| (path, None, FOLDER));
                let data = member.data.clone().filter(|_| data);
                roots.chain(data.map(|path| (path, member.user.clone(), DATA)))
            });
            let folders: BTreeMap<_, _> = folders
                .map(|(path, owner, mode)| (path, (owner, mode)))
                .collect();
            let directory = |(path, (owner, mode))| Directory {
                path,
                owner,
                mode,
                marked: true,
            };
            let request = Install {
                marker: self.scene.marker.clone(),
                host_directory: self.directories[name].clone(),
                directories: folders.into_iter().map(directory).collect(),
                files: Vec::new(),
                units: Vec::new(),
                base,
            };
            let _: Installed = ask(&*hosts[name], "service-install", &request, bounds).await?;
            Ok::<_, DatabaseError>(())
        });
        try_join_all(each).await.map(|_| ())
    }

    /// Removes what an earlier deploy left on all hosts.
    pub(in crate::database) async fn clear_all(
        &self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let names = self.host_names().into_iter();
        let each = names.map(|name| self.clear(&*hosts[name], bounds));
        try_join_all(each).await.map(|_| ())
    }

    /// Removes what an earlier deploy left on a host, data and snapshots included.
    async fn clear(&self, host: &dyn Host, bounds: Bounds<'_>) -> Result<(), DatabaseError> {
        let request = Remove {
            removal: self.removal(host.name()),
            keep: Vec::new(),
            limit: STOPPING,
        };
        let _: Removed = ask(host, "service-remove", &request, bounds).await?;
        Ok(())
    }

    /// What belongs to the deployment on a host.
    #[must_use]
    pub fn removal(&self, host: &str) -> Removal {
        let marker = &self.scene.marker;
        let base = match self.here(host).next() {
            Some(_) => self.base(host),
            // On a host of its clients alone there are only results, and the folders that lead to them.
            None => self.base(host).join(RESULTS),
        };
        let roots = self.here(host).flat_map(roots);
        let elsewhere = roots.filter(|root| !root.starts_with(&base));
        Removal {
            unit_prefix: unit_prefix(marker),
            marker: marker.clone(),
            host_directory: self.directories[host].clone(),
            directories: elsewhere.collect::<BTreeSet<_>>().into_iter().collect(),
            base,
        }
    }

    /// What is installed on a host.
    fn request(&self, host: &str) -> Result<Install, DatabaseError> {
        let base = self.base(host);
        let mut directories: BTreeMap<PathBuf, Directory> = BTreeMap::new();
        let mut add = |path: &Path, owner: Option<&String>, mode: u32, marked: bool| {
            let directory = Directory {
                path: path.to_owned(),
                owner: owner.cloned(),
                mode,
                marked,
            };
            directories.insert(path.to_owned(), directory);
        };
        let (mut files, mut units) = (Vec::new(), Vec::new());
        for member in self.here(host) {
            for root in roots(member).filter(|root| !root.starts_with(&base)) {
                add(&root, None, FOLDER, true);
            }
            for parent in [
                Some(&member.deploy),
                member.data.as_ref(),
                Some(&member.log),
            ] {
                if let Some(parent) = parent.and_then(|path| path.parent()) {
                    add(parent, None, FOLDER, false);
                }
            }
            add(&member.deploy, None, FOLDER, false);
            add(&member.log, member.user.as_ref(), FOLDER, false);
            if let Some(data) = &member.data {
                add(data, member.user.as_ref(), DATA, true);
            }
            for file in self.files(member)? {
                if let Some(parent) = file.path.parent() {
                    add(parent, None, FOLDER, false);
                }
                files.push(installed_file(file, member));
            }
            for file in self.certificates(member)? {
                if let Some(parent) = file.path.parent() {
                    add(parent, None, FOLDER, false);
                }
                files.push(file);
            }
            units.push(UnitFile {
                name: member.unit.clone(),
                content: self.unit(member)?,
            });
        }
        Ok(Install {
            marker: self.scene.marker.clone(),
            host_directory: self.directories[host].clone(),
            base,
            directories: directories.into_values().collect(),
            files,
            units,
        })
    }

    /// Runs what fills an empty data directory. While it does, a mark lies beside the program: one that is there already tells
    /// of an initialisation that was cut short, which must end before its data is emptied.
    async fn initialise(
        &self,
        host: &dyn Host,
        member: &Member,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let (Some(data), role) = (&member.data, member.role()) else {
            return Ok(());
        };
        if role.initialise.is_empty() {
            return Ok(());
        }
        let mark = member.deploy.join(MARK);
        let mark = mark.to_string_lossy();
        let is_cut_short = plain(host, &["/usr/bin/test", "-e", &mark], bounds).await?;
        if is_cut_short.is_success() {
            let wait = WAIT.to_string();
            let ended = ["/usr/bin/flock", "--wait", &wait, &mark, "/usr/bin/true"];
            needed(&plain(host, &ended, bounds).await?)?;
            self.empty(host, data, bounds).await?;
        } else if !is_empty(host, data, bounds).await? {
            return Ok(());
        }
        needed(&plain(host, &["/usr/bin/touch", &mark], bounds).await?)?;
        for run in &role.initialise {
            if !self.applies(run.versions.as_deref()) {
                continue;
            }
            let command = self.texts(member, "a command", &run.command)?;
            let locked = ["/usr/bin/flock".to_owned(), mark.to_string()];
            let command: Vec<String> = locked.into_iter().chain(command).collect();
            let request = command_of(member, &command, run.limit);
            let ran = ask(host, "service-run", &request, bounds).await;
            let ran = ran
                .map_err(DatabaseError::from)
                .and_then(|ran| needed(&ran));
            if let Err(error) = ran {
                // Half of a data directory would be taken for a whole one the next time.
                self.empty(host, data, bounds).await?;
                return Err(error.of("cannot initialise the data of", member));
            }
        }
        needed(&plain(host, &["/usr/bin/rm", "-f", "--", &mark], bounds).await?)
    }

    /// Empties a data directory, which is its owner's again afterwards.
    async fn empty(
        &self,
        host: &dyn Host,
        data: &Path,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let place = MarkedDirectory {
            directory: data.to_owned(),
            marker: self.scene.marker.clone(),
        };
        let () = ask(host, "deploy", &place, bounds).await?;
        let request = self.request(host.name())?;
        let _: Installed = ask(host, "service-install", &request, bounds).await?;
        Ok(())
    }

    /// Has the program check its own configuration.
    async fn check(
        &self,
        host: &dyn Host,
        member: &Member,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let Some(run) = &member.role().check else {
            return Ok(());
        };
        if !self.applies(run.versions.as_deref()) {
            return Ok(());
        }
        let ran = self.run(host, member, run, bounds).await?;
        let unsupported = run.unsupported.as_deref();
        let unsupported = unsupported.and_then(|pattern| regex::Regex::new(pattern).ok());
        let knows = unsupported
            .is_none_or(|pattern| !pattern.is_match(&ran.stderr) && !pattern.is_match(&ran.stdout));
        let refused = run.refused.as_deref();
        let refused = refused.and_then(|pattern| regex::Regex::new(pattern).ok());
        let refuses = refused
            .is_some_and(|pattern| pattern.is_match(&ran.stderr) || pattern.is_match(&ran.stdout));
        if (ran.is_success() && !refuses) || !knows {
            return Ok(());
        }
        let error = DatabaseError::Other(said(&ran));
        Err(error.of("the configuration is refused by", member))
    }

    /// Runs a command of the pack to its end.
    pub(super) async fn run(
        &self,
        host: &dyn Host,
        member: &Member,
        run: &pack::Run,
        bounds: Bounds<'_>,
    ) -> Result<Ran, DatabaseError> {
        let command = self.texts(member, "a command", &run.command)?;
        let request = command_of(member, &command, run.limit);
        Ok(ask(host, "service-run", &request, bounds).await?)
    }
}

/// A command as it is run for a member.
pub(super) fn command_of(
    member: &Member,
    command: &[String],
    limit: units::Duration,
) -> crate::service::Run {
    let (program, args) = command
        .split_first()
        .map_or(("", &[][..]), |(p, a)| (&**p, a));
    crate::service::Run {
        program: PathBuf::from(program),
        args: args.to_vec(),
        env: BTreeMap::new(),
        directory: Some(member.deploy.clone()),
        owner: member.user.clone(),
        limit: limit.0,
        stdin: String::new(),
    }
}

/// What a command that failed said.
pub(super) fn said(ran: &Ran) -> String {
    let text = match ran.stderr.trim() {
        "" => ran.stdout.trim(),
        text => text,
    };
    let ended = match ran.status {
        Some(status) => format!("it ended with status {status}"),
        None => "it was killed".to_owned(),
    };
    if text.is_empty() {
        ended
    } else {
        format!("{ended}: {text}")
    }
}

fn installed_file(file: Rendered, member: &Member) -> File {
    File {
        path: file.path,
        content: file.content,
        mode: if file.executable { EXECUTABLE } else { PRIVATE },
        owner: member.user.clone(),
    }
}

/// The folders of a member that carry the deployment's marker: what lies in them is its own.
fn roots(member: &Member) -> impl Iterator<Item = PathBuf> + '_ {
    let up = |path: &Path| path.ancestors().nth(2).map(Path::to_owned);
    let own_log = member.log.starts_with(&member.deploy);
    let log = (!own_log).then(|| up(&member.log)).flatten();
    let data = member.data.as_deref().and_then(up);
    up(&member.deploy).into_iter().chain(data).chain(log)
}

/// Whether there is nothing in a folder but what is assay's own.
async fn is_empty(
    host: &dyn Host,
    folder: &Path,
    bounds: Bounds<'_>,
) -> Result<bool, DatabaseError> {
    let folder = folder.to_string_lossy();
    let find = ["/usr/bin/find", &folder, "-mindepth", "1"];
    let others = ["-not", "-name", ".assay-*", "-print", "-quit"];
    let ran = plain(host, &[&find[..], &others[..]].concat(), bounds).await?;
    needed(&ran)?;
    Ok(ran.stdout.trim().is_empty())
}

/// Runs a short command as whoever works there.
pub(super) async fn plain(
    host: &dyn Host,
    command: &[&str],
    bounds: Bounds<'_>,
) -> Result<Ran, DatabaseError> {
    let request = crate::service::Run {
        program: PathBuf::from(command.first().copied().unwrap_or_default()),
        args: command.iter().skip(1).map(ToString::to_string).collect(),
        env: BTreeMap::new(),
        directory: None,
        owner: None,
        limit: Duration::from_secs(WAIT + 60),
        stdin: String::new(),
    };
    Ok(ask(host, "service-run", &request, bounds).await?)
}

/// The error of a command that must succeed.
pub(super) fn needed(ran: &Ran) -> Result<(), DatabaseError> {
    if ran.is_success() {
        Ok(())
    } else {
        Err(DatabaseError::Other(said(ran)))
    }
}
