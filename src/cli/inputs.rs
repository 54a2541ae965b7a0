//! From the command line to a checked spec, its plan and its hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::args::Changes;
use super::error::{Code, Failure};
use crate::host::{Host, LocalHost};
use crate::plan::{self, Plan};
use crate::spec::{Connection, Inventory, Request, Spec};
use crate::{database, spec};

/// Where deployments lie on a host whose inventory names no directory.
const DIRECTORY: &str = ".assay";

/// Loads and checks an experiment; every problem is shown at once.
pub(super) fn load(experiment: &Path, changes: &Changes) -> Result<Spec, Failure> {
    let working_directory = working_directory()?;
    let request = Request {
        path: experiment,
        inventory: changes.inventory.as_deref(),
        overrides: &changes.overrides,
        environment: &|name| std::env::var(name).ok(),
        working_directory: &working_directory,
    };
    spec::load(&request, &[database::check]).map_err(|problems| Failure::refused(&problems))
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
            Connection::Ssh => {
                let message = format!("cannot reach `{name}`: hosts over SSH are not supported");
                return Err(Failure::new(Code::Host, message));
            }
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

/// Four hex digits for each secret: enough to notice that a value changed, too few to find it out.
/// They are salted by the run, so that two runs cannot be compared.
pub(super) fn secret_checks(spec: &Spec, run: &str) -> BTreeMap<String, String> {
    let check = |name: &str| {
        let value = spec.secrets.reveal(&format!("${{env:{name}}}"));
        let digest = Sha256::digest(format!("{run}\n{name}\n{value}"));
        format!("{:02x}{:02x}", digest[0], digest[1])
    };
    spec.secrets
        .names()
        .map(|name| (name.to_owned(), check(name)))
        .collect()
}
