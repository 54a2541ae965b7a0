//! Programs of the system that a lab is made with. Each carries a mark in its environment, by which it is found and ended
//! when whoever called it was killed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::LabError;

/// Where programs are looked for, whatever the user's own path is.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The variable that holds the mark: `ID` on a tool of a lab, `ID/HOST` on what runs a host.
pub(super) const MARK: &str = "ASSAY_LAB";

/// Where a program is.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let folders = PATH.split(':').map(Path::new);
    folders.map(|f| f.join(name)).find(|path| path.is_file())
}

/// A program with nothing in its environment but its path and its mark.
pub(super) fn command(name: &str, mark: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    command
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        .env(MARK, mark)
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end; its standard output. `what` completes "cannot ...".
pub(super) fn run(command: &mut Command, what: &str) -> Result<String, LabError> {
    feed(command, what, "")
}

/// Runs a command that reads `input`.
pub(super) fn feed(command: &mut Command, what: &str, input: &str) -> Result<String, LabError> {
    let failed = |said: String| LabError::Tool {
        what: what.to_owned(),
        said,
    };
    let broken = |error: std::io::Error| failed(error.to_string());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(broken)?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    let output = std::thread::scope(|scope| {
        // A program that ends early does not read it all; its status says why.
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output()
    });
    let output = output.map_err(broken)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(if said.is_empty() {
        output.status.to_string()
    } else {
        said
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_reads_what_it_is_fed_and_knows_nothing_else() {
        let said = feed(&mut command("cat", "1a2b"), "copy", "text").unwrap();
        assert_eq!(said, "text");
        let said = run(&mut command("env", "1a2b"), "look").unwrap();
        let names: Vec<_> = said.lines().filter_map(|l| l.split('=').next()).collect();
        assert_eq!(names.len(), 3, "{said}");
        assert!(said.contains("ASSAY_LAB=1a2b\n"));
    }

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let mut command = command("ls", "1a2b");
        let error = run(command.arg("/no/such/folder"), "list it").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("cannot list it: ") && text.contains("No such file"),
            "{text}"
        );
    }
}
