//! What assay's way to hosts costs beside others: one command on many hosts, a file to a few, a dead host among many. The hosts
//! are sshds on loopback. `cargo bench --bench hosts -- exec|upload|dead` prints the tables of `docs/performance.md`.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the benchmark")]
#![expect(clippy::print_stdout, reason = "the tables are for people")]

mod dead;
mod exec;
mod fleet;
#[expect(
    dead_code,
    reason = "tests use the rest of it, a benchmark has no other crate"
)]
#[path = "../../tests/support/sshd.rs"]
mod sshd;
mod upload;

/// What the command line asks for.
struct Wanted {
    /// `exec`, `upload` or `dead`; everything if none is named.
    what: Option<String>,
    hosts: usize,
    rounds: usize,
    /// Where the hosts of an upload have their folders.
    to: std::path::PathBuf,
    /// The key exchange that every `ssh` is told to use.
    kex: Option<String>,
    /// An address that answers nothing at all.
    dead: Option<String>,
}

impl Wanted {
    fn of(mut args: impl Iterator<Item = String>) -> Self {
        let mut wanted = Self {
            what: None,
            hosts: 50,
            rounds: 5,
            to: std::env::temp_dir(),
            kex: None,
            dead: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} wants a value"));
            match arg.as_str() {
                // What cargo says.
                "--bench" => {}
                "--hosts" => wanted.hosts = value().parse().unwrap(),
                "--rounds" => wanted.rounds = value().parse().unwrap(),
                "--to" => wanted.to = value().into(),
                "--kex" => wanted.kex = Some(value()),
                "--dead" => wanted.dead = Some(value()),
                "exec" | "upload" | "dead" => wanted.what = Some(arg),
                _ => {
                    panic!(
                        "`{arg}` is none of exec, upload, dead, --hosts, --rounds, --to, --kex, --dead"
                    )
                }
            }
        }
        wanted
    }

    fn wants(&self, what: &str) -> bool {
        self.what.as_ref().is_none_or(|wanted| wanted == what)
    }
}

fn main() {
    let wanted = Wanted::of(std::env::args().skip(1));
    if wanted.wants("exec") {
        exec::measure(&wanted);
    }
    if wanted.wants("upload") {
        upload::measure(&wanted.to, wanted.rounds);
    }
    if wanted.wants("dead") {
        dead::measure(wanted.hosts, wanted.dead.as_deref());
    }
}

/// The least, the middle and the greatest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    ]
}

/// The machine's load just now: what else runs makes a measurement worth less.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
