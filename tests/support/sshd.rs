//! An sshd of a test's own on loopback, as whoever runs the test, with a home for assay's binary apart from the user's.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assay::host::{Binary, Folders, Settings, SshHost, Target};
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";
/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Sshd {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    daemon: Option<Child>,
}

/// Why there can be no sshd here that lets in whoever runs the tests.
pub(crate) fn missing() -> Option<String> {
    let folders = ["/usr/bin", "/bin", "/usr/local/bin"];
    let has = |program: &str| folders.iter().any(|f| Path::new(f).join(program).exists());
    if !Path::new(SSHD).exists() {
        return Some("no /usr/sbin/sshd (Debian package openssh-server)".to_owned());
    }
    if !(has("ssh") && has("ssh-keygen")) {
        return Some("no ssh or ssh-keygen (Debian package openssh-client)".to_owned());
    }
    let shell = login_shell();
    let lets_in = !shell.ends_with("/nologin") && !shell.ends_with("/false");
    (!lets_in).then(|| format!("the login shell {shell} lets nobody in"))
}

impl Sshd {
    /// Starts one with further lines of configuration.
    pub(crate) fn start(lines: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("sshd-")
            .tempdir_in("/tmp")
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        for key in ["host", "user"] {
            keygen(&path(key));
        }
        std::fs::copy(path("user.pub"), path("authorized")).unwrap();
        let mut sshd = Self {
            folder,
            port: 0,
            daemon: None,
        };
        sshd.configure(lines);
        sshd.up();
        sshd
    }

    /// Its configuration, but for the port; `lines` come first, and `sshd` takes the first value.
    pub(crate) fn configure(&self, lines: &str) {
        let folder = self.folder.path().display();
        let text = format!(
            "{lines}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\nStrictModes no\n\
             UsePAM no\nSetEnv XDG_CACHE_HOME={}\n",
            cache()
        );
        std::fs::write(self.folder.path().join("config"), text).unwrap();
    }

    /// Starts it, on its former port if it had one.
    pub(crate) fn up(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.try_up() {
            assert!(
                Instant::now() < deadline,
                "sshd does not start: {}",
                self.log()
            );
        }
    }

    fn try_up(&mut self) -> bool {
        if self.port == 0 {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            self.port = listener.local_addr().unwrap().port();
        }
        // Root's sshd wants it; a service would make it when it starts.
        if rustix::process::geteuid().is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let mut command = Command::new(SSHD);
        command
            .arg("-D")
            .arg("-f")
            .arg(self.folder.path().join("config"))
            .args(["-o", &format!("ListenAddress=127.0.0.1:{}", self.port)])
            .arg("-E")
            .arg(self.folder.path().join("log"))
            .stdin(Stdio::null());
        let mut daemon = command.spawn().expect("openssh-server is installed");
        loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let mut banner = String::new();
                let _ = BufReader::new(stream).read_line(&mut banner);
                if banner.starts_with("SSH-") {
                    self.daemon = Some(daemon);
                    return true;
                }
            }
            if daemon.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Ends it and every connection.
    pub(crate) fn down(&mut self) {
        let daemon = self.daemon.take().expect("it is up");
        let pids = descendants(daemon.id());
        end(daemon, &pids);
    }

    /// Its process and those of its connections.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let daemon = self.daemon.as_ref().expect("it is up");
        let mut pids = sessions(daemon.id());
        pids.push(daemon.id());
        pids
    }

    /// Ends its connections, not itself.
    pub(crate) fn cut(&self) {
        let daemon = self.daemon.as_ref().expect("it is up");
        for pid in sessions(daemon.id()) {
            kill("KILL", pid);
        }
    }

    /// Gives it another key.
    pub(crate) fn renew_key(&mut self) {
        self.down();
        for file in ["host", "host.pub"] {
            std::fs::remove_file(self.folder.path().join(file)).unwrap();
        }
        keygen(&self.folder.path().join("host"));
        self.up();
    }

    /// Gives it a key of another type as well, `host-TYPE`.
    pub(crate) fn add_key(&mut self, kind: &str) {
        self.down();
        let path = self.folder.path().join(format!("host-{kind}"));
        keygen_of(kind, &path);
        self.configure(&format!("HostKey {}", path.display()));
        self.up();
    }

    /// Leaves it with the key that it had first.
    pub(crate) fn drop_added_keys(&mut self) {
        self.down();
        self.configure("");
        self.up();
    }

    /// Gives it a certificate for its key as host `name`, by the key `authority` of its folder.
    pub(crate) fn certify(&mut self, authority: &str, name: &str) {
        let path = |name: &str| self.folder.path().join(name);
        let mut keygen = Command::new("ssh-keygen");
        keygen
            .args(["-q", "-h", "-I", "host", "-n", name, "-s"])
            .arg(path(authority))
            .arg(path("host.pub"));
        assert!(keygen.status().unwrap().success());
        let line = format!("HostCertificate {}", path("host-cert.pub").display());
        self.down();
        self.configure(&line);
        self.up();
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The SHA-256 fingerprint of its key.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(&self.folder.path().join("host.pub"))
    }

    /// It as a host with a pinned key, whose directory is below the test's.
    pub(crate) fn target(&self, name: &str) -> Target {
        let path = |name: &str| self.folder.path().join(name);
        std::fs::write(path("ssh_config"), "").unwrap();
        Target {
            name: name.to_owned(),
            address: "127.0.0.1".to_owned(),
            port: Some(self.port),
            identity_file: Some(path("user").display().to_string()),
            host_keys: vec![self.fingerprint()],
            directory: path(&format!("data-{name}")).display().to_string(),
            ssh_config: Some(path("ssh_config")),
            ..Target::default()
        }
    }

    pub(crate) fn folders(&self) -> Folders {
        let cache = self.folder.path().join("control");
        let runtime = self.folder.path().to_owned();
        Folders {
            runtime,
            cache,
            home: None,
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            folders: self.folders(),
            owner: "a test".to_owned(),
            patience: PATIENCE,
        }
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> SshHost {
        let host = SshHost::connect(self.target("kv1"), binary(), self.settings()).await;
        host.unwrap_or_else(|error| panic!("{error:?}\n{}", self.log()))
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            let pids = descendants(daemon.id());
            end(daemon, &pids);
        }
    }
}

/// Where hosts keep the program under test; they share it, so that it is not sent to each.
pub(crate) fn cache() -> &'static str {
    concat!(env!("CARGO_TARGET_TMPDIR"), "/hosts")
}

/// The program under test, for hosts.
pub(crate) fn binary() -> Binary {
    static BINARY: std::sync::OnceLock<Binary> = std::sync::OnceLock::new();
    let read = || Binary::read(PathBuf::from(env!("CARGO_BIN_EXE_assay")), false).unwrap();
    BINARY.get_or_init(read).clone()
}

pub(crate) fn keygen(path: &Path) {
    keygen_of("ed25519", path);
}

fn keygen_of(kind: &str, path: &Path) {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", kind, "-N", "", "-f"]).arg(path);
    assert!(keygen.status().unwrap().success());
}

pub(crate) fn fingerprint(public: &Path) -> String {
    let output = Command::new("ssh-keygen")
        .arg("-lf")
        .arg(public)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().nth(1).unwrap().to_owned()
}

/// The login shell of whoever runs the tests.
pub(crate) fn login_shell() -> String {
    let user = rustix::process::getuid().as_raw().to_string();
    let output = Command::new("getent").args(["passwd", &user]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.trim().rsplit(':').next().unwrap().to_owned()
}

/// The processes that serve a daemon's connections: its children of the same program.
fn sessions(daemon: u32) -> Vec<u32> {
    descendants(daemon)
        .into_iter()
        .filter(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.starts_with("sshd"))
        })
        .collect()
}

fn descendants(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    children
        .flat_map(|pid| std::iter::once(pid).chain(descendants(pid)))
        .collect()
}

fn end(mut daemon: Child, others: &[u32]) {
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    for pid in others {
        kill("KILL", *pid);
    }
}

/// Sends a signal; the process may have just ended.
pub(crate) fn kill(signal: &str, pid: u32) {
    let mut kill = Command::new("kill");
    let _ = kill
        .args([&format!("-{signal}"), &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}
