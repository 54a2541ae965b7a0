//! From an inventory file to checked hosts, with or without an experiment.

use std::path::Path;

use super::super::files::Files;
use super::super::load::{Document, diagnose, look_alikes, typed};
use super::super::problem::{Diagnostic, Problems};
use super::super::tree::Item;
use super::super::walk::walk;
use super::super::{Secrets, resolved, rules, schema, vars};
use super::{Inventory, expand, resolve};

/// An inventory in which everything is resolved and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedInventory {
    /// The hosts and groups: ranges and defaults are applied and gone, paths are absolute.
    pub inventory: Inventory,
    /// The inventory as YAML that reads back as the same value.
    pub text: String,
    /// The values of the environment variables that labels and variables name as `${env:NAME}`.
    pub secrets: Secrets,
}

/// Loads and checks an inventory file by itself. `environment` looks up an environment variable; relative paths start
/// from `working_directory`, which is absolute.
///
/// # Errors
/// All problems at once, as [`load`](super::super::load) finds them.
pub fn load_inventory(
    path: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
    working_directory: &Path,
) -> Result<LoadedInventory, Problems> {
    let mut files = Files::new(working_directory);
    let loaded = load(path, environment, working_directory, &mut files);
    match (loaded, Problems::sorted(files.found)) {
        (Some(loaded), None) => Ok(loaded),
        (_, Some(problems)) => Err(problems),
        (None, None) => unreachable!("an inventory is only missing after a problem"),
    }
}

fn load(
    path: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
    working_directory: &Path,
    files: &mut Files<'_>,
) -> Option<LoadedInventory> {
    let root = files.file(path, None, None)?;
    let document = document(&root, environment, &mut files.found);
    let inventory: Inventory = typed(&document, &mut files.found)?;
    let findings = rules::run_on_inventory(&inventory, &document.walked.bad).0;
    let found = findings
        .into_iter()
        .map(|problem| diagnose(problem, (&document.tree, Some(&document.tree))));
    files.add_once(found);
    look_alikes(&[&document], &mut files.found);
    if !files.found.is_empty() {
        return None;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let inventory = resolved_in(inventory, folder, working_directory);
    let secrets = Secrets::new(document.walked.secrets);
    Some(LoadedInventory {
        text: resolved::text(&inventory, &secrets, "inventory"),
        inventory,
        secrets,
    })
}

/// An inventory file's tree, walked and with each host by itself.
pub(in crate::spec) fn document(
    root: &Item,
    environment: &dyn Fn(&str) -> Option<String>,
    found: &mut Vec<Diagnostic>,
) -> Document {
    let tree = vars::substitute(root, true, found);
    let walked = walk(&schema::INVENTORY, &tree, environment, found);
    let walked = expand(walked, found);
    Document {
        tree: walked.sound.clone(),
        walked,
    }
}

/// The inventory resolved, its file lying in `folder`.
pub(in crate::spec) fn resolved_in(
    mut inventory: Inventory,
    folder: &Path,
    here: &Path,
) -> Inventory {
    let folder = here.join(folder);
    let folder = folder.canonicalize().unwrap_or(folder);
    resolve::resolve(&mut inventory, &folder, here);
    inventory
}
