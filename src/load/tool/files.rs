//! The folder that a tool works in, and the files in it.

use std::fs::{OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use tempfile::TempDir;

use super::ToolError;
use crate::plan::{Tool, ToolFile};

/// A folder with a tool's files. Dropped, it removes the secret ones; a private folder goes with all it holds.
pub(super) struct Files {
    folder: PathBuf,
    secrets: Vec<PathBuf>,
    _private: Option<TempDir>,
}

impl Files {
    /// Makes the folder and writes the files.
    pub(super) fn lay(tool: &Tool) -> Result<Self, ToolError> {
        for step in &tool.steps {
            plain(&step.stdout)?;
            plain(&step.stderr)?;
        }
        let (folder, private) = match &tool.directory {
            Some(folder) => {
                let made = std::fs::create_dir_all(folder);
                made.map_err(|error| failed("make the folder", folder, error))?;
                (folder.clone(), None)
            }
            None => {
                let made = tempfile::tempdir().map_err(ToolError::Private)?;
                (made.path().to_owned(), Some(made))
            }
        };
        let mut files = Self {
            folder,
            secrets: Vec::new(),
            _private: private,
        };
        for file in &tool.files {
            files.write(file)?;
        }
        Ok(files)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn write(&mut self, file: &ToolFile) -> Result<(), ToolError> {
        plain(&file.name)?;
        let path = self.folder.join(&file.name);
        if file.secret {
            self.secrets.push(path.clone());
        }
        write_new(&path, file).map_err(|error| failed("write", &path, error))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.secrets {
            if let Err(error) = std::fs::remove_file(path)
                && error.kind() != ErrorKind::NotFound
            {
                tracing::warn!("a secret stays behind in `{}`: {error}", path.display());
            }
        }
    }
}

/// Nobody else can have the file open: what has its name goes first, and its content comes after its permissions.
fn write_new(path: &Path, file: &ToolFile) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(file.mode);
    let mut new = options.open(path)?;
    new.set_permissions(Permissions::from_mode(file.mode))?;
    new.write_all(file.content.as_bytes())
}

/// Writes a record whole.
pub(super) fn keep(path: &Path, record: &impl Serialize) -> Result<(), ToolError> {
    let text = serde_json::to_vec_pretty(record).expect("records are plain data");
    std::fs::write(path, text).map_err(|error| failed("write", path, error))
}

pub(super) fn failed(what: &'static str, path: &Path, source: std::io::Error) -> ToolError {
    ToolError::File {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Refuses what is no plain name.
fn plain(name: &str) -> Result<(), ToolError> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(()),
        _ => Err(ToolError::Name(name.to_owned())),
    }
}
