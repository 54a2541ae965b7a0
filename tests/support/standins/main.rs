//! Stand-ins of pd-server, tikv-server and tidb-server for tests: one program that acts by the name it is called with.
//!
//! They take the real flags, answer on the real paths and keep files like the real ones in their data directories; the
//! rows are kept by a MariaDB. The version is read from the end of the program's own file (`tests/support/mirror.rs`), and
//! `misbehaviour.rs` says how they can be told to go wrong.

mod answers;
mod args;
mod cluster;
mod config;
mod engine;
mod http;
mod misbehaviour;
mod mysql;
mod pd;
mod process;
mod raft;
mod regions;
mod release;
mod sql;
mod tidb;
mod tikv;
mod tls;
mod variables;

use std::process::ExitCode;

use args::Arguments;
use release::Release;

/// An error of a stand-in, as it is printed and logged.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the three have in common at their start.
pub(crate) struct Start {
    pub(crate) component: &'static str,
    pub(crate) release: Release,
    pub(crate) arguments: Arguments,
}

fn main() -> ExitCode {
    let mut words = std::env::args();
    let called = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    if words.first().is_some_and(|word| word == sql::CHILD) {
        return sql::become_child(&words[1..]);
    }
    let name = called.rsplit('/').next().unwrap_or_default();
    let outcome = match name {
        "pd-server" => run("pd-server", words, pd::FLAGS, pd::run),
        "tikv-server" => run("tikv-server", words, tikv::FLAGS, tikv::run),
        "tidb-server" => run("tidb-server", words, tidb::FLAGS, tidb::run),
        other => {
            Err(format!("called as `{other}`, not as pd-server, tikv-server or tidb-server").into())
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            process::say(&format!("stand-in {name}: {error}"));
            ExitCode::FAILURE
        }
    }
}

type Run = fn(Start) -> Result<ExitCode, Failure>;

fn run(
    component: &'static str,
    words: Vec<String>,
    flags: &[args::Flag],
    run: Run,
) -> Result<ExitCode, Failure> {
    let release = Release::of_this_program()?;
    let arguments = match Arguments::parse(component, flags, &words, &release) {
        Ok(arguments) => arguments,
        Err(refused) => {
            process::say(&refused.text);
            return Ok(ExitCode::from(refused.code));
        }
    };
    if arguments.has("V") || arguments.has("version") {
        process::print(&release.described(component));
        return Ok(ExitCode::SUCCESS);
    }
    run(Start {
        component,
        release,
        arguments,
    })
}
