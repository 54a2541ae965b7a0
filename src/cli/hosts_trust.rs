//! `assay hosts trust`: shows the keys that hosts present, and makes new ones known when the user says so. It is the only
//! way in which assay makes a key known.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::args::{Global, HostsTrust};
use super::error::{Code, Failure};
use super::reach::{AT_ONCE, Reach};
use super::session::block_on;
use super::{hosts, output};
use crate::host::{HostError, Jump, Look, Presented, SshHost, Standing, Target, fan_out, remember};

pub(super) fn trust(global: &Global, args: &HostsTrust) -> Result<Code, Failure> {
    let hosts::Meant {
        inventory, names, ..
    } = hosts::meant(&args.which)?;
    let reach = Reach::of(&inventory)?;
    let mut trusted = Trusted::default();
    // A host behind others is asked when those are known.
    let mut targets: BTreeMap<usize, Vec<Target>> = BTreeMap::new();
    for target in names.iter().filter_map(|name| reach.target(name)) {
        targets.entry(jumps(&target)).or_default().push(target);
    }
    for targets in targets.into_values() {
        let looks = block_on(async { Ok(look(&reach, &targets).await) })?;
        let seen: Vec<Seen> = targets.into_iter().zip(looks).collect();
        if !global.json {
            show(&seen)?;
        }
        trusted.accept(global, args, seen)?;
    }
    if global.json {
        output::json(&trusted.rows)?;
    }
    trusted.code()
}

/// A host and the key that it presents.
type Seen = (Target, Result<Look, HostError>);

/// How many hosts lie before it.
fn jumps(target: &Target) -> usize {
    match &target.jump {
        Some(Jump::Host(jump)) => jumps(jump) + 1,
        Some(Jump::Other(_)) | None => 0,
    }
}

async fn look(reach: &Reach<'_>, targets: &[Target]) -> Vec<Result<Look, HostError>> {
    let works: Vec<_> = targets
        .iter()
        .map(|target| {
            let (target, folders) = (target.clone(), reach.folders().clone());
            async move { SshHost::look_at_key(&target, &folders).await }
        })
        .collect();
    fan_out(works, AT_ONCE, |_, _| {}).await
}

fn show(seen: &[Seen]) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["host", "address", "key", "fingerprint", "state"]);
    for (target, look) in seen {
        let Ok(look) = look else { continue };
        let state = match &look.standing {
            Standing::Known if target.host_keys.is_empty() => "known".to_owned(),
            Standing::Known => "pinned".to_owned(),
            Standing::New(_) => "new".to_owned(),
            Standing::Changed { known } => format!("CHANGED, known is {}", known.join(", ")),
            Standing::Revoked => "REVOKED".to_owned(),
        };
        table.add_row([
            target.name.clone(),
            target.address.clone(),
            look.kind.clone(),
            look.fingerprint.clone(),
            state,
        ]);
    }
    if table.row_count() > 0 {
        output::line(table.trim_fmt())?;
    }
    for (_, look) in seen {
        if let Err(error) = look {
            output::say(output::clean(&Failure::from_host(error).message()));
        }
    }
    Ok(())
}

/// What became of the hosts.
#[derive(Default)]
struct Trusted {
    rows: Vec<Value>,
    changed: usize,
    revoked: usize,
    unreached: usize,
    declined: usize,
}

impl Trusted {
    /// Makes new keys known if that is wanted, and notes what became of all.
    fn accept(
        &mut self,
        global: &Global,
        args: &HostsTrust,
        seen: Vec<Seen>,
    ) -> Result<(), Failure> {
        let looks = seen.iter().filter_map(|(_, look)| look.as_ref().ok());
        let new: Vec<(&Path, &Presented)> = looks.filter_map(new_key).collect();
        let accepted = !new.is_empty() && (args.yes || asked(global, new.len())?);
        if accepted {
            write(&new)?;
            if !global.json {
                output::say(format_args!("{} made known", counted(new.len())));
            }
        }
        for (target, look) in &seen {
            match look {
                Ok(look) => self.note(target, look, accepted),
                Err(error) => {
                    self.unreached += 1;
                    let error = Failure::from_host(error).message();
                    self.rows
                        .push(json!({ "host": target.name, "error": error }));
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, target: &Target, look: &Look, accepted: bool) {
        let (known, before) = match &look.standing {
            Standing::Known => (true, &[][..]),
            Standing::New(_) => {
                self.declined += usize::from(!accepted);
                (accepted, &[][..])
            }
            Standing::Changed { known } => {
                self.changed += 1;
                (false, known.as_slice())
            }
            Standing::Revoked => {
                self.revoked += 1;
                (false, &[][..])
            }
        };
        self.rows.push(json!({
            "host": target.name,
            "address": target.address,
            "kind": look.kind,
            "fingerprint": look.fingerprint,
            "known": known,
            "revoked": look.standing == Standing::Revoked,
            "known_before": before,
            "list": look.list,
        }));
    }

    fn code(&self) -> Result<Code, Failure> {
        if self.revoked > 0 {
            let them = if self.revoked == 1 { "it" } else { "them" };
            let message = format!(
                "{} revoked; nothing was made known for {them}",
                counted(self.revoked)
            );
            return Err(Failure::new(Code::Host, message).hint(
                "whoever has a revoked key may answer in the host's place: give the host another key, then come back",
            ));
        }
        if self.changed > 0 {
            let message = format!(
                "{} changed; nothing was made known for them",
                counted(self.changed)
            );
            return Err(Failure::new(Code::Host, message).hint(
                "somebody may be answering in their place. Of a host that was installed anew, remove the old key with \
                 `ssh-keygen -R`, or its `host_key` from the inventory, then come back",
            ));
        }
        if self.unreached > 0 || self.declined > 0 {
            return Ok(Code::Host);
        }
        Ok(Code::Fine)
    }
}

fn counted(keys: usize) -> String {
    match keys {
        1 => "1 key".to_owned(),
        n => format!("{n} keys"),
    }
}

/// Asks whether new keys are to be made known.
fn asked(global: &Global, new: usize) -> Result<bool, Failure> {
    if global.json || !std::io::stdin().is_terminal() {
        let message = format!("{} not known, and nobody to ask", counted(new));
        let hint =
            "compare the fingerprints with those of the hosts, then `assay hosts trust --yes`";
        return Err(Failure::new(Code::Host, message).hint(hint));
    }
    output::say(format_args!(
        "make {} known? Only if the fingerprints are those of your hosts [y/N]",
        counted(new)
    ));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|e| Failure::from_error(Code::Internal, &e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A key that may be made known, and the list for it.
fn new_key(look: &Look) -> Option<(&Path, &Presented)> {
    match &look.standing {
        Standing::New(presented) => Some((&look.list, presented)),
        Standing::Known | Standing::Changed { .. } | Standing::Revoked => None,
    }
}

fn write(new: &[(&Path, &Presented)]) -> Result<(), Failure> {
    let mut lists: BTreeMap<&Path, Vec<_>> = BTreeMap::new();
    for (list, presented) in new {
        lists.entry(list).or_default().push(*presented);
    }
    for (list, keys) in lists {
        remember(list, &keys).map_err(|error| {
            let message = format!("cannot write `{}`: {error}", list.display());
            Failure::new(Code::Usage, message)
        })?;
    }
    Ok(())
}
