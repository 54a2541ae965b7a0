//! Ctrl-C and its relatives: first cleanly, then now, then at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::Code;
use super::progress::Console;
use crate::runner::Control;

/// Turns signals into requests to stop, for as long as the program runs.
pub(super) fn listen(control: Control, console: Console) -> std::io::Result<()> {
    let interrupt = signal(SignalKind::interrupt())?;
    let terminate = signal(SignalKind::terminate())?;
    let hangup = signal(SignalKind::hangup())?;
    tokio::spawn(watch(interrupt, terminate, hangup, control, console));
    Ok(())
}

/// Cancels `stop` at the first signal; the second ends the program.
pub(super) fn cancel(stop: tokio_util::sync::CancellationToken) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if stop.is_cancelled() {
                std::process::exit(Code::Cancelled as i32);
            }
            stop.cancel();
        }
    });
    Ok(())
}

async fn watch(
    mut interrupt: Signal,
    mut terminate: Signal,
    mut hangup: Signal,
    control: Control,
    console: Console,
) {
    let mut seen = 0;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        seen += 1;
        match (seen, control.ask()) {
            (1, _) => console
                .say("stopping: the round in progress is finished first; Ctrl-C again kills it"),
            (2, _) => console
                .say("stopping now: the round in progress is killed and its database stopped"),
            _ => std::process::exit(Code::Cancelled as i32),
        }
    }
}
