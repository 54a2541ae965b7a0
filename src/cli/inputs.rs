//! From the command line to a checked spec, its plan and its hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{Changes, Global};
use super::error::{Code, Failure};
use super::text;
use crate::host::{Host, LocalHost};
use crate::plan::{self, Plan};
use crate::spec::{Connection, Inventory, Problems, Request, Spec};
use crate::{database, spec};

/// Where deployments lie on a host whose inventory names no directory.
const DIRECTORY: &str = ".assay";

/// Loads and checks an experiment; every problem is shown at once.
pub(super) fn load(global: &Global, experiment: &Path, changes: &Changes) -> Result<Spec, Failure> {
    let working_directory = working_directory()?;
    let request = Request {
        path: experiment,
        inventory: changes.inventory.as_deref(),
        overrides: &changes.overrides,
        environment: &|name| std::env::var(name).ok(),
        working_directory: &working_directory,
    };
    spec::load(&request, &[database::check]).map_err(|problems| refused(global, &problems))
}

fn refused(global: &Global, problems: &Problems) -> Failure {
    if global.json {
        text::print_json(&serde_json::json!({ "problems": problems.list() }));
    }
    let shown = problems.render(text::is_coloured());
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    Failure::shown(
        Code::Usage,
        format!("{}\n\n{count}; nothing was changed", shown.trim_end()),
    )
}

/// The plan of a spec.
pub(super) fn plan_of(spec: &Spec) -> Plan {
    plan::build(&spec.experiment, &spec.inventory, &spec.hash)
}

/// The hosts of an inventory, by name.
pub(super) fn hosts(inventory: &Inventory) -> Result<BTreeMap<String, Arc<dyn Host>>, Failure> {
    let assay = std::env::current_exe().map_err(|e| Failure::from_error(Code::Internal, &e))?;
    let here = working_directory()?;
    let mut hosts: BTreeMap<String, Arc<dyn Host>> = BTreeMap::new();
    for (name, host) in &inventory.hosts {
        let directory = here.join(host.directory.as_deref().unwrap_or(DIRECTORY));
        match host.connection {
            Connection::Local => {
                hosts.insert(
                    name.to_string(),
                    Arc::new(LocalHost::new(name.as_str(), directory, assay.clone())),
                );
            }
        }
    }
    Ok(hosts)
}

/// The folder in which assay was started.
pub(super) fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|e| {
        Failure::from_error(Code::Usage, &e)
            .hint("the working directory is gone; change to another")
    })
}
