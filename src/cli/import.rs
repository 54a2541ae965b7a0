//! `assay import`: an experiment and an inventory from a file of another tool. No file is ever written over.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::{Global, ImportCommand, ImportTiup};
use super::error::{Code, Failure};
use super::output;
use crate::artifacts::ArchiveError;
use crate::spec::{Name, read_text};
use crate::tiup::{self, Names, Options};

pub(super) fn import(global: &Global, command: &ImportCommand) -> Result<Code, Failure> {
    match command {
        ImportCommand::Tiup(args) => from_tiup(global, args),
    }
}

fn from_tiup(global: &Global, args: &ImportTiup) -> Result<Code, Failure> {
    let source = args.file.display().to_string();
    let text = read_text(&args.file, &source).map_err(|problems| Failure::refused(&problems))?;
    let name = name(args)?;
    let targets = Targets::of(args, &name);
    let identity = identity(&args.file);
    let names = Names {
        source: &source,
        experiment: &name,
        inventory: &targets.inventory_name,
        identity_file: identity.as_deref(),
    };
    let options = Options {
        version: args.version.clone(),
        no_labels: args.no_labels,
    };
    let import =
        tiup::import(&names, &text, &options).map_err(|problems| Failure::refused(&problems))?;
    targets.write(&import)?;
    report(global, &targets, &import)?;
    Ok(Code::Fine)
}

/// The experiment's name: the one that is given, else that of the file, of which a `meta.yaml` has its folder's.
fn name(args: &ImportTiup) -> Result<Name, Failure> {
    let stem = |path: &Path| path.file_stem()?.to_str().map(str::to_owned);
    let folder = |path: &Path| {
        let path = fs::canonicalize(path).ok()?;
        stem(path.parent()?)
    };
    let output = args.output.as_deref().and_then(stem);
    let given = args.name.clone().or(output);
    let own = || match stem(&args.file) {
        Some(own) if own == "meta" => folder(&args.file).or(Some(own)),
        own => own,
    };
    let name = given.or_else(own).unwrap_or_default();
    name.parse::<Name>().map_err(|error| {
        Failure::from_error(Code::Usage, &error)
            .hint("say how to call the experiment: `--name NAME`")
    })
}

/// The key that TiUP logs in with, if the file is the `meta.yaml` of a cluster that it manages here.
fn identity(meta: &Path) -> Option<String> {
    let key = fs::canonicalize(meta).ok()?.parent()?.join("ssh/id_rsa");
    let is_there = meta.file_name()? == "meta.yaml" && key.is_file();
    is_there.then(|| key.to_str().map(str::to_owned))?
}

/// The files to write.
struct Targets {
    experiment: PathBuf,
    inventory: PathBuf,
    /// The inventory, from the experiment's folder.
    inventory_name: String,
}

impl Targets {
    fn of(args: &ImportTiup, name: &Name) -> Self {
        let experiment = match &args.output {
            Some(output) => output.clone(),
            None => PathBuf::from(format!("{name}.yaml")),
        };
        let inventory_name = format!("{name}-hosts.yaml");
        Self {
            inventory: experiment.with_file_name(&inventory_name),
            experiment,
            inventory_name,
        }
    }

    /// Writes both files, or none.
    fn write(&self, import: &tiup::Import) -> Result<(), Failure> {
        create(&self.inventory, &import.inventory)?;
        create(&self.experiment, &import.experiment).inspect_err(|_| {
            // It was made a moment ago; alone it helps nobody.
            let _ = fs::remove_file(&self.inventory);
        })
    }
}

fn create(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes()).inspect_err(|_| {
            let _ = fs::remove_file(path);
        })
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let message = format!("`{}` is there already; nothing was changed", path.display());
            Failure::new(Code::Usage, message).hint("name another file: `--output FILE`")
        }
        _ => Failure::from_error(
            Code::Usage,
            &ArchiveError::Io {
                what: "write",
                path: path.to_owned(),
                source: error,
            },
        ),
    })
}

fn report(global: &Global, targets: &Targets, import: &tiup::Import) -> Result<(), Failure> {
    if !global.quiet {
        for left_out in &import.left_out {
            let text = format!("left out: {}: {}", left_out.path, left_out.reason);
            output::say(output::clean(&text));
        }
    }
    let (experiment, inventory) = (&targets.experiment, &targets.inventory);
    if global.json {
        return output::json(&json!({
            "wrote": { "experiment": experiment, "inventory": inventory },
            "version": import.version,
            "hosts": import.hosts,
            "instances": import.instances,
            "left_out": import.left_out,
        }));
    }
    let (experiment, inventory) = (experiment.display(), inventory.display());
    output::line(format_args!(
        "wrote {experiment} and {inventory}: {} instances on {} hosts; next: look at what is marked with `edit`, \
         then assay check {experiment}",
        import.instances, import.hosts
    ))
}
