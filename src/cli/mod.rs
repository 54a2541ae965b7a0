//! The command line: one file for each command. Only this module prints, reads the environment, or decides exit codes.

mod agent;
mod args;
mod check;
mod cluster;
mod difference;
mod error;
mod examine;
mod generate;
mod hosts;
mod hosts_check;
mod hosts_exec;
mod hosts_facts;
mod hosts_trust;
mod import;
mod init;
mod inputs;
mod lab;
mod list;
mod output;
mod packs;
mod plan;
mod progress;
mod reach;
mod report;
mod resume;
mod run;
mod runs;
mod session;
mod show;
mod signals;
mod status;
mod text;
mod verify;

use std::process::ExitCode;

use clap::Parser as _;

pub use self::args::command;
use self::args::{Args, Command, OneRun};
use self::error::{Code, Failure};

/// Parses the arguments, runs the command, prints its error, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let code = if error.use_stderr() {
                Code::Usage
            } else {
                Code::Fine
            };
            // When even printing fails there is nobody left to tell.
            let _ = error.print();
            return code.into();
        }
    };
    text::set_colour(args.global.color);
    text::set_logging(args.global.verbose, args.global.quiet);
    let json = args.global.json;
    match dispatch(args) {
        Ok(code) => code.into(),
        Err(failure) => {
            if json {
                // When standard output is gone, standard error still tells.
                let _ = output::json(&failure.to_json());
            }
            failure.print();
            failure.code.into()
        }
    }
}

fn dispatch(args: Args) -> Result<Code, Failure> {
    let global = args.global;
    match args.command {
        Command::Init(args) => init::init(&global, &args),
        Command::Import(args) => import::import(&global, &args.command),
        Command::Check(args) => check::check(&global, &args),
        Command::Plan(args) => plan::plan(&global, &args),
        Command::Run(args) => run::run(&global, &args),
        Command::Resume(args) => resume::resume(&global, &args),
        Command::Status(args) => match &args.of {
            Some(file) if cluster::is_experiment(file) => cluster::status(&global, &args),
            _ => status::status(&global, &OneRun { run: args.of }),
        },
        Command::Deploy(args) => cluster::deploy(&global, &args),
        Command::Start(args) => cluster::start(&global, &args),
        Command::Stop(args) => cluster::stop(&global, &args),
        Command::Destroy(args) => cluster::destroy(&global, &args),
        Command::Packs(args) => packs::packs(&global, &args.command),
        Command::List => list::list(&global),
        Command::Show(args) => show::show(&global, &args),
        Command::Report(args) => report::report(&global, &args),
        Command::Verify(args) => verify::verify(&global, &args),
        Command::Hosts(args) => hosts::hosts(&global, &args.command),
        Command::Lab(args) => lab::lab(&global, &args),
        Command::Schema(args) => generate::schema(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
        Command::Agent(args) => Ok(agent::agent(&args)),
    }
}
