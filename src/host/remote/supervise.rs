//! The supervisor of a job: runs its program, keeps what it prints, and leaves behind how it ended. It depends on nobody:
//! not on the channel that the job was asked for over, nor on who asked.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Result, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::jobs::file;
use super::serve::{ended, raise_limit};
use super::wire::{Ending, Order};
use crate::host::process;

/// Runs the job in `folder` to its end. `assay` is this program.
///
/// # Errors
/// The folder cannot be used, or another supervisor is at work there.
pub fn supervise(folder: &Path, assay: &Path) -> Result<()> {
    // Away from the session of whoever asked; as a unit's main process it leads one already.
    let _ = rustix::process::setsid();
    raise_limit();
    let lock = match lock(folder) {
        Ok(lock) => lock,
        // Nobody else is at work there, and nothing was started.
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            return leave(folder, &Ending::refused("start its supervisor", &error));
        }
        Err(error) => return Err(error),
    };
    let path = folder.join(file::ORDER);
    let order: Order = serde_json::from_slice(&std::fs::read(&path)?)?;
    // It may hold secrets.
    std::fs::remove_file(path)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let end = runtime.block_on(run(folder, &order, assay));
    let end = end.unwrap_or_else(|error| Ending::refused("keep what it prints", &error));
    leave(folder, &end)?;
    drop(lock);
    Ok(())
}

/// Locks the job. The file appears locked, so that nobody takes one that is about to be locked for that of the dead.
fn lock(folder: &Path) -> Result<File> {
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.as_file().try_lock()?;
    writeln!(new, "{}", std::process::id())?;
    let lock = new.persist_noclobber(folder.join(file::LOCK))?;
    Ok(lock)
}

async fn run(folder: &Path, order: &Order, assay: &Path) -> Result<Ending> {
    let stop = CancellationToken::new();
    let mut term = signal(SignalKind::terminate())?;
    let stopper = stop.clone();
    tokio::spawn(async move {
        term.recv().await;
        stopper.cancel();
    });
    // Asked before this process could hear it.
    if folder.join(file::STOP).exists() {
        stop.cancel();
    }
    let mut out = OpenOptions::new()
        .append(true)
        .create(true)
        .open(folder.join(file::OUT))?;
    let mut broken = None;
    let command = order.command();
    let program = order.program.as_deref().unwrap_or(assay);
    let mut line = |text: &str| {
        if broken.is_some() {
            return;
        }
        // In one piece, so that a reader sees no half of it without its end.
        if let Err(error) = out.write_all(format!("{text}\n").as_bytes()) {
            broken = Some(error);
            stop.cancel();
        }
    };
    let end = process::run(program, &command, &stop, &mut line).await;
    Ok(match broken {
        Some(error) => Ending::refused("keep what it prints", &error),
        None => ended(program, end),
    })
}

/// Leaves the outcome, whole or not at all; one for which there is no room is replaced by that.
fn leave(folder: &Path, end: &Ending) -> Result<()> {
    let room = folder.join(file::ROOM);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(&room)?;
    if let Err(error) = write(&mut file, end) {
        write(&mut file, &Ending::refused("keep its outcome", &error))?;
    }
    std::fs::rename(room, folder.join(file::END))
}

fn write(file: &mut File, end: &Ending) -> Result<()> {
    let text = serde_json::to_vec(end)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&text)?;
    file.set_len(text.len() as u64)?;
    file.sync_data()
}
