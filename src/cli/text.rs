//! Colours, logging, and the few forms of numbers that several commands print.

use std::io::IsTerminal as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use tracing_subscriber::filter::LevelFilter;

use super::args::Colour;

/// The style of `error:`.
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
/// The style of `hint:`.
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default().bold();
/// The end of a style.
pub(super) const PLAIN: anstyle::Reset = anstyle::Reset;

/// Decides on colours for everything printed from here on. `NO_COLOR` and `TERM=dumb` are respected by `auto`.
pub(super) fn set_colour(colour: Colour) {
    match colour {
        Colour::Auto => anstream::ColorChoice::Auto,
        Colour::Always => anstream::ColorChoice::Always,
        Colour::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Whether standard error shows colours.
pub(super) fn is_coloured() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Decides which log lines are printed to standard error.
pub(super) fn set_logging(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured())
        .with_target(false)
        .without_time()
        .log_internal_errors(false)
        .init();
}

/// Whether standard error is a terminal that can show a progress bar.
pub(super) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// `1m 20s`, in whole seconds.
pub(super) fn time(seconds: f64) -> String {
    let whole = Duration::from_secs(seconds.max(0.0).round() as u64);
    humantime::format_duration(whole).to_string()
}

/// A latency in µs with a fitting unit and three digits: `842 µs`, `3.21 ms`.
pub(super) fn latency(us: f64) -> String {
    let (value, unit) = if us < 1e3 {
        (us, "µs")
    } else if us < 1e6 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// The width of the terminal that standard output is, in columns; `None` when it is none.
pub(super) fn width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
