//! A real MariaDB server of a test's own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::skipped;

/// The longest that it may take to answer.
const LIMIT: Duration = Duration::from_secs(120);

/// A server on a port of 127.0.0.1, without a name server, whose `root` comes by the socket. It ends with this value.
pub(crate) struct MariaDb {
    server: Child,
    folder: TempDir,
    pub(crate) port: u16,
}

impl MariaDb {
    /// Starts one; without the programs it says that the test is skipped.
    pub(crate) fn start() -> Option<Self> {
        let server = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd"].map(PathBuf::from);
        let server = server.into_iter().find(|path| path.exists());
        let Some(server) = server.filter(|_| Path::new("/usr/bin/mariadb-install-db").exists())
        else {
            skipped("MariaDB is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let user = is_root.then_some("--user=mysql");
        if is_root {
            let mut chown = Command::new("chown");
            let chown = chown.arg("mysql").arg(folder.path()).status();
            assert!(chown.unwrap().success());
        }
        let data = format!("--datadir={}", folder.path().join("data").display());
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--skip-test-db", &data]);
        install.args(["--auth-root-authentication-method=normal"]);
        let installed = install.args(user).output().unwrap();
        let said = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "{said}");
        let port = free_port();
        let own = |name: &str| folder.path().join(name).display().to_string();
        let mut command = Command::new(server);
        command.args(["--no-defaults", "--bind-address=127.0.0.1", &data]);
        command.args([
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
        ]);
        command.args([
            format!("--socket={}", own("sock")),
            format!("--pid-file={}", own("pid")),
            format!("--port={port}"),
        ]);
        command
            .args(user)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Self {
            server: command.spawn().unwrap(),
            folder,
            port,
        };
        let deadline = Instant::now() + LIMIT;
        while started.sql("SELECT 1").is_err() {
            assert!(Instant::now() < deadline, "mariadbd does not answer");
            std::thread::yield_now();
        }
        Some(started)
    }

    /// What statements of `root` give, or why they do not.
    pub(crate) fn sql(&self, statements: &str) -> Result<String, String> {
        let socket = self.folder.path().join("sock");
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-uroot", "-N", "-e", statements])
            .arg(format!("--socket={}", socket.display()))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
