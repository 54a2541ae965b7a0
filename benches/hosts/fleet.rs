//! Many hosts: an sshd of its own and a home of its own for each, known to every tool by one `ssh_config`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::sshd::Sshd;

pub(crate) struct Fleet {
    pub(crate) hosts: Vec<Sshd>,
    folder: TempDir,
}

impl Fleet {
    /// Starts so many; their folders and homes are below `to`.
    pub(crate) fn start(hosts: usize, to: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("fleet-").tempdir_in(to);
        let folder = folder.unwrap();
        let hosts: Vec<Sshd> = (1..=hosts)
            .map(|number| {
                let home = folder.path().join(name(number));
                std::fs::create_dir(&home).unwrap();
                // A home without start-up files of a shell: what these cost is not measured here.
                let home = home.display();
                Sshd::start(&format!("SetEnv HOME={home} XDG_CACHE_HOME={home}/.cache"))
            })
            .collect();
        let fleet = Self { hosts, folder };
        fleet.describe();
        fleet
    }

    /// `ssh_config`, the list of known hosts, and the inventories of each tool.
    fn describe(&self) {
        let (mut config, mut known, mut ours) = (String::new(), String::new(), String::new());
        let (mut ansible, mut pyinfra) = ("[all]\n".to_owned(), String::new());
        for (host, name) in self.hosts.iter().zip(self.names()) {
            let key = std::fs::read_to_string(host.folder.path().join("host.pub")).unwrap();
            let user = host.folder.path().join("user");
            known.push_str(&format!("[127.0.0.1]:{} {key}", host.port));
            config.push_str(&format!(
                "Host {name}\n  HostName 127.0.0.1\n  Port {}\n  IdentityFile {}\n",
                host.port,
                user.display()
            ));
            ours.push_str(&format!("  {name}: {{}}\n"));
            ansible.push_str(&format!("{name}\n"));
            pyinfra.push_str(&format!("    \"{name}\",\n"));
        }
        let known_hosts = self.path("known_hosts");
        config.push_str(&format!(
            "Host *\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  IdentitiesOnly yes\n",
            known_hosts.display()
        ));
        let ssh_config = self.path("ssh_config");
        let write = |path: &Path, text: String| std::fs::write(path, text).unwrap();
        write(&known_hosts, known);
        write(
            &self.path("hosts.yaml"),
            format!("ssh_config: {}\nhosts:\n{ours}", ssh_config.display()),
        );
        write(&self.path("hosts.ini"), ansible);
        write(
            &self.path("hosts.py"),
            format!(
                "hosts = ([\n{pyinfra}], {{\"ssh_config_file\": \"{}\", \"ssh_known_hosts_file\": \"{}\"}})\n",
                ssh_config.display(),
                known_hosts.display()
            ),
        );
        write(&ssh_config, config);
    }

    /// Lets a host's name lead to another address.
    pub(crate) fn move_to(&self, host: &str, address: &str) {
        self.set(&format!("Host {host}\n  HostName {address}"));
    }

    /// Puts lines before all others of `ssh_config`.
    pub(crate) fn set(&self, lines: &str) {
        let path = self.path("ssh_config");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, format!("{lines}\n{text}")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        (1..=self.hosts.len()).map(name)
    }

    pub(crate) fn home(&self, host: &str) -> PathBuf {
        self.path(host)
    }

    /// The program under test, with this fleet's hosts and a runtime folder of its own.
    pub(crate) fn assay(&self, args: &[&str]) -> Command {
        let mut assay = Command::new(env!("CARGO_BIN_EXE_assay"));
        assay
            .args(args)
            .arg("-i")
            .arg(self.path("hosts.yaml"))
            .current_dir(self.folder.path());
        assay
    }

    /// A shell's script in which `$SSH` is `ssh` with the configuration and `$HOSTS` the names, a line each.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        let names: Vec<String> = self.names().collect();
        let ssh = format!("ssh -F {}", self.path("ssh_config").display());
        shell
            .args(["-c", script])
            .env("SSH", ssh)
            .env("HOSTS", names.join("\n"))
            .current_dir(self.folder.path());
        shell
    }

    /// Ends the masters whose sockets are in a folder, and removes it.
    pub(crate) fn end_masters(&self, folder: &Path) {
        for socket in std::fs::read_dir(folder).into_iter().flatten() {
            let mut ssh = Command::new("ssh");
            ssh.args(["-O", "exit", "-S"]).arg(socket.unwrap().path());
            assert!(ssh.arg("any").output().unwrap().status.success());
        }
        let _ = std::fs::remove_dir_all(folder);
    }
}

pub(crate) fn name(number: usize) -> String {
    format!("kv{number:02}")
}
