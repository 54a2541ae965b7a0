//! Versions of programs that bear on results, asked of the package manager or of the programs themselves.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a program may take to say its version, and how often it is looked at.
const LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// A program, the packages that bring it, and how it says its version itself; nothing where it has no way to.
struct Known {
    name: &'static str,
    packages: &'static [&'static str],
    says: &'static [&'static str],
}

const PROGRAMS: [Known; 7] = [
    Known {
        name: "chrony",
        packages: &["chrony"],
        says: &["chronyd", "--version"],
    },
    Known {
        name: "haproxy",
        packages: &["haproxy"],
        says: &["haproxy", "-v"],
    },
    Known {
        name: "java",
        packages: &["default-jre-headless", "java-headless"],
        says: &["java", "-version"],
    },
    Known {
        name: "mariadb",
        packages: &["mariadb-server", "MariaDB-server"],
        says: &["mariadbd", "--version"],
    },
    Known {
        name: "numactl",
        packages: &["numactl"],
        says: &["numactl", "--version"],
    },
    Known {
        name: "postgresql",
        packages: &["postgresql", "postgresql-server"],
        says: &["postgres", "--version"],
    },
    Known {
        name: "sysbench",
        packages: &["sysbench"],
        says: &["sysbench", "--version"],
    },
];

/// Versions by program; `None` is a program that is not there. One that there is no way to ask is absent.
pub(super) fn versions() -> BTreeMap<String, Option<String>> {
    let installed = installed();
    let mut found = BTreeMap::new();
    for known in &PROGRAMS {
        let package = known.packages.iter().find_map(|p| installed.get(*p));
        let version = match package {
            Some(version) => Said::Text(version.clone()),
            None => ask(known.says),
        };
        match version {
            Said::Text(text) => {
                let version = version_in(&text).unwrap_or_else(|| "of unknown version".to_owned());
                found.insert(known.name.to_owned(), Some(version))
            }
            Said::NotThere => found.insert(known.name.to_owned(), None),
            Said::Nothing => None,
        };
    }
    if let Said::Text(text) = ask(&["getconf", "GNU_LIBC_VERSION"]) {
        found.insert("glibc".to_owned(), version_in(&text));
    }
    found
}

/// The first word that begins with a digit, of which a leading `v` is none: `sysbench 1.0.20`, `v9.1`.
fn version_in(text: &str) -> Option<String> {
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(['"', ',', 'v']));
    let mut numbers = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    numbers.next().map(str::to_owned)
}

/// The versions of the packages above that are installed, by package.
fn installed() -> BTreeMap<String, String> {
    let names = PROGRAMS.iter().flat_map(|known| known.packages);
    let query = |program: [&'static str; 4]| {
        let names = names.clone().copied();
        let words: Vec<&str> = program.into_iter().chain(names).collect();
        ask(&words)
    };
    let answer = match query([
        "dpkg-query",
        "-W",
        "-f",
        "${db:Status-Status} ${Package} ${Version}\n",
    ]) {
        Said::NotThere => query([
            "rpm",
            "-q",
            "--qf",
            "installed %{NAME} %{VERSION}-%{RELEASE}\n",
        ]),
        answer => answer,
    };
    let Said::Text(text) = answer else {
        return BTreeMap::new();
    };
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("installed "));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs
        .map(|(package, version)| (package.to_owned(), version.trim().to_owned()))
        .collect()
}

/// What the host runs in, and whether that is a container; both unknown where nothing tells.
pub(super) fn virtualisation() -> (Option<String>, Option<bool>) {
    match (
        ask(&["systemd-detect-virt"]),
        ask(&["systemd-detect-virt", "--container"]),
    ) {
        (Said::Text(kind), Said::Text(container)) => (
            Some(kind.trim().to_owned()),
            Some(container.trim() != "none"),
        ),
        _ => (None, None),
    }
}

/// What became of a question to a program.
enum Said {
    /// It answered.
    Text(String),
    /// There is no such program.
    NotThere,
    /// It failed or took too long.
    Nothing,
}

/// Runs a program and returns what it says, on either stream: `java -version` uses the other one.
fn ask(words: &[&str]) -> Said {
    let [program, args @ ..] = words else {
        return Said::Nothing;
    };
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Said::NotThere,
        Err(_) => return Said::Nothing,
    };
    let deadline = Instant::now() + LIMIT;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Said::Nothing;
        }
        std::thread::sleep(PAUSE);
    }
    let (mut text, mut errors) = (String::new(), String::new());
    let streams = (child.stdout.take(), child.stderr.take());
    if let (Some(out), Some(err)) = streams {
        let _ = out.take(64 << 10).read_to_string(&mut text);
        let _ = err.take(64 << 10).read_to_string(&mut errors);
    }
    match (text.trim(), errors.trim()) {
        ("", "") => Said::Nothing,
        ("", other) => Said::Text(other.to_owned()),
        (text, _) => Said::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let said = [
            "sysbench 1.0.20",
            "HAProxy version 2.6.12-1+deb12u2 2025/04/16 - https://haproxy.org/",
            "openjdk version \"17.0.15\" 2025-04-15",
            "glibc 2.36",
            "1:10.11.11-0+deb12u1",
        ];
        let found: Vec<_> = said.into_iter().filter_map(version_in).collect();
        let expected = [
            "1.0.20",
            "2.6.12-1+deb12u2",
            "17.0.15",
            "2.36",
            "1:10.11.11-0+deb12u1",
        ];
        assert_eq!(found, expected);
        assert_eq!(version_in("Usage: numactl"), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_one_that_does_not_answer() {
        assert!(matches!(ask(&["no-such-program-here"]), Said::NotThere));
        assert!(matches!(ask(&["true"]), Said::Nothing));
        let started = Instant::now();
        assert!(matches!(ask(&["sleep", "60"]), Said::Nothing));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
