//! The page in headless Chromium: every chart is drawn, nothing is complained of, nothing sticks out of a phone.

use std::path::{Path, PathBuf};
use std::process::Command;

use assay::report::Rows;
use assay::spec::{Kind, Metric};

use super::{default_rows, html, sample};
use crate::support::sample_run::Sample;
use crate::support::skipped;

/// Says that the test is skipped when there is none.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        skipped("no chromium (Debian package chromium)");
    }
    found
}

/// The page around the report: as wide as a phone, and it tells what the report's document came to.
const PHONE: &str = r##"<!doctype html><html><body><iframe id="f" src="report.html#timelines"
style="width:390px;height:900px;border:0"></iframe><script>
document.getElementById("f").addEventListener("load", () => {
  const inner = document.getElementById("f").contentDocument.documentElement;
  // What a reader does: reads a chart by keys, hides a variant, picks another percentile, cell and theme.
  const use = page => {
    const plot = page.querySelector(".plot");
    plot?.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    document.documentElement.dataset.reading = page.querySelector(".tip")?.textContent ?? "";
    page.querySelectorAll(".legend button").forEach(button => button.click());
    page.querySelectorAll("select").forEach(select => {
      select.selectedIndex = select.options.length - 1;
      select.dispatchEvent(new Event("change"));
    });
    page.querySelector('#theme').click();
    document.documentElement.dataset.theme = page.dataset.theme;
  };
  const tell = () => {
    const drawn = inner.dataset.charts === "drawn";
    document.documentElement.dataset.overhang = inner.scrollWidth - inner.clientWidth;
    document.documentElement.dataset.drawn = drawn;
    document.documentElement.dataset.canvases = inner.querySelectorAll("canvas").length;
    if (!drawn) return setTimeout(tell, 50);
    use(inner);
    document.documentElement.dataset.complaint = inner.dataset.error || "none";
  };
  tell();
});
</script></body></html>"##;

struct Seen {
    dom: String,
    console: Vec<String>,
}

fn open(chromium: &Path, page: &Path, more: &[&str]) -> Seen {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg("--allow-file-access-from-files")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Seen {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: errors
            .lines()
            .filter(|l| l.contains("CONSOLE"))
            .map(str::to_owned)
            .collect(),
    }
}

/// Opens a report and returns how many canvases it drew on a phone's width, and what the first point says when read.
fn check(rows: &Rows) -> Option<(usize, String)> {
    let chromium = chromium()?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("report.html"), html(rows)).unwrap();
    std::fs::write(folder.path().join("phone.html"), PHONE).unwrap();
    let seen = open(&chromium, &folder.path().join("phone.html"), &[]);
    assert_eq!(seen.console, [""; 0]);
    let told = |name: &str| {
        let start = seen
            .dom
            .split_once(&format!("data-{name}=\""))
            .unwrap_or_else(|| panic!("no {name}: {}", seen.dom));
        start.1.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(told("complaint"), "none");
    assert_eq!(told("drawn"), "true");
    assert_eq!(told("overhang"), "0");
    assert_eq!(told("theme"), "light");
    Some((told("canvases").parse().unwrap(), told("reading")))
}

#[test]
fn every_chart_of_the_sample_is_drawn() {
    let rows = default_rows();
    // Five for each workload and two timelines.
    let first = &rows.workloads[0].groups[0].cells[0].results[0].rounds[0];
    let throughput = first.values[&Metric::Throughput];
    if let Some((canvases, reading)) = check(rows) {
        assert_eq!(canvases, 12);
        let wanted = format!("delete, 1 thread, round 1: {throughput:.1} op/s; all 3 rounds: ");
        assert!(reading.starts_with(&wanted), "{reading}");
    }
}

#[test]
fn a_rate_sweep_with_one_round_is_drawn() {
    let (_folder, _run, rows) = sample(&Sample {
        rates: vec![10.0, 20.0, 400.0],
        threads: vec![1, 4],
        workloads: vec![Kind::OltpInsert],
        repetitions: 1,
        ..Sample::default()
    });
    if let Some((canvases, reading)) = check(&rows) {
        assert_eq!(canvases, 12);
        assert!(
            reading.contains("10.00 op/s wanted, round 1: "),
            "{reading}"
        );
    }
}

#[test]
fn a_run_without_a_round_opens_without_charts() {
    let (_folder, _run, rows) = sample(&Sample {
        cut: Some(0),
        ..Sample::default()
    });
    if let Some(found) = check(&rows) {
        assert_eq!(found, (0, String::new()));
    }
}
