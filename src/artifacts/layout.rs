//! Where things lie in a run's folder.

use std::path::{Path, PathBuf};

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    folder: PathBuf,
}

/// The checksums of all other files, in the format of `sha256sum -c`.
pub(super) const SUMS: &str = "SHA256SUMS";
/// What the name of a file begins with while it is written.
pub(super) const TORN: &str = ".writing-";
/// The event log.
pub(super) const EVENTS: &str = "events.jsonl";

impl Layout {
    /// The layout of the run in `folder`.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The run's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }

    /// The event log.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.folder.join(EVENTS)
    }

    /// The resolved experiment; revisions from 2 on come from resumes that accepted a changed spec.
    #[must_use]
    pub fn experiment(&self, revision: u32) -> PathBuf {
        self.revised("experiment", "yaml", revision)
    }

    /// The resolved inventory.
    #[must_use]
    pub fn inventory(&self, revision: u32) -> PathBuf {
        self.revised("inventory", "yaml", revision)
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self, revision: u32) -> PathBuf {
        self.revised("plan", "json", revision)
    }

    /// The first revision after `revision` of which there are no files.
    #[must_use]
    pub fn next_revision(&self, revision: u32) -> u32 {
        let is_free = |n: &u32| {
            ![self.experiment(*n), self.inventory(*n), self.plan(*n)]
                .iter()
                .any(|p| p.exists())
        };
        (revision + 1..).find(is_free).expect("revisions are few")
    }

    /// What is kept of one preparation of a deployment: `deployments/<id>`, from the second on `deployments/<id>+<n>`.
    #[must_use]
    pub fn deployment(&self, id: &str, preparation: u32) -> PathBuf {
        numbered(&self.folder.join("deployments"), id, preparation)
    }

    /// What is kept of one attempt at a round: `rounds/<id>`, from the second attempt on `rounds/<id>+<attempt>`.
    #[must_use]
    pub fn round(&self, id: &str, attempt: u32) -> PathBuf {
        numbered(&self.folder.join("rounds"), id, attempt)
    }

    /// The checksums.
    #[must_use]
    pub fn sums(&self) -> PathBuf {
        self.folder.join(SUMS)
    }

    fn revised(&self, stem: &str, extension: &str, revision: u32) -> PathBuf {
        self.folder.join(if revision <= 1 {
            format!("{stem}.{extension}")
        } else {
            format!("{stem}.{revision}.{extension}")
        })
    }
}

/// `+` is in no id, so that no two of these folders clash.
fn numbered(parent: &Path, id: &str, number: u32) -> PathBuf {
    if number <= 1 {
        parent.join(id)
    } else {
        parent.join(format!("{id}+{number}"))
    }
}
