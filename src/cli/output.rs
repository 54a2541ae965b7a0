//! Everything that is printed. A reader that has gone (`| head`, a closed terminal) must never end a run, so that nothing
//! here panics: standard error is written as far as it takes it, and standard output reports what is not its reader's leaving.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _};

use super::error::{Code, Failure};

/// Prints a line to standard output.
pub(super) fn line(text: impl Display) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Prints a text to standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::AutoStream::auto(std::io::stdout());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if !is_gone(&error) => {
            let failure = Failure::new(
                Code::Internal,
                format!("cannot write to standard output: {error}"),
            );
            Err(failure.hint("send the output elsewhere; what was done stays done"))
        }
        _ => Ok(()),
    }
}

/// Whether the reader has left: a pipe was closed, or a terminal.
fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// Prints a value as JSON to standard output.
pub(super) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).expect("results are plain data"))
}

/// Prints a line to standard error, if anybody still reads it.
pub(super) fn say(text: impl Display) {
    let mut err = anstream::AutoStream::auto(std::io::stderr());
    let _ = writeln!(err, "{text}").and_then(|()| err.flush());
}

/// A text from outside without what would steer a terminal.
pub(super) fn clean(text: &str) -> String {
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars()
        .map(|c| {
            if harmless(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_replaced() {
        assert_eq!(clean("a\tb\nc"), "a\tb\nc");
        assert_eq!(clean("\u{1b}]0;title\u{7}"), "\u{fffd}]0;title\u{fffd}");
    }
}
