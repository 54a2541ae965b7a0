//! This machine as a host.

use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use super::lease::{self, Held, Refusal};
use super::process::{self, End};
use super::transfer::{self, Sent, Source, TransferError};
use super::{Claim, Command, Hold, Host, HostError, Lease, Output, Pending, Program, Watch, tree};

/// This machine.
#[derive(Clone, Debug)]
pub struct LocalHost {
    name: String,
    directory: PathBuf,
    assay: PathBuf,
}

impl LocalHost {
    /// This machine by the name that the inventory gives it; `directory` is absolute, `assay` is the binary that
    /// works here.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        directory: impl Into<PathBuf>,
        assay: impl Into<PathBuf>,
    ) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            assay: assay.into(),
        }
    }

    fn io(&self, what: String, source: std::io::Error) -> HostError {
        HostError::Io {
            host: self.name.clone(),
            what,
            source,
        }
    }

    async fn execute(&self, command: &Command, watch: Watch<'_>) -> Result<Output, HostError> {
        let what = describe(command);
        let host = self.name.clone();
        if watch.stop.is_cancelled() {
            return Err(HostError::Stopped { host, what });
        }
        let program = match &command.program {
            Program::Assay => &self.assay,
            Program::Path(path) => path,
        };
        let limit = command.limit;
        let (end, stderr) = process::run(program, command, &watch.stop, watch.line)
            .await
            .map_err(|error| self.io(format!("run `{}`", program.display()), error))?;
        if !stderr.is_empty() {
            (watch.log)(&stderr);
        }
        match end {
            End::Itself(status) => Ok(Output { status, stderr }),
            End::Limit => Err(HostError::Limit { host, what, limit }),
            End::Silence => Err(HostError::Silence {
                host,
                what,
                silence: command.silence.unwrap_or_default(),
            }),
            End::Stopped => Err(HostError::Stopped { host, what }),
        }
    }

    async fn copy(&self, remote: &Path, local: &Path) -> Result<(), HostError> {
        let (from, to) = (remote.to_owned(), local.to_owned());
        let what = || format!("copy `{}` to `{}`", remote.display(), local.display());
        spawn_blocking(move || tree::copy(&from, &to))
            .await
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| self.io(what(), error))
    }

    async fn hold(&self, claim: Claim<'_>) -> Result<Lease, HostError> {
        let (directory, owner) = (self.directory.clone(), claim.owner.to_owned());
        let break_dead = claim.break_dead;
        let take = move || {
            let owner = &owner;
            lease::take(&directory, Claim { owner, break_dead })
        };
        let taken = spawn_blocking(take)
            .await
            .map_err(|error| Refusal::Io(std::io::Error::other(error)))
            .flatten();
        match taken {
            Ok(held) => Ok(Lease::new(LocalHold {
                host: self.name.clone(),
                held,
            })),
            Err(Refusal::Held(other)) => Err(HostError::Held {
                host: self.name.clone(),
                owner: other.text,
                seems_dead: other.seems_dead,
            }),
            Err(Refusal::Io(error)) => {
                let what = format!("take the lease in `{}`", self.directory.display());
                Err(self.io(what, error))
            }
        }
    }
}

impl Host for LocalHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn run<'a>(
        &'a self,
        command: &'a Command,
        watch: Watch<'a>,
    ) -> Pending<'a, Result<Output, HostError>> {
        Box::pin(self.execute(command, watch))
    }

    fn fetch<'a>(
        &'a self,
        remote: &'a Path,
        local: &'a Path,
    ) -> Pending<'a, Result<(), HostError>> {
        Box::pin(self.copy(remote, local))
    }

    fn send<'a>(
        &'a self,
        source: &'a Source,
        remote: &'a Path,
        replace: bool,
        progress: transfer::Progress,
    ) -> Pending<'a, Result<Sent, TransferError>> {
        Box::pin(transfer::copy(source, remote, replace, progress))
    }

    fn lease<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, Result<Lease, HostError>> {
        Box::pin(self.hold(claim))
    }
}

/// This machine's lease.
struct LocalHold {
    host: String,
    held: Held,
}

impl Hold for LocalHold {
    fn check(&self) -> Result<(), HostError> {
        self.held.check().map_err(|source| HostError::Io {
            host: self.host.clone(),
            what: format!("keep the lease `{}`", self.held.path().display()),
            source,
        })
    }
}

/// The command as error messages name it: `assay agent load`, `/bin/tool`. A program's arguments may hold secrets.
pub(super) fn describe(command: &Command) -> String {
    match &command.program {
        Program::Assay => format!("assay {}", command.args.join(" ")),
        Program::Path(path) => path.display().to_string(),
    }
}
