//! `assay lab`: hosts made on this machine, and what goes wrong with them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::args::Global;
use super::error::{Code, Failure};
use super::{output, signals};
use crate::host::lab::{FOLDER, Fault, HostState, Lab, LabError, Labs, Slowness, Status, Wanted};

/// The arguments of `assay lab`.
#[derive(Debug, ClapArgs)]
pub(super) struct LabArgs {
    /// Folder that holds the labs
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = FOLDER,
        env = "ASSAY_LABS",
        hide_env_values = true
    )]
    labs: PathBuf,
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Make a lab: hosts with their own addresses, systemd and sshd
    Up(Up),
    /// List all labs and how their hosts are
    List,
    /// Remove a lab, also one that was left half-made
    Down(Down),
    /// Drop all packets of a host: its peers see silence
    Cut(OneHost),
    /// Undo every fault of a host; a killed one is booted again with the same disk, address and host key
    Heal(OneHost),
    /// Stop all processes of a host where they are
    Pause(OneHost),
    /// Take the power of a host: all its processes are gone, its disk stays
    Kill(OneHost),
    /// Make the network of a host worse, in each direction
    Slow(Slow),
    /// Become a host of a lab
    #[command(hide = true)]
    Boot(Boot),
    /// Remove a lab when standard input ends, that is, when whoever started this is gone
    #[command(hide = true)]
    Watch(Watch),
}

#[derive(Debug, ClapArgs)]
struct Up {
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 4)]
    hosts: usize,
    /// Give each host an XFS of its own for `/data`, such as `xfs:8G`; only what is written takes space
    #[arg(long, value_name = "xfs:SIZE", value_parser = data)]
    data: Option<u64>,
    /// Name of the lab; its hosts are called NAME1, NAME2, ...
    #[arg(long, default_value = "lab")]
    name: String,
    /// Inventory to write (default: `inventories/lab-NAME.yaml`)
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
struct Down {
    /// Name of the lab
    #[arg(default_value = "lab")]
    name: String,
    /// Remove all labs
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

#[derive(Debug, ClapArgs)]
struct OneHost {
    /// The host: LAB/HOST, or the host alone where only one lab has it
    host: String,
}

#[derive(Debug, ClapArgs)]
struct Slow {
    /// The host: LAB/HOST, or the host alone where only one lab has it
    host: String,
    /// Each packet is this much later, such as `50ms`
    #[arg(long, value_name = "TIME", value_parser = delay, required_unless_present_any = ["rate", "loss"])]
    delay: Option<Duration>,
    /// Most bits in a second, such as `10mbit`
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<u64>,
    /// Part of the packets that is lost, such as `1%`
    #[arg(long, value_name = "PERCENT", value_parser = loss)]
    loss: Option<f64>,
}

#[derive(Debug, ClapArgs)]
struct Boot {
    folder: PathBuf,
    lab: String,
    host: String,
}

#[derive(Debug, ClapArgs)]
struct Watch {
    name: String,
}

/// Reads `xfs:8G`.
fn data(text: &str) -> Result<u64, String> {
    let size = text.strip_prefix("xfs:").ok_or("it begins with `xfs:`")?;
    let bytes: bytesize::ByteSize = size.parse()?;
    Ok(bytes.as_u64())
}

fn delay(text: &str) -> Result<Duration, String> {
    let delay = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if delay.is_zero() || delay > Duration::from_secs(60) {
        return Err("it is more than nothing and at most 60s".to_owned());
    }
    Ok(delay)
}

/// Reads `10mbit`, in bits a second.
fn rate(text: &str) -> Result<u64, String> {
    let units = [
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
    ];
    let lower = text.to_ascii_lowercase();
    let read = units.iter().find_map(|(unit, factor)| {
        let number: u64 = lower.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*factor)
    });
    let in_range = |rate: &u64| (8_000..=100_000_000_000).contains(rate);
    read.filter(in_range).ok_or_else(|| {
        "it is a whole number with `kbit`, `mbit` or `gbit`, from 8kbit to 100gbit".to_owned()
    })
}

fn loss(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').and_then(|n| n.trim().parse().ok());
    number
        .filter(|n| *n > 0.0 && *n <= 100.0)
        .ok_or_else(|| "it is more than 0% and at most 100%".to_owned())
}

pub(super) fn lab(global: &Global, args: &LabArgs) -> Result<Code, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::from_error(Code::Internal, &error))?;
    let labs = Labs::new(&args.labs, program);
    let fault = |host: &OneHost, fault: Fault| inflict(global, &labs, &host.host, &fault);
    match &args.command {
        LabCommand::Up(args) => up(global, labs, args),
        LabCommand::List => list(global, &labs),
        LabCommand::Down(args) => down(global, &labs, args),
        LabCommand::Cut(host) => fault(host, Fault::Cut),
        LabCommand::Heal(host) => fault(host, Fault::Heal),
        LabCommand::Pause(host) => fault(host, Fault::Pause),
        LabCommand::Kill(host) => fault(host, Fault::Kill),
        LabCommand::Slow(args) => {
            let slowness = Slowness {
                delay: args.delay,
                rate: args.rate,
                loss: args.loss,
            };
            inflict(global, &labs, &args.host, &Fault::Slow(slowness))
        }
        LabCommand::Boot(args) => Err(boot(args)),
        LabCommand::Watch(args) => watch(&labs, &args.name),
    }
}

fn up(global: &Global, labs: Labs, args: &Up) -> Result<Code, Failure> {
    let default = || Path::new("inventories").join(format!("lab-{}.yaml", args.name));
    let shown = args.inventory.clone().unwrap_or_else(default);
    let inventory =
        std::path::absolute(&shown).map_err(|error| Failure::from_error(Code::Usage, &error))?;
    let wanted = Wanted {
        name: args.name.clone(),
        hosts: args.hosts,
        data: args.data,
        inventory,
    };
    let stop = CancellationToken::new();
    let _signals =
        until_signal(&stop).map_err(|error| Failure::from_error(Code::Internal, &error))?;
    let labs = labs.until(stop);
    let say = |what: &str| {
        if !global.quiet {
            output::say(format_args!("lab `{}`: {what}", args.name));
        }
    };
    let lab = labs.up(&wanted, &say).map_err(failure)?;
    if global.json {
        output::json(&lab_json(&labs, &lab))?;
        return Ok(Code::Fine);
    }
    output::line(shown.display())?;
    if let (false, Some(first)) = (global.quiet, lab.hosts.first()) {
        let (key, known) = (labs.identity_file(&lab.name), labs.known_hosts(&lab.name));
        output::say(format_args!(
            "next: ssh -i {} -o UserKnownHostsFile={} root@{}; assay lab down {} removes it",
            key.display(),
            known.display(),
            first.address,
            lab.name
        ));
    }
    Ok(Code::Fine)
}

/// Cancels the token on the first request to stop, and exits on the second: `lab down` then removes what is left.
fn until_signal(stop: &CancellationToken) -> std::io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let inside = runtime.enter();
    signals::cancel(stop.clone())?;
    drop(inside);
    Ok(runtime)
}

fn lab_json(labs: &Labs, lab: &Lab) -> Value {
    let host = |host: &crate::host::lab::Entry| json!({"name": host.name, "address": host.address, "address6": host.address6});
    json!({
        "lab": lab.name,
        "inventory": lab.inventory,
        "identity_file": labs.identity_file(&lab.name),
        "known_hosts": labs.known_hosts(&lab.name),
        "hosts": lab.hosts.iter().map(host).collect::<Vec<_>>(),
    })
}

fn list(global: &Global, labs: &Labs) -> Result<Code, Failure> {
    if labs.folder().exists() {
        labs.check_rights().map_err(failure)?;
    }
    let all = labs.list().map_err(failure)?;
    if global.json {
        output::json(&all.iter().map(status_json).collect::<Vec<_>>())?;
        return Ok(Code::Fine);
    }
    if all.is_empty() {
        output::say("there are no labs");
        return Ok(Code::Fine);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["lab", "host", "state", "address", "inventory"]);
    for status in &all {
        table.add_rows(rows(status));
    }
    output::line(table.trim_fmt())?;
    Ok(Code::Fine)
}

/// What to say of a whole lab: that somebody works on it, or that a crash left it.
fn remark(status: &Status) -> Option<&'static str> {
    if status.is_busy {
        Some("being made or removed")
    } else if status.lab.is_none() || status.states.contains(&HostState::Absent) {
        Some("half-made")
    } else {
        None
    }
}

fn rows(status: &Status) -> Vec<[String; 5]> {
    let word = |state: &HostState| remark(status).map_or_else(|| state.to_string(), str::to_owned);
    let Some(lab) = &status.lab else {
        let remark = remark(status).unwrap_or_default().to_owned();
        return vec![[
            status.name.clone(),
            String::new(),
            remark,
            String::new(),
            String::new(),
        ]];
    };
    let pairs = lab.hosts.iter().zip(&status.states);
    pairs
        .map(|(host, state)| {
            [
                lab.name.clone(),
                host.name.clone(),
                word(state),
                host.address.to_string(),
                lab.inventory.display().to_string(),
            ]
        })
        .collect()
}

fn status_json(status: &Status) -> Value {
    let lab = status.lab.as_ref();
    let hosts = lab
        .iter()
        .flat_map(|lab| lab.hosts.iter())
        .zip(&status.states);
    let hosts = hosts.map(|(host, state)| {
        json!({"name": host.name, "address": host.address, "address6": host.address6, "state": state})
    });
    json!({
        "lab": status.name,
        "state": remark(status).unwrap_or("up"),
        "inventory": lab.map(|lab| &lab.inventory),
        "made": lab.map(|lab| lab.made),
        "hosts": hosts.collect::<Vec<_>>(),
    })
}

fn down(global: &Global, labs: &Labs, args: &Down) -> Result<Code, Failure> {
    labs.check_rights().map_err(failure)?;
    let names = if args.all {
        labs.all().map_err(failure)?
    } else {
        vec![args.name.clone()]
    };
    let (mut removed, mut last) = (Vec::new(), None::<Failure>);
    for name in &names {
        match labs.down(name, &|what| output::say(what)) {
            Ok(()) => {
                if !global.quiet && !global.json {
                    output::say(format_args!("lab `{name}` is removed"));
                }
                removed.push(name);
            }
            // One that cannot be removed does not keep the others.
            Err(error) => {
                if let Some(earlier) = last.replace(failure(error)) {
                    earlier.print();
                }
            }
        }
    }
    if let Some(failure) = last {
        return Err(failure);
    }
    if global.json {
        output::json(&json!({ "removed": removed }))?;
    } else if names.is_empty() {
        output::say("there are no labs");
    }
    Ok(Code::Fine)
}

fn inflict(global: &Global, labs: &Labs, host: &str, fault: &Fault) -> Result<Code, Failure> {
    labs.check_rights().map_err(failure)?;
    let (lab, host) = labs.find(host).map_err(failure)?;
    let state = labs.fault(&lab, &host, fault).map_err(failure)?;
    if global.json {
        output::json(&json!({ "lab": lab, "host": host, "state": state }))?;
    } else if !global.quiet {
        output::say(format_args!("{lab}/{host} is {state}"));
    }
    Ok(Code::Fine)
}

fn boot(args: &Boot) -> Failure {
    let program = PathBuf::from("/proc/self/exe");
    failure(Labs::new(&args.folder, program).boot(&args.lab, &args.host))
}

/// In a session of its own, so that what ends the caller's processes leaves it.
fn watch(labs: &Labs, name: &str) -> Result<Code, Failure> {
    labs.check_rights().map_err(failure)?;
    // It fails only where it is not needed.
    let _ = rustix::process::setsid();
    let mut rest = Vec::new();
    // Any end is one: nobody writes to it.
    let _ = std::io::stdin().read_to_end(&mut rest);
    match labs.down(name, &|_| ()) {
        Ok(()) | Err(LabError::None(_)) => Ok(Code::Fine),
        Err(error) => Err(failure(error)),
    }
}

/// The message, the exit code and the hint.
fn failure(error: LabError) -> Failure {
    let code = match error {
        LabError::Name(_)
        | LabError::Hosts(_)
        | LabError::Small(_)
        | LabError::Folder { .. }
        | LabError::None(_)
        | LabError::NoHost(_)
        | LabError::Ambiguous { .. }
        | LabError::Inventory { .. } => Code::Usage,
        LabError::Stopped => Code::Cancelled,
        LabError::Missing(_)
        | LabError::Exists(_)
        | LabError::Busy(_)
        | LabError::NoNetwork
        | LabError::Foreign { .. }
        | LabError::Tool { .. }
        | LabError::NotReady { .. }
        | LabError::State { .. }
        | LabError::Kernel(_)
        | LabError::Undead(_)
        | LabError::Description { .. }
        | LabError::Io { .. } => Code::Host,
    };
    let hint = match &error {
        LabError::Exists(name) => Some(format!(
            "`assay lab down {name}` removes it; `--name` gives another name"
        )),
        LabError::None(_) | LabError::NoHost(_) => {
            Some("`assay lab list` shows labs and hosts".to_owned())
        }
        LabError::Ambiguous { .. } => Some("say which one: LAB/HOST".to_owned()),
        LabError::Inventory { .. } => Some("choose another file with `--inventory`".to_owned()),
        LabError::Folder { .. } => Some("choose another folder with `--labs`".to_owned()),
        LabError::Busy(_) => Some("wait for it, or stop it with Ctrl-C".to_owned()),
        LabError::State { .. } => Some(
            "`assay lab heal` boots a killed host; `assay lab down` removes a half-made lab"
                .to_owned(),
        ),
        LabError::NoNetwork => Some("remove a route, or another lab".to_owned()),
        LabError::Undead(_) => Some("wait until they end, then `assay lab down` again".to_owned()),
        _ => None,
    };
    let failure = Failure::from_error(code, &error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rates_and_losses_are_read_with_their_units() {
        assert_eq!(data("xfs:8G"), Ok(8_000_000_000));
        assert!(data("8G").is_err() && data("xfs:x").is_err());
        assert_eq!(rate("10mbit"), Ok(10_000_000));
        assert_eq!(rate("8Kbit"), Ok(8_000));
        for wrong in ["10", "1kbit", "-1mbit", "1.5mbit", "999999999999gbit"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!(loss("1.5%"), Ok(1.5));
        for wrong in ["1", "0%", "101%", "NaN%"] {
            assert!(loss(wrong).is_err(), "{wrong}");
        }
        assert_eq!(delay("50ms"), Ok(Duration::from_millis(50)));
        assert!(delay("0s").is_err() && delay("2h").is_err());
    }
}
