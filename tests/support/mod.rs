//! What several tests share.

pub(crate) mod bare_run;
pub(crate) mod golden;
pub(crate) mod lab;
pub(crate) mod mariadb;
pub(crate) mod mirror;
pub(crate) mod sample_run;

pub(crate) mod sshd;

/// Says that the test which calls it is skipped, and why: straight to the terminal, since the harness swallows what a test
/// that passes prints.
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    let thread = std::thread::current();
    let text = format!("skipped: {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// Whether there is no OpenSSH here; then it says that the test which asks is skipped.
pub(crate) fn no_sshd() -> bool {
    let missing = sshd::missing();
    missing.inspect(|why| skipped(why)).is_some()
}
