//! The systemd that runs a deployment's units: the host's own for root, a user's own for anybody else.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ServiceError;
use super::error::Tried;
use super::folder::Folder;
use super::program::{Ran, finish};
use super::state::{PROPERTIES, Shown};
use super::tail::last_lines;

/// Where root's units are.
const UNITS: &str = "/etc/systemd/system";
/// Where a user's units are, in its home.
const OWN_UNITS: &str = ".config/systemd/user";
/// The longest that one call of a tool may take. systemd itself gives up on a call after 90 s at the most.
const LIMIT: Duration = Duration::from_secs(100);

/// A systemd.
#[derive(Clone, Debug)]
pub struct Systemd {
    /// Where its units are.
    units: PathBuf,
    systemctl: PathBuf,
    /// The runtime folder of the user whose own it is.
    user: Option<PathBuf>,
}

impl Systemd {
    /// The one that runs the units of whoever this process works for, whose home is `home`.
    ///
    /// # Errors
    /// The host has none at work, or a user other than root has none that stays when its last session ends.
    pub fn of_this_host(home: Option<&Path>) -> Result<Self, ServiceError> {
        if !Path::new("/run/systemd/system").is_dir() {
            return Err(ServiceError::NoSystemd);
        }
        let user = rustix::process::geteuid();
        if user.is_root() {
            return Ok(Self::at(UNITS, "systemctl"));
        }
        let missing = |missing: &str| ServiceError::NoUserSystemd {
            missing: missing.to_owned(),
        };
        let home = home.ok_or_else(|| missing("the user has no home"))?;
        let runtime = PathBuf::from(format!("/run/user/{}", user.as_raw()));
        if !runtime.join("systemd/private").exists() {
            return Err(missing("none is at work"));
        }
        let lingers = user_name(user.as_raw())
            .is_some_and(|name| Path::new("/var/lib/systemd/linger").join(name).exists());
        if !lingers {
            return Err(missing("the user's one does not linger"));
        }
        Ok(Self {
            user: Some(runtime),
            ..Self::at(home.join(OWN_UNITS), "systemctl")
        })
    }

    /// The one that runs the units whose names begin with `prefix`; `None` if there is none of either.
    ///
    /// # Errors
    /// There are unit files of such names, and no systemd that they could be taken from.
    pub(super) fn of_units(
        home: Option<&Path>,
        prefix: &str,
    ) -> Result<Option<Self>, ServiceError> {
        let why = match Self::of_this_host(home) {
            Ok(systemd) => return Ok(Some(systemd)),
            Err(why) => why,
        };
        let units = match (rustix::process::geteuid().is_root(), home) {
            (true, _) => PathBuf::from(UNITS),
            (false, Some(home)) => home.join(OWN_UNITS),
            (false, None) => return Ok(None),
        };
        let names = fs::read_dir(units).into_iter().flatten().flatten();
        let mut names = names.map(|entry| entry.file_name());
        match names.any(|name| name.to_string_lossy().starts_with(prefix)) {
            true => Err(why),
            false => Ok(None),
        }
    }

    /// One whose unit files are in `units`, reached by the program `systemctl`.
    #[must_use]
    pub fn at(units: impl Into<PathBuf>, systemctl: impl Into<PathBuf>) -> Self {
        Self {
            units: units.into(),
            systemctl: systemctl.into(),
            user: None,
        }
    }

    /// The folder of its unit files, if it is there.
    pub(super) fn folder(&self) -> Result<Option<Folder>, ServiceError> {
        match Folder::open(&self.units) {
            Err(ServiceError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            folder => folder.map(Some),
        }
    }

    /// The folder of its unit files, made if it is not there.
    pub(super) fn make_folder(&self) -> Result<Folder, ServiceError> {
        fs::create_dir_all(&self.units).tried("make", &self.units)?;
        Folder::open(&self.units)
    }

    /// Reads all units anew.
    pub(super) fn reload(&self) -> Result<(), ServiceError> {
        self.systemctl(&["daemon-reload"], &[]).map(drop)
    }

    /// Whether it has not read some unit's file since that changed.
    pub(super) fn is_behind(&self, units: &[&str]) -> Result<bool, ServiceError> {
        let behind = self.systemctl(&["show", "--property=NeedDaemonReload"], units)?;
        Ok(behind.lines().any(|line| line == "NeedDaemonReload=yes"))
    }

    /// Forgets that units failed. One that did not, or is not there, is fine.
    /// Refuses a unit whose file is none of assay's.
    pub(super) fn refuse_others(&self, units: &[&str]) -> Result<(), ServiceError> {
        for unit in units {
            let text = std::fs::read(self.units.join(unit)).unwrap_or_default();
            if !text.is_empty() && super::header::of(&text).is_none() {
                return Err(ServiceError::refused(
                    *unit,
                    "there is a unit of somebody else by this name",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn forget_failures(&self, units: &[&str]) {
        let _ = self.systemctl(&["reset-failed"], units);
    }

    /// Begins to start units.
    pub(super) fn begin_start(&self, units: &[&str]) -> Result<(), ServiceError> {
        self.systemctl(&["start", "--no-block"], units).map(drop)
    }

    /// Begins to stop units.
    pub(super) fn begin_stop(&self, units: &[&str]) -> Result<(), ServiceError> {
        self.systemctl(&["stop", "--no-block"], units).map(drop)
    }

    /// Kills the processes of units. Some may be gone already.
    pub(super) fn kill(&self, units: &[&str]) {
        let _ = self.systemctl(&["kill", "--signal=KILL"], units);
    }

    /// What it says of units, in their order; also of those that are not there.
    pub(super) fn show(&self, units: &[&str]) -> Result<Vec<Shown>, ServiceError> {
        let properties = format!("--property={}", PROPERTIES.join(","));
        let exact = ["show", "--timestamp=us+utc", &properties];
        let text = match self.systemctl(&exact, units) {
            // It came with version 247; without it, times are in seconds.
            Err(ServiceError::Tool { said, .. }) if said.contains("timestamp") => {
                self.systemctl(&["show", &properties], units)?
            }
            text => text?,
        };
        let shown: Vec<Shown> = text.trim().split("\n\n").map(Shown::read).collect();
        if shown.len() == units.len() {
            return Ok(shown);
        }
        Err(ServiceError::Tool {
            what: "systemctl show".to_owned(),
            said: format!("it says something of {} units", shown.len()),
        })
    }

    /// The last lines of a unit's journal, or why there are none.
    pub(super) fn journal(&self, unit: &str, lines: usize) -> String {
        let mut sync = self.command(OsStr::new("journalctl"));
        sync.arg("--sync");
        // What a program said just before its end may still be on its way.
        let _ = finish(sync, &[], LIMIT);
        let mut journal = self.command(OsStr::new("journalctl"));
        let of = if self.user.is_some() {
            "--user-unit"
        } else {
            "--unit"
        };
        journal.args([of, unit, "--quiet", "--no-pager", "--output=cat"]);
        journal.arg(format!("--lines={lines}"));
        match finish(journal, &[], LIMIT) {
            Ok(ran) if ran.is_success() => last_lines(&ran.stdout, lines),
            Ok(ran) => format!("cannot be read: {}", ran.stderr.trim()),
            Err(error) => format!("cannot be read: {error}"),
        }
    }

    fn systemctl(&self, words: &[&str], units: &[&str]) -> Result<String, ServiceError> {
        let mut command = self.command(self.systemctl.as_os_str());
        if self.user.is_some() {
            command.arg("--user");
        }
        command.args(words).args(["--no-pager", "--"]).args(units);
        let Ran {
            status,
            stdout,
            stderr,
            ..
        } = finish(command, &[], LIMIT)?;
        match status {
            Some(0) => Ok(stdout),
            _ => Err(ServiceError::Tool {
                what: format!("systemctl {}", words[0]),
                said: stderr.trim().to_owned(),
            }),
        }
    }

    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.env("TZ", "UTC").env("LC_ALL", "C");
        if let Some(runtime) = &self.user {
            command.env("XDG_RUNTIME_DIR", runtime);
        }
        command
    }
}

fn user_name(uid: u32) -> Option<String> {
    let mut id = Command::new("id");
    id.args(["-un", &uid.to_string()]);
    let ran = finish(id, &[], LIMIT).ok()?;
    ran.is_success().then(|| ran.stdout.trim().to_owned())
}
