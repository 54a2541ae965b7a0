use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::measurement::Phase;
use crate::plan::{Listen, Loading, Refusal, Seconds, ToolFile, Versions};

/// A step that runs a script of sh.
fn script(name: &str, script: &str) -> ToolStep {
    ToolStep {
        name: name.into(),
        versions: Versions::ALL,
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: [("GREETING".to_owned(), "hello".to_owned())].into(),
        limit: Some(units::Duration::from_secs(60)),
        stdout: format!("{name}.txt"),
        stderr: format!("{name}.err"),
        listen: Listen {
            failure: Some("^FATAL: ".into()),
            ..Listen::default()
        },
    }
}

/// A tool of version 1.0 that takes these steps in `folder`.
fn tool(folder: &Path, steps: Vec<ToolStep>) -> Tool {
    Tool {
        directory: Some(folder.join("out")),
        probe: Probe {
            program: "echo".into(),
            args: vec!["toolbench 1.0.20 (for tests)".into()],
            package: "toolbench".into(),
        },
        refusals: Vec::new(),
        files: Vec::new(),
        steps,
    }
}

fn tried(tool: &Tool) -> (Result<ToolRecord, ToolError>, Vec<Progress>) {
    let mut heard = Vec::new();
    let result = run(tool, &CancellationToken::new(), &mut |p| heard.push(p));
    (result, heard)
}

fn failure(steps: Vec<ToolStep>) -> String {
    let folder = tempfile::tempdir().unwrap();
    tried(&tool(folder.path(), steps))
        .0
        .unwrap_err()
        .to_string()
}

#[test]
fn steps_run_in_order_in_the_folder_and_leave_what_they_print() {
    let folder = tempfile::tempdir().unwrap();
    let first = script("first", "echo $GREETING >made; echo out; echo err >&2");
    let second = script("second", "cat made");
    let order = tool(folder.path(), vec![first, second]);
    let record = tried(&order).0.unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert_eq!(
        (read("first.txt"), read("first.err")),
        ("out\n".into(), "err\n".into())
    );
    assert_eq!(read("second.txt"), "hello\n");
    let kept: ToolRecord = serde_json::from_str(&read(Tool::RECORD)).unwrap();
    assert_eq!(kept, record);
    assert_eq!(record.version, "toolbench 1.0.20 (for tests)");
    let ends: Vec<_> = record.steps.iter().map(|s| (&*s.name, s.status)).collect();
    assert_eq!(ends, [("first", Some(0)), ("second", Some(0))]);
    assert!(record.steps.iter().all(|s| s.cpu_s.is_some()));
}

#[test]
fn a_step_that_fails_ends_it_with_its_status_and_its_own_words() {
    let failing = script(
        "bad",
        "echo 'FATAL: no server'; echo 'FATAL: no server'; exit 3",
    );
    let text = failure(vec![failing, script("never", "exit 9")]);
    assert_eq!(
        text,
        "bad by `sh` failed, it ended with status 3: FATAL: no server"
    );
    let text = failure(vec![script("bad", "echo halfway; echo oh no >&2; exit 1")]);
    assert_eq!(
        text,
        "bad by `sh` failed, it ended with status 1: oh no; its last line is `halfway`"
    );
    let text = failure(vec![script("bad", "kill -SEGV $$")]);
    assert_eq!(
        text,
        "bad by `sh` failed, it ended by a signal, and said nothing"
    );
}

#[test]
fn a_line_of_failure_fails_a_step_that_ends_with_0() {
    let text = failure(vec![script(
        "bad",
        "for i in 1 2 3 4 5 6; do echo FATAL: $i; done",
    )]);
    assert_eq!(
        text,
        "bad by `sh` failed, it ended with status 0: FATAL: 1; FATAL: 2; FATAL: 3; FATAL: 4; and 2 lines more"
    );
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let folder = tempfile::tempdir().unwrap();
    let mut order = tool(folder.path(), Vec::new());
    order.probe.program = "no-such-bench".into();
    let error = tried(&order).0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no `no-such-bench` on this host; the package `toolbench` has it"
    );
    order.probe.program = "true".into();
    let error = tried(&order).0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot tell the version of `true` from ``"
    );
}

#[test]
fn versions_choose_steps_and_refuse_what_they_cannot_do() {
    let old = Versions {
        below: Some((1, 1)),
        ..Versions::ALL
    };
    let new = Versions {
        from: Some((1, 1)),
        ..Versions::ALL
    };
    let folder = tempfile::tempdir().unwrap();
    let mut steps = vec![script("old", "true"), script("new", "exit 1")];
    (steps[0].versions, steps[1].versions) = (old, new);
    let mut order = tool(folder.path(), steps);
    let refusal = |versions| Refusal {
        versions,
        why: "no `--spin`".into(),
    };
    order.refusals.push(refusal(new));
    assert_eq!(tried(&order).0.unwrap().steps.len(), 1);
    order.refusals.push(refusal(old));
    assert_eq!(
        tried(&order).0.unwrap_err().to_string(),
        "toolbench 1.0.20 (for tests) cannot do this: no `--spin`"
    );
}

#[test]
fn secret_files_are_private_and_gone_at_the_end_however_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    for end in ["true", "false"] {
        let look = format!("stat -c %a secret; cat secret; {end}");
        let mut order = tool(folder.path(), vec![script("look", &look)]);
        for (name, secret, mode) in [("secret", true, 0o600), ("public", false, 0o644)] {
            order.files.push(ToolFile {
                name: name.into(),
                mode,
                content: "content".into(),
                secret,
            });
        }
        assert_eq!(tried(&order).0.is_ok(), end == "true");
        let out = folder.path().join("out");
        let seen = std::fs::read_to_string(out.join("look.txt")).unwrap();
        assert_eq!(seen, "600\ncontent\n");
        assert!(!out.join("secret").exists());
        let mode = out.join("public").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }
}

#[test]
fn without_a_folder_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("where");
    let mut order = tool(
        folder.path(),
        vec![script("a", &format!("pwd >{}", note.display()))],
    );
    order.directory = None;
    assert!(tried(&order).0.is_ok());
    let place = std::fs::read_to_string(note).unwrap();
    assert!(!place.trim().is_empty() && !Path::new(place.trim()).exists());
}

#[test]
fn files_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["../a", "/a", "a/b", "", ".", "a/"] {
        let mut order = tool(folder.path(), Vec::new());
        order.files.push(ToolFile {
            name: name.into(),
            mode: 0o600,
            content: String::new(),
            secret: true,
        });
        let error = tried(&order).0.unwrap_err();
        assert!(matches!(error, ToolError::Name(_)), "{name}: {error}");
    }
}

#[test]
fn a_step_that_outlives_its_limit_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let mut slow = script("slow", "sleep 1000 & echo $! >child; echo begun; wait");
    slow.limit = Some(units::Duration(Duration::from_millis(500)));
    let error = tried(&tool(folder.path(), vec![slow])).0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "slow by `sh` took longer than its limit of 500ms and was killed"
    );
    let child = std::fs::read_to_string(folder.path().join("out/child")).unwrap();
    // Gone, or dead and not yet reaped by whoever inherited it. Dying takes a moment after the signal.
    let is_dead = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    };
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while !is_dead() {
        assert!(std::time::Instant::now() < end, "the child lives on");
        std::thread::yield_now();
    }
}

#[test]
fn a_step_is_stopped_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut endless = script("endless", "echo '1 5 0'; sleep 1000");
    let line = r"^(?<second>\d+) (?<rate>\d+) (?<errors>\d+)$".to_owned();
    endless.listen.seconds = Some(Seconds {
        line,
        phase: Phase::Warmup,
    });
    let order = tool(folder.path(), vec![endless]);
    let stop = CancellationToken::new();
    let mut heard = Vec::new();
    let result = run(&order, &stop, &mut |second| {
        heard.push(second);
        stop.cancel();
    });
    assert_eq!(
        result.unwrap_err().to_string(),
        "endless by `sh` was stopped"
    );
    let second = Progress::Second {
        phase: Phase::Warmup,
        second: 0,
        count: 5,
        errors: 0,
    };
    assert_eq!(heard, [second]);
}

#[test]
fn a_load_that_tells_of_too_few_rows_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    for tables in [2, 3] {
        let mut load = script("load", "echo table 1; echo table 2");
        load.listen.loading = Some(Loading {
            line: "^table".into(),
            rows: 10,
            of: 10 * tables,
        });
        let (result, heard) = tried(&tool(folder.path(), vec![load]));
        let of = 10 * tables;
        assert_eq!(heard.last(), Some(&Progress::Loaded { rows: 20, of }));
        match tables {
            2 => assert!(result.is_ok()),
            _ => assert_eq!(
                result.unwrap_err().to_string(),
                "load by `sh` ended well, but tells of 20 of 30 rows"
            ),
        }
    }
}
