//! Real database servers, each with a folder and a port of its own. They end with the test.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use assay::probe::{self, Check, Server, Until};
use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::certificates::Certificates;
use super::{LONG, PASSWORD, here, request};

/// A server that runs.
pub(super) struct Running {
    child: Child,
    folder: TempDir,
    pub(super) port: u16,
    pub(super) certificates: Certificates,
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        // Both end at once, with the processes that PostgreSQL has for its connections.
        let _ = kill_process(pid, Signal::QUIT);
        let _ = self.child.wait();
    }
}

impl Running {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits, with a probe, until it answers.
    pub(super) async fn answers(&self, server: &Server) {
        let what = Check::Sql {
            request: request(server, &["SELECT 1"]),
            conditions: Vec::new(),
        };
        let until = Until::new(what, LONG);
        let stop = CancellationToken::new();
        let held = probe::until(&here(), &until, &stop, &mut |_| {}).await;
        held.unwrap();
    }
}

/// The account that a server runs as when tests run as root, which servers refuse.
#[derive(Clone, Copy)]
struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// `None` if the tests' own account will do.
    fn of(name: &str) -> Option<Self> {
        if !getuid().is_root() {
            return None;
        }
        let id = |flag: &str| {
            let output = Command::new("id").args([flag, name]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.trim().parse().unwrap()
        };
        Some(Self {
            user: id("-u"),
            group: id("-g"),
        })
    }
}

/// What a server is started from: an empty folder, a port, certificates that its account can read.
struct Place {
    folder: TempDir,
    port: u16,
    account: Option<Account>,
    certificates: Certificates,
}

impl Place {
    fn new(account: &str) -> Self {
        let place = Self {
            folder: TempDir::new().unwrap(),
            port: super::free_port(),
            account: Account::of(account),
            certificates: Certificates::make(),
        };
        for name in ["ca.pem", "server.pem", "server.key"] {
            std::fs::copy(place.certificates.path(name), place.path(name)).unwrap();
            place.give(&place.path(name));
        }
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(place.path("server.key"), private).unwrap();
        place.give(place.folder.path());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        self.give(&path);
        path.display().to_string()
    }

    fn give(&self, path: &Path) {
        if let Some(account) = self.account {
            chown(path, Some(account.user), Some(account.group)).unwrap();
        }
    }

    /// A program as the server's account, quiet.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(account) = self.account {
            command.uid(account.user).gid(account.group);
        }
        let log = std::fs::File::options();
        let log = log.clone().create(true).append(true).open(self.path("log"));
        let log = log.unwrap();
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        command
    }

    fn prepare(&self, command: &mut Command) {
        let status = command.status().unwrap();
        let log = || std::fs::read_to_string(self.path("log")).unwrap();
        assert!(status.success(), "{command:?}: {}", log());
    }

    fn start(self, command: &mut Command) -> Running {
        Running {
            child: command.spawn().unwrap(),
            folder: self.folder,
            port: self.port,
            certificates: self.certificates,
        }
    }
}

/// MariaDB with a user `probe`, and one `certified` who has to show a certificate.
pub(super) fn mariadb() -> Result<Running, String> {
    let install = found("mariadb-install-db", "mariadb-server")?;
    let program = found("mariadbd", "mariadb-server")?;
    let place = Place::new("mysql");
    let data = format!("--datadir={}", place.path("data").display());
    place.prepare(place.command(&install).args([
        "--no-defaults",
        &data,
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    ]));
    let users = format!(
        "DROP USER IF EXISTS ''@localhost;\n\
         CREATE USER probe@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO probe@'%';\n\
         CREATE USER certified@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE X509;\n"
    );
    let users = place.file("users.sql", &users);
    let socket = place.path("socket");
    let mut command = place.command(&program);
    command
        .args(["--no-defaults", &data, "--skip-name-resolve"])
        .args([
            "--bind-address=127.0.0.1",
            "--innodb-flush-log-at-trx-commit=0",
        ])
        .arg(format!("--port={}", place.port))
        .arg(format!("--socket={}", socket.display()))
        .arg(format!("--init-file={users}"));
    for (option, file) in [
        ("ca", "ca.pem"),
        ("cert", "server.pem"),
        ("key", "server.key"),
    ] {
        command.arg(format!("--ssl-{option}={}", place.path(file).display()));
    }
    Ok(place.start(&mut command))
}

/// PostgreSQL with a superuser `probe`, and one `certified` who has to show a certificate.
pub(super) fn postgres() -> Result<Running, String> {
    let folder = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let programs = folder.flatten().map(|version| version.path().join("bin"));
    let programs = programs
        .max()
        .ok_or("no PostgreSQL (Debian package postgresql)")?;
    let place = Place::new("postgres");
    let data = place.path("data").display().to_string();
    let password = place.file("password", PASSWORD);
    let initdb = programs.join("initdb");
    place.prepare(place.command(&initdb).args([
        "--no-sync",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--username=probe",
        "--auth=scram-sha-256",
        &format!("--pwfile={password}"),
        &data,
    ]));
    let access = "local all all scram-sha-256\n\
                  hostssl all certified all cert map=any\n\
                  host all all all scram-sha-256\n";
    place.file("data/pg_hba.conf", access);
    place.file("data/pg_ident.conf", "any probe certified\n");
    let mut command = place.command(&programs.join("postgres"));
    command
        .args([
            "-D",
            &data,
            "-h",
            "127.0.0.1",
            "-p",
            &place.port.to_string(),
        ])
        .arg("-k")
        .arg(place.folder.path());
    for (option, file) in [
        ("ca", "ca.pem"),
        ("cert", "server.pem"),
        ("key", "server.key"),
    ] {
        let path = place.path(file);
        command.args(["-c", &format!("ssl_{option}_file={}", path.display())]);
    }
    command.args(["-c", "ssl=on", "-c", "fsync=off"]);
    Ok(place.start(&mut command))
}

/// A program where Debian has it.
fn found(program: &str, package: &str) -> Result<PathBuf, String> {
    let places = ["/usr/sbin", "/usr/bin"].map(|folder| Path::new(folder).join(program));
    let there = places.into_iter().find(|path| path.exists());
    there.ok_or_else(|| format!("no {program} (Debian package {package})"))
}
