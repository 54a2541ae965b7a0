//! The arguments of all commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, CommandFactory as _, Parser, Subcommand, ValueEnum};

/// Tells, with evidence, whether one database set-up is faster than another.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 fine, 1 internal error, 2 usage or spec, 3 host or deployment, \
    4 rounds failed or invalid, 130 cancelled."
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(super) struct Global {
    /// Folder that holds the runs
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "artifacts",
        env = "ASSAY_ARTIFACTS",
        hide_env_values = true
    )]
    pub(super) artifacts: PathBuf,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Say more; twice, everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(super) verbose: u8,
    /// Say only results and errors
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// When to use colours (`NO_COLOR` is respected)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Colour,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Colour {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a commented experiment to start from
    Init(Init),
    /// Make an experiment and an inventory from a file of another tool
    Import(Import),
    /// Check an experiment and its inventory: all errors at once
    Check(Experiment),
    /// Print what a run would do, with estimates of time and disk
    Plan(Experiment),
    /// Run an experiment: load, snapshot, rounds, report
    Run(Run),
    /// Finish a run that was stopped, killed or crashed
    Resume(Resume),
    /// Say how far a run is, also while it goes on; of an experiment, how its clusters are
    Status(Status),
    /// Put an experiment's clusters on their hosts, without starting them
    Deploy(Deployments),
    /// Start a deployed cluster, and set and check its tunables
    Start(Deployments),
    /// Stop clusters
    Stop(Deployments),
    /// Remove clusters from their hosts: all that carries their marker
    Destroy(Destroy),
    /// List, show and check the packs of systems
    Packs(Packs),
    /// List all runs
    List,
    /// Print the results of a run
    Show(OneRun),
    /// Make the report of a run in other formats or places
    Report(Report),
    /// Check every file of a run against its checksums
    Verify(OneRun),
    /// Look at hosts, mend them, and work on many at once
    Hosts(Hosts),
    /// Make hosts on this machine, for trials and tests
    Lab(super::lab::LabArgs),
    /// Print the JSON Schema of experiments or inventories
    Schema(Schema),
    /// Print the completions of a shell
    Completions(Completions),
    /// Print the man page
    Man(Man),
    /// Do work on this host for another assay process
    #[command(hide = true)]
    Agent(Agent),
}

#[derive(Debug, ClapArgs)]
pub(super) struct Init {
    /// The file to write
    #[arg(default_value = "experiment.yaml")]
    pub(super) file: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Import {
    #[command(subcommand)]
    pub(super) command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Turn a topology.yaml or meta.yaml of TiUP into an experiment and an inventory
    Tiup(ImportTiup),
}

#[derive(Debug, ClapArgs)]
pub(super) struct ImportTiup {
    /// The topology.yaml, or the meta.yaml that TiUP keeps of a cluster
    pub(super) file: PathBuf,
    /// The experiment's name (default: the file's, or the cluster's)
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The version of TiDB, which a topology.yaml does not say
    #[arg(long, value_name = "VERSION")]
    pub(super) version: Option<String>,
    /// The experiment to write; the inventory lies beside it (default: NAME.yaml and NAME-hosts.yaml)
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Take several TiKV on a host without labels, as `tiup cluster deploy` does with the same option
    #[arg(long)]
    pub(super) no_labels: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Experiment {
    /// The experiment file
    pub(super) experiment: PathBuf,
    #[command(flatten)]
    pub(super) changes: Changes,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Run {
    #[command(flatten)]
    pub(super) experiment: Experiment,
    /// Begin although pre-flight fails; what it found is recorded with the run
    #[arg(long)]
    pub(super) ignore_preflight: bool,
    #[command(flatten)]
    pub(super) claim: Claim,
}

/// How hosts are taken.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(super) struct Claim {
    /// Take hosts from a run that seems dead: that has not been heard of for half a minute
    #[arg(long)]
    pub(super) break_lease: bool,
    /// How long a host that is lost during the run is tried before it is given up
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    pub(super) patience: Duration,
}

/// What changes an experiment from the command line.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct Changes {
    /// Inventory to use instead of the one that the experiment names
    #[arg(short, long, value_name = "FILE")]
    pub(super) inventory: Option<PathBuf>,
    /// Override a value, such as `rounds.duration=30s`; may be given several times
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) overrides: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Resume {
    /// The run: its folder, its id, or the beginning of it (default: the newest)
    pub(super) run: Option<String>,
    /// Go on although the experiment's file has changed since, and record the difference
    #[arg(long)]
    pub(super) accept_changed_spec: bool,
    /// Go on although the host or the program is another one, and record the difference
    #[arg(long)]
    pub(super) accept_changed_host: bool,
    #[command(flatten)]
    pub(super) claim: Claim,
    /// Go on although pre-flight fails
    #[arg(long)]
    pub(super) ignore_preflight: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Hosts {
    #[command(subcommand)]
    pub(super) command: HostsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum HostsCommand {
    /// Compare hosts with what a system wants of them, and mend what can be mended
    Check(HostsCheck),
    /// Print what hosts are and how fast
    Facts(HostsFacts),
    /// Run one command on many hosts; equal outputs are printed once
    Exec(HostsExec),
    /// Show the keys of hosts, and make them known when you say so
    Trust(HostsTrust),
}

/// Which hosts.
#[derive(Debug, ClapArgs)]
pub(super) struct Which {
    /// An experiment (`*.yaml`) whose hosts count, and the names of hosts and groups (default: all of the inventory, or
    /// this machine)
    #[arg(value_name = "EXPERIMENT|HOST|GROUP")]
    pub(super) targets: Vec<String>,
    #[command(flatten)]
    pub(super) changes: Changes,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HostsCheck {
    #[command(flatten)]
    pub(super) which: Which,
    /// System whose wants are checked (default: the experiment's, else sqlite, which wants least)
    #[arg(long, value_name = "NAME")]
    pub(super) system: Option<String>,
    /// Make the safe fixes, and list them; they last until the next boot
    #[arg(long)]
    pub(super) apply: bool,
    /// Put back every value that `--apply` changed
    #[arg(long, conflicts_with_all = ["apply", "system"])]
    pub(super) revert: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HostsFacts {
    #[command(flatten)]
    pub(super) which: Which,
    /// Measure CPU, memory, disk and network as well: about a second a host
    #[arg(long)]
    pub(super) calibrate: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HostsExec {
    #[command(flatten)]
    pub(super) which: Which,
    /// The longest that the command may take on a host
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    pub(super) timeout: Duration,
    /// The longest that it may print nothing
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) silence: Option<Duration>,
    /// How many hosts are worked on at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(super) at_once: usize,
    /// Print each line when it comes, after its host's name
    #[arg(long, conflicts_with = "json")]
    pub(super) stream: bool,
    /// The program and its arguments, each one word; for a shell's language: `-- sh -c '...'`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HostsTrust {
    #[command(flatten)]
    pub(super) which: Which,
    /// Make new keys known without asking; changed ones are refused all the same
    #[arg(short, long)]
    pub(super) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Status {
    /// The run: its folder, its id, or the beginning of it (default: the newest); or an experiment (`*.yaml`)
    #[arg(value_name = "RUN|EXPERIMENT")]
    pub(super) of: Option<String>,
    /// The variants of the experiment (default: all)
    #[arg(long, value_name = "NAME")]
    pub(super) variant: Vec<String>,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// Deployments of an experiment.
#[derive(Debug, ClapArgs)]
pub(super) struct Deployments {
    #[command(flatten)]
    pub(super) experiment: Experiment,
    /// The variants that are meant (default: all)
    #[arg(long, value_name = "NAME")]
    pub(super) variant: Vec<String>,
    /// Take hosts from a run that seems dead: that has not been heard of for half a minute
    #[arg(long)]
    pub(super) break_lease: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Destroy {
    #[command(flatten)]
    pub(super) deployments: Deployments,
    /// List every path and unit that would be removed, and remove nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Leave data and snapshots where they are
    #[arg(long)]
    pub(super) keep_data: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Packs {
    #[command(subcommand)]
    pub(super) command: PacksCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum PacksCommand {
    /// List the systems that have a pack
    List(PackFolder),
    /// Print what a pack says, or what its templates can use
    Show(PackShow),
    /// Check packs: all problems at once, with file and line
    Check(PackCheck),
}

/// Where packs are looked for.
#[derive(Debug, ClapArgs)]
pub(super) struct PackFolder {
    /// Folder whose `templates/` goes before the built-in packs, as that of an experiment does
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) beside: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(super) struct PackShow {
    /// The system
    pub(super) system: String,
    #[command(flatten)]
    pub(super) folder: PackFolder,
    /// Print what templates can use, role by role
    #[arg(long)]
    pub(super) context: bool,
    /// Print one file of the pack
    #[arg(long, value_name = "NAME", conflicts_with = "context")]
    pub(super) file: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct PackCheck {
    /// The systems (default: all)
    pub(super) systems: Vec<String>,
    #[command(flatten)]
    pub(super) folder: PackFolder,
}

#[derive(Debug, ClapArgs)]
pub(super) struct OneRun {
    /// The run: its folder, its id, or the beginning of it (default: the newest)
    pub(super) run: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Report {
    /// The run: its folder, its id, or the beginning of it (default: the newest)
    pub(super) run: Option<String>,
    /// Formats, separated by commas (default: markdown, with `--json` json)
    #[arg(short, long, value_delimiter = ',')]
    pub(super) format: Vec<Format>,
    /// Folder to write the files to; without it one format is printed
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Folder whose `report/report.html.j2` replaces the built-in page
    #[arg(long, value_name = "DIR")]
    pub(super) templates: Option<PathBuf>,
}

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One self-contained page
    Html,
    /// Markdown
    #[value(alias = "md")]
    Markdown,
    /// One row a round and metric
    Csv,
    /// All rows and summaries
    Json,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Schema {
    /// What the schema is of
    #[arg(default_value = "experiment")]
    pub(super) of: SchemaOf,
}

/// The files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// Experiment files
    Experiment,
    /// Inventory files
    Inventory,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Completions {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Man {
    /// The command whose page is wanted (default: assay itself)
    pub(super) command: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Agent {
    /// The kind of work
    pub(super) name: String,
    /// The folder that it is in, for work that has one
    pub(super) folder: Option<PathBuf>,
}

/// The whole command line, for completions and man pages.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}
