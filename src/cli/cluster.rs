//! `assay deploy`, `start`, `stop`, `destroy` and `status` of an experiment: the steps of a run by hand. Each may be repeated.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::args::{Deployments, Destroy, Experiment, Global, Status};
use super::error::{Code, Failure};
use super::reach::{Hosts, Purpose, Reach, packages, with_hosts};
use super::{examine, inputs, output, signals, text};
use crate::database::{self, Database, DatabaseError, InstanceStatus, Parts, Work};
use crate::host::{Bounds, Claim, Facts};
use crate::pack::{Packs, Programs};
use crate::plan::{Deployment, Plan};
use crate::runner;
use crate::service::Removed;
use crate::spec::{Engine, Spec};
use crate::units::Bytes;

/// The longest that looking at a cluster may take.
const LOOKING: Duration = Duration::from_secs(60);

/// Whether a word names an experiment and no run.
pub(super) fn is_experiment(word: &str) -> bool {
    let path = Path::new(word);
    path.extension().is_some_and(|e| e == "yaml" || e == "yml") && path.is_file()
}

/// What a command is about.
struct Meant {
    spec: Spec,
    packs: Packs,
    plan: Plan,
}

impl Meant {
    /// The deployments that are named, or all.
    fn of(experiment: &Experiment, variants: &[String]) -> Result<Self, Failure> {
        let (spec, packs) = inputs::load(&experiment.experiment, &experiment.changes)?;
        let mut plan = inputs::plan_of(&spec, &packs)?;
        let known: Vec<String> = plan.deployments.iter().map(|d| d.id.clone()).collect();
        if let Some(unknown) = variants.iter().find(|name| !known.contains(name)) {
            let message = format!("there is no variant `{unknown}`");
            return Err(Failure::new(Code::Usage, message)
                .hint(format!("the variants are {}", known.join(", "))));
        }
        plan.deployments
            .retain(|d| variants.is_empty() || variants.contains(&d.id));
        for deployment in &plan.deployments {
            let pack = packs.get(&deployment.system)?;
            if pack.form.programs == Programs::Builtin {
                let message = format!("{} is not deployed: it is part of assay", pack.name);
                return Err(Failure::new(Code::Usage, message).hint("`assay run` does all of it"));
            }
            if deployment.deploy.engine == Engine::External {
                let message = format!("`{}` is there already; assay only uses it", deployment.id);
                return Err(Failure::new(Code::Usage, message)
                    .hint("`deploy.engine` says that the cluster is external"));
            }
        }
        Ok(Self { spec, packs, plan })
    }

    /// Refuses what the hosts cannot take.
    async fn judge(&self, hosts: &Hosts) -> Result<(), Failure> {
        let mut facts: BTreeMap<String, Facts> = BTreeMap::new();
        for (name, host) in hosts {
            facts.insert(name.clone(), examine::ask_folder(&**host, "facts").await?);
        }
        inputs::judge(&self.spec, &self.plan, &self.packs, &|host| {
            let facts = facts.get(host);
            (
                facts.and_then(|f| f.cpus),
                facts.and_then(|f| f.memory_bytes),
            )
        })
    }

    /// Does something with each deployment, one after the other. The hosts are held unless nothing is changed.
    fn each<T>(
        &self,
        claim: Option<Claim<'_>>,
        mut work: impl for<'w> AsyncFnMut(
            &'w dyn Database,
            &'w Deployment,
            Work<'w>,
        ) -> Result<T, DatabaseError>,
    ) -> Result<BTreeMap<String, T>, Failure> {
        let reach = Reach::of(&self.spec.inventory)?;
        let packages = packages()?;
        let folder = self.plan.hosts();
        with_hosts(&reach, folder, Purpose::command(), async |hosts: &Hosts| {
            let stop = CancellationToken::new();
            signals::cancel(stop.clone()).map_err(|e| Failure::from_error(Code::Internal, &e))?;
            let _leases = match claim {
                Some(claim) => runner::hold(&self.plan, hosts, claim).await?,
                None => Vec::new(),
            };
            if claim.is_some() {
                self.judge(hosts).await?;
            }
            let mut done = BTreeMap::new();
            for deployment in &self.plan.deployments {
                let parts = Parts {
                    experiment: &self.plan.experiment,
                    deployment,
                    packs: &self.packs,
                    hosts,
                    packages: &packages,
                    reveal: &|text| self.spec.secrets.reveal(text),
                };
                let cluster = database::of(parts)?;
                let limit = deployment
                    .prepare
                    .first()
                    .map_or(LOOKING, |step| step.limit.0);
                let work_with = Work {
                    hosts,
                    bounds: Bounds { limit, stop: &stop },
                    say: &mut |what: &str| {
                        tracing::info!("{}: {what}", deployment.id);
                    },
                };
                let came_to = work(&*cluster, deployment, work_with).await;
                let hide = |error: DatabaseError| {
                    let failure = Failure::from(error);
                    failure.hidden(&|text| self.spec.secrets.hide(text))
                };
                done.insert(deployment.id.clone(), came_to.map_err(hide)?);
            }
            Ok(done)
        })
    }
}

fn claim(args: &Deployments, owner: &'static str) -> Claim<'static> {
    Claim {
        owner,
        break_dead: args.break_lease,
    }
}

pub(super) fn deploy(global: &Global, args: &Deployments) -> Result<Code, Failure> {
    let meant = Meant::of(&args.experiment, &args.variant)?;
    let claim = claim(args, "assay deploy");
    let done = meant.each(Some(claim), async |cluster, _, work| {
        cluster.deploy(false, work).await
    })?;
    told(global, &done, "is deployed")
}

pub(super) fn start(global: &Global, args: &Deployments) -> Result<Code, Failure> {
    let meant = Meant::of(&args.experiment, &args.variant)?;
    if meant.plan.deployments.len() > 1 {
        let names: Vec<&str> = meant.plan.deployments.iter().map(|d| &*d.id).collect();
        let message = "variants take turns: they use the same hosts and ports".to_owned();
        return Err(Failure::new(Code::Usage, message).hint(format!(
            "name one: `--variant {}`",
            names.join("` or `--variant ")
        )));
    }
    let claim = claim(args, "assay start");
    let done = meant.each(Some(claim), async |cluster, _, work| {
        let effective = cluster.start(work).await?;
        Ok(json!(effective))
    })?;
    told(global, &done, "runs")
}

pub(super) fn stop(global: &Global, args: &Deployments) -> Result<Code, Failure> {
    let meant = Meant::of(&args.experiment, &args.variant)?;
    let claim = claim(args, "assay stop");
    let done = meant.each(Some(claim), async |cluster, _, work| {
        cluster.stop(work).await?;
        Ok(Value::Null)
    })?;
    told(global, &done, "is stopped")
}

fn told(global: &Global, done: &BTreeMap<String, Value>, what: &str) -> Result<Code, Failure> {
    if global.json {
        output::json(done)?;
    } else if !global.quiet {
        for name in done.keys() {
            output::line(format_args!("{name} {what}"))?;
        }
    }
    Ok(Code::Fine)
}

pub(super) fn destroy(global: &Global, args: &Destroy) -> Result<Code, Failure> {
    let of = &args.deployments;
    let meant = Meant::of(&of.experiment, &of.variant)?;
    let claim = (!args.dry_run).then(|| claim(of, "assay destroy"));
    let done = meant.each(claim, async |cluster, _, work| {
        cluster.remove(args.dry_run, args.keep_data, work).await
    })?;
    if global.json {
        output::json(&json!({ "dry_run": args.dry_run, "deployments": done }))?;
        return Ok(Code::Fine);
    }
    let mut stays = false;
    for (name, hosts) in &done {
        for (host, removed) in hosts {
            listed(host, removed, args.dry_run || global.verbose > 0)?;
        }
        let all_gone = {
            let mut left = hosts.values().flat_map(|removed| &removed.left);
            !left.any(|left| left.ours)
        };
        stays |= !all_gone;
        if !args.dry_run && !global.quiet && all_gone {
            output::line(format_args!("{name} is removed"))?;
        } else if !args.dry_run && !all_gone {
            output::say(format_args!(
                "{name} is not removed whole; mend this and destroy it again"
            ));
        }
    }
    if stays && !args.dry_run {
        return Ok(Code::Host);
    }
    Ok(Code::Fine)
}

/// Lists what goes on a host, and what stays there.
fn listed(host: &str, removed: &Removed, whole: bool) -> Result<(), Failure> {
    if whole {
        for unit in &removed.units {
            output::line(format_args!("{host}: unit {unit}"))?;
        }
        for path in &removed.paths {
            output::line(output::clean(&format!("{host}: {}", path.display())))?;
        }
    }
    for left in &removed.left {
        let path = left.path.display();
        output::say(output::clean(&format!(
            "{host}: {path} stays: {}",
            left.why
        )));
    }
    Ok(())
}

pub(super) fn status(global: &Global, args: &Status) -> Result<Code, Failure> {
    let experiment = Experiment {
        experiment: args.of.clone().unwrap_or_default().into(),
        changes: args.changes.clone(),
    };
    let meant = Meant::of(&experiment, &args.variant)?;
    let done = meant.each(None, async |cluster, _, work| cluster.status(work).await)?;
    if global.json {
        output::json(&done)?;
        return Ok(Code::Fine);
    }
    for (name, instances) in &done {
        output::line(format_args!("{name}"))?;
        output::line(output::clean(table(instances).to_string().trim_end()))?;
    }
    Ok(Code::Fine)
}

fn table(instances: &[InstanceStatus]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = text::width() {
        table.set_width(width);
    }
    table.set_header([
        "instance", "address", "state", "version", "health", "uptime", "restarts", "memory",
    ]);
    for i in instances {
        let leads = if i.leader { " (leader)" } else { "" };
        let uptime = i.uptime_s.map(|s| text::time(s.floor()).to_string());
        table.add_row([
            format!("{}{leads}", i.instance),
            i.address.clone(),
            i.state.clone(),
            i.version.clone().unwrap_or_default(),
            i.fault.clone().unwrap_or_else(|| "healthy".to_owned()),
            uptime.unwrap_or_default(),
            i.restarts.to_string(),
            i.memory_bytes
                .map(|bytes| Bytes(bytes).to_string())
                .unwrap_or_default(),
        ]);
    }
    table
}
