//! The MariaDB below the first store: made, started, stopped, and gone when the stand-in is gone.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::mysql::Client;
use crate::process::{info, say};

/// The first word of the call that becomes the child.
pub(crate) const CHILD: &str = "stand-in-child";

/// The account that the stand-ins themselves use.
pub(crate) const ACCOUNT: &str = "tidb_stand_in";

/// What a new database gets: the accounts and tables of TiDB. Clients come by a socket, so that `localhost` is where they
/// all are; only accounts of `%` are left.
const FIRST: &[&str] = &[
    "DROP USER IF EXISTS ''@'localhost'",
    "CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY ''",
    "GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION",
    "CREATE USER IF NOT EXISTS 'tidb_stand_in'@'%' IDENTIFIED BY ''",
    "GRANT ALL PRIVILEGES ON *.* TO 'tidb_stand_in'@'%' WITH GRANT OPTION",
    "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> '%')",
    "FLUSH PRIVILEGES",
    "CREATE DATABASE IF NOT EXISTS test",
    "CREATE TABLE IF NOT EXISTS mysql.tidb (VARIABLE_NAME VARCHAR(64) NOT NULL PRIMARY KEY, \
     VARIABLE_VALUE VARCHAR(1024), COMMENT VARCHAR(1024))",
    "CREATE TABLE IF NOT EXISTS mysql.global_variables (VARIABLE_NAME VARCHAR(64) NOT NULL PRIMARY KEY, \
     VARIABLE_VALUE VARCHAR(16383))",
];

/// A running MariaDB.
pub(crate) struct Sql {
    child: Child,
    /// The name of its abstract socket: no file that a snapshot would meet or a kill would leave.
    socket: String,
}

impl Sql {
    /// Starts the database in `folder`, which is made first if need be.
    pub(crate) async fn start(folder: &Path, error_log: &Path) -> Result<Self, Failure> {
        if !folder.exists() {
            install(folder)?;
        }
        let socket = format!(
            "tikv-stand-in-{}-{:x}",
            std::process::id(),
            crate::process::random()
        );
        let mut sql = Self {
            child: spawn(folder, error_log, &socket)?,
            socket,
        };
        sql.wait_until_it_answers(error_log).await?;
        if !folder.join(PREPARED).exists() {
            sql.prepare().await?;
            std::fs::write(folder.join(PREPARED), "")?;
        }
        Ok(sql)
    }

    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    async fn wait_until_it_answers(&mut self, error_log: &Path) -> Result<(), Failure> {
        let limit = Instant::now() + Duration::from_secs(120);
        while connect(&self.socket).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(
                    format!("mariadbd ended with {status}; see {}", error_log.display()).into(),
                );
            }
            if Instant::now() > limit {
                return Err(
                    format!("mariadbd does not answer; see {}", error_log.display()).into(),
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn prepare(&self) -> Result<(), Failure> {
        let mut client = Client::connect(connect(&self.socket).await?, "root").await?;
        for statement in FIRST {
            client
                .query(statement)
                .await
                .map_err(|error| format!("{statement}: {error}"))?;
        }
        Ok(())
    }

    /// An error once the database has ended by itself; never returns before.
    pub(crate) async fn watch(&mut self) -> Failure {
        loop {
            match self.child.try_wait() {
                Ok(None) => sleep(Duration::from_secs(1)).await,
                Ok(Some(status)) => return format!("mariadbd ended with {status}").into(),
                Err(error) => return error.into(),
            }
        }
    }

    /// Stops it and waits until it is gone.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or("the child has no number")?;
        info("stopping mariadbd");
        kill_process(pid, Signal::TERM)?;
        let limit = Instant::now() + Duration::from_secs(60);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > limit {
                self.child.kill()?;
                self.child.wait()?;
                return Err("mariadbd had to be killed".into());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Says that the accounts and tables were made.
const PREPARED: &str = "stand-in-prepared";

/// Connects to the database behind an abstract socket.
pub(crate) async fn connect(socket: &str) -> std::io::Result<UnixStream> {
    UnixStream::connect(format!("\0{socket}")).await
}

/// Makes a data directory, whole or not at all.
fn install(folder: &Path) -> Result<(), Failure> {
    // A name of its own: the program of a start that was cut short may still be writing.
    let new = folder.with_extension(format!("new-{}", std::process::id()));
    info("making a database directory with mariadb-install-db");
    let mut command = Command::new(program("mariadb-install-db")?);
    command.args([
        "--no-defaults",
        "--skip-test-db",
        "--skip-name-resolve",
        "--auth-root-authentication-method=normal",
    ]);
    command.args(["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"]);
    command
        .arg(format!("--datadir={}", new.display()))
        .args(as_root());
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        return Err(format!("mariadb-install-db failed: {said}").into());
    }
    Ok(std::fs::rename(&new, folder)?)
}

fn spawn(folder: &Path, error_log: &Path, socket: &str) -> Result<Child, Failure> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(CHILD)
        .arg(std::process::id().to_string())
        .arg(program("mariadbd")?);
    command.args([
        "--no-defaults",
        "--skip-networking",
        "--skip-log-bin",
        "--skip-name-resolve",
    ]);
    command.args([
        "--innodb-buffer-pool-size=32M",
        "--innodb-log-file-size=8M",
        "--innodb-flush-log-at-trx-commit=2",
    ]);
    command.args([
        "--performance-schema=OFF",
        "--key-buffer-size=1M",
        "--aria-pagecache-buffer-size=8M",
    ]);
    command.args([
        "--max-connections=4096",
        // A balancer that only looks whether the port is open is no news.
        "--log-warnings=1",
        "--character-set-server=utf8mb4",
        "--collation-server=utf8mb4_bin",
    ]);
    command.args([
        format!("--datadir={}", folder.display()),
        format!("--socket=@{socket}"),
    ]);
    command
        .arg(format!("--log-error={}", error_log.display()))
        .args(as_root());
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

/// Root stays root: a change of user would undo that the child dies with its parent.
fn as_root() -> Option<&'static str> {
    rustix::process::geteuid()
        .is_root()
        .then_some("--user=root")
}

fn program(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = [
        "/usr/local/sbin",
        "/usr/sbin",
        "/usr/local/bin",
        "/usr/bin",
        "/usr/libexec",
    ]
    .map(PathBuf::from);
    let mut places = std::env::split_paths(&path)
        .chain(more)
        .map(|folder| folder.join(name));
    places
        .find(|path| path.is_file())
        .ok_or_else(|| format!("{name} is not installed (Debian: mariadb-server)").into())
}

/// Becomes the program that `words` name after the number of the parent, and dies when that dies.
pub(crate) fn become_child(words: &[String]) -> ExitCode {
    let [parent, program, arguments @ ..] = words else {
        say("stand-in: the call of the child lacks words");
        return ExitCode::FAILURE;
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        say(&format!(
            "stand-in: cannot tie the child to its parent: {error}"
        ));
        return ExitCode::FAILURE;
    }
    // The parent may have ended before the line above.
    if getppid()
        .map(|pid| pid.as_raw_nonzero().to_string())
        .as_ref()
        != Some(parent)
    {
        return ExitCode::FAILURE;
    }
    let error = Command::new(program).args(arguments).exec();
    say(&format!("stand-in: cannot run {program}: {error}"));
    ExitCode::FAILURE
}
