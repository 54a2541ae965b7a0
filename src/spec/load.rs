//! From files to a checked spec: read, extend, override, replace variables, walk, type, check.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::files::Files;
use super::problem::{Diagnostic, Problem, Problems};
use super::reference;
use super::resolved::{self, INVENTORY_FILE};
use super::source::clean;
use super::tree::{Item, Value, Way, locate};
use super::walk::{Walked, walk};
use super::{Experiment, Inventory, Secrets, inventory, overrides, rules, schema, typed, vars};

/// What to load, and from where.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The experiment file.
    pub path: &'a Path,
    /// The inventory file, if it is not the experiment's to name.
    pub inventory: Option<&'a Path>,
    /// Values for single keys, `path=value`, the later ones over the earlier.
    pub overrides: &'a [String],
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The absolute folder that relative paths start from.
    pub working_directory: &'a Path,
}

/// A further check of a spec, such as whether a system knows its tunables.
///
/// It is run when the system is known, even if other values are wrong: a wrong value that is required is the plainest of
/// its kind (the first word, 1, a list of one or none), any other is left away. A problem whose path lies at or below a
/// wrong value is dropped, and one whose path has no node is shown at the closest one above it.
pub type Check<'a> = &'a dyn Fn(&Experiment, &Inventory) -> Vec<Problem>;

/// A spec in which everything is resolved and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The experiment; its variables are applied and gone, and its inventory is `inventory.yaml`.
    pub experiment: Experiment,
    /// The hosts, each by itself with its defaults, their paths absolute.
    pub inventory: Inventory,
    /// The experiment as YAML that reads back as the same value beside the inventory's text in `inventory.yaml`.
    pub experiment_text: String,
    /// The inventory as YAML.
    pub inventory_text: String,
    /// The SHA-256 of both, as hex digits. Where files and directories are does not enter it, nor do hosts and groups that the
    /// experiment does not use.
    pub hash: String,
    /// The values of the environment variables that texts name as `${env:NAME}`.
    pub secrets: Secrets,
}

/// Loads and checks a spec.
///
/// # Errors
/// All problems at once, except that a file that is no YAML hides what depends on it.
pub fn load(request: &Request<'_>, checks: &[Check<'_>]) -> Result<Spec, Problems> {
    let mut files = Files::new(request.working_directory);
    let spec = Loader {
        request,
        files: &mut files,
    }
    .load(checks);
    match (spec, Problems::sorted(files.found)) {
        (Some(spec), None) => Ok(spec),
        (_, Some(problems)) => Err(problems),
        (None, None) => unreachable!("a spec is only missing after a problem"),
    }
}

/// A document as it is checked: the tree that problems are located in, and what a walk made of it.
pub(super) struct Document {
    pub(super) tree: Item,
    pub(super) walked: Walked,
}

struct Loader<'a, 'f> {
    request: &'a Request<'a>,
    files: &'f mut Files<'a>,
}

impl Loader<'_, '_> {
    fn load(&mut self, checks: &[Check<'_>]) -> Option<Spec> {
        let root = self.files.chain(self.request.path)?;
        let root = overrides::apply(root, self.request.overrides, self.files);
        let experiment = self.document(&root);
        let inventory = self.inventory(&experiment);
        let found = &mut self.files.found;
        let typed: Experiment = self::typed(&experiment, found)?;
        let hosts: Inventory = match &inventory {
            Inventories::Read(document, _) => self::typed(document, found)?,
            Inventories::Default | Inventories::Broken => Inventory::this_machine(),
        };
        self.check(&experiment, &inventory, (&typed, &hosts), checks);
        if !self.files.found.is_empty() {
            return None;
        }
        let mut secrets = experiment.walked.secrets;
        let folder = match inventory {
            Inventories::Read(document, folder) => {
                secrets.extend(document.walked.secrets);
                folder
            }
            Inventories::Default | Inventories::Broken => PathBuf::new(),
        };
        let hosts = inventory::resolved_in(hosts, &folder, self.request.working_directory);
        Some(resolve(typed, hosts, Secrets::new(secrets)))
    }

    /// Replaces variables and walks the schema.
    fn document(&mut self, root: &Item) -> Document {
        let found = &mut self.files.found;
        let tree = vars::substitute(root, false, found);
        let walked = walk(&schema::EXPERIMENT, &tree, self.request.environment, found);
        Document { tree, walked }
    }

    fn inventory(&mut self, experiment: &Document) -> Inventories {
        let (path, from) = match self.request.inventory {
            Some(path) => (path.to_owned(), None),
            None => {
                let Some(entry) = experiment.tree.get("inventory") else {
                    return Inventories::Default;
                };
                let Some(name) = experiment.walked.sound.get("inventory") else {
                    return Inventories::Broken;
                };
                let Some(name) = name.item.scalar() else {
                    return Inventories::Broken;
                };
                let place = Way::default().enter(entry).point(&entry.item).place;
                let path = clean(&entry.item.node.place.source.folder.join(&*name.text));
                (path, Some(place))
            }
        };
        let from = from.as_ref().map(|place| ("inventory", place));
        let Some(root) = self.files.file(&path, from, None) else {
            return Inventories::Broken;
        };
        let (environment, found) = (self.request.environment, &mut self.files.found);
        let document = inventory::document(&root, environment, found);
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Inventories::Read(Box::new(document), folder)
    }

    fn check(
        &mut self,
        experiment: &Document,
        inventory: &Inventories,
        (typed, hosts): (&Experiment, &Inventory),
        checks: &[Check<'_>],
    ) {
        let lone = has_lone_dataset(&experiment.tree);
        let mut bad = experiment.walked.bad.map(|path| as_typed(path, lone));
        match inventory {
            Inventories::Read(document, _) => bad.extend(&document.walked.bad),
            Inventories::Broken => {
                bad.insert("hosts");
                bad.insert("groups");
            }
            Inventories::Default => {}
        }
        let mut findings = rules::run(typed, hosts, &bad).0;
        if !bad.covers("cluster.system") {
            findings.extend(checks.iter().flat_map(|check| check(typed, hosts)));
        }
        findings.retain(|problem| !bad.covers(&problem.path));
        let trees = (&experiment.tree, inventory.tree());
        let found = findings.into_iter().map(|problem| diagnose(problem, trees));
        self.files.add_once(found);
        let mut documents = vec![experiment];
        if let Inventories::Read(document, _) = inventory {
            documents.push(document);
        }
        look_alikes(&documents, &mut self.files.found);
    }
}

/// A text that looks like a placeholder but is none would be replaced at its use.
pub(super) fn look_alikes(documents: &[&Document], found: &mut Vec<Diagnostic>) {
    let names = || {
        documents
            .iter()
            .flat_map(|document| document.walked.secrets.keys())
    };
    for text in documents
        .iter()
        .flat_map(|document| &document.walked.placeholders)
    {
        let alike = |name: &String| text.text.matches(&reference::placeholder(name)).count();
        let names: BTreeSet<&String> = names().collect();
        if names.into_iter().map(alike).sum::<usize>() > text.secrets {
            let message = "the text is like the placeholder of a value from the environment";
            found.push(Diagnostic::point(text.point.clone(), &text.path, message));
        }
    }
}

/// The typed value of what is sound in a document.
pub(super) fn typed<T: serde::de::DeserializeOwned>(
    document: &Document,
    found: &mut Vec<Diagnostic>,
) -> Option<T> {
    match typed::read(&document.walked.sound) {
        Ok(value) => Some(value),
        Err(error) => {
            let point = Way::default().point(&document.tree);
            let message = format!("cannot be understood: {error}");
            found.push(Diagnostic::point(point, "", message));
            None
        }
    }
}

enum Inventories {
    /// The experiment names none: this machine.
    Default,
    /// It could not be read.
    Broken,
    /// A document, and the folder of its file.
    Read(Box<Document>, PathBuf),
}

impl Inventories {
    fn tree(&self) -> Option<&Item> {
        match self {
            Self::Read(document, _) => Some(&document.tree),
            Self::Default | Self::Broken => None,
        }
    }
}

/// A problem at its place in the experiment or the inventory.
pub(super) fn diagnose(
    problem: Problem,
    (experiment, inventory): (&Item, Option<&Item>),
) -> Diagnostic {
    let path = as_written(experiment, problem.path);
    let of_inventory = path.starts_with("hosts") || path.starts_with("groups");
    let tree = inventory.filter(|_| of_inventory).unwrap_or(experiment);
    let found = locate(tree, &path);
    let point = match found.key {
        Some(key) if problem.key => key,
        _ => found.value,
    };
    Diagnostic::point(point, path, problem.message).help(problem.help)
}

/// Whether the dataset is written without a list.
fn has_lone_dataset(experiment: &Item) -> bool {
    let dataset = experiment.get("dataset");
    dataset.is_some_and(|entry| matches!(entry.item.node.value, Value::Mapping(_)))
}

/// The path in the tree of a path in the typed experiment, where a lone dataset is in a list.
fn as_written(experiment: &Item, path: String) -> String {
    match path.strip_prefix("dataset[0]") {
        Some(rest) if has_lone_dataset(experiment) => format!("dataset{rest}"),
        _ => path,
    }
}

/// The path in the typed experiment of a path in the tree.
fn as_typed(path: &str, lone_dataset: bool) -> String {
    match path.strip_prefix("dataset.") {
        Some(rest) if lone_dataset => format!("dataset[0].{rest}"),
        _ => path.to_owned(),
    }
}

fn resolve(mut experiment: Experiment, inventory: Inventory, secrets: Secrets) -> Spec {
    experiment.vars.clear();
    experiment.inventory = Some(INVENTORY_FILE.to_owned());
    Spec {
        experiment_text: resolved::text(&experiment, &secrets, "experiment"),
        inventory_text: resolved::text(&inventory, &secrets, "inventory"),
        hash: resolved::hash(&experiment, &inventory),
        experiment,
        inventory,
        secrets,
    }
}
