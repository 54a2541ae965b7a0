//! What a process needs: its log, its output, its end.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;
use crate::misbehaviour::Misbehaviour;

static LOG: OnceLock<Mutex<File>> = OnceLock::new();

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    // Nobody may read it any more; that is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes a line to standard output.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Opens the log file that `--log-file` names; without one, lines go to standard error.
pub(crate) fn open_log(path: Option<&str>) -> Result<(), Failure> {
    let Some(path) = path.map(Path::new) else {
        return Ok(());
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let file = File::options().create(true).append(true).open(path);
    let file = file.map_err(|error| format!("cannot open the log {}: {error}", path.display()))?;
    let _ = LOG.set(Mutex::new(file));
    Ok(())
}

/// Logs a line in the form of the real programs.
pub(crate) fn log(level: &str, text: &str) {
    let time = jiff::Timestamp::now()
        .strftime("%Y/%m/%d %H:%M:%S%.3f +00:00")
        .to_string();
    let line = format!("[{time}] [{level}] [stand-in] [{text:?}]\n");
    match LOG.get().map(Mutex::lock) {
        Some(Ok(mut file)) => drop(file.write_all(line.as_bytes())),
        _ => drop(std::io::stderr().write_all(line.as_bytes())),
    }
}

pub(crate) fn info(text: &str) {
    log("INFO", text);
}

/// How the process is to end.
pub(crate) enum End {
    Asked,
    Told,
}

/// Waits for SIGTERM or SIGINT, or for the hour at which the stand-in dies as told.
pub(crate) async fn end(misbehaviour: &Misbehaviour) -> Result<End, Failure> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let death = async {
        match misbehaviour.die_after() {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(death);
    loop {
        let name = tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = &mut death => {
                log("FATAL", "stand-in dies as it was told");
                return Ok(End::Told);
            }
        };
        if !misbehaviour.ignore_term {
            info(&format!("got signal to exit: {name}"));
            return Ok(End::Asked);
        }
        log("WARN", &format!("stand-in ignores {name} as it was told"));
    }
}

pub(crate) fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// A number that differs from start to start.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::hash::RandomState::new().build_hasher().finish()
}

/// A checksum of bytes: FNV-1a, 64 bits.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Runs everything on this thread: the database child dies with the thread that started it.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}
