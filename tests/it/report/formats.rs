//! Golden texts of the sample run in every format.

use assay::report::{Format, render, table};

use super::{default_rows, html, sample};
use crate::support::golden;
use crate::support::sample_run::Sample;

#[test]
fn the_terminal_table_is_the_golden_one() {
    golden::check("report/table.txt", &table(default_rows(), None));
}

#[test]
fn the_markdown_is_the_golden_one() {
    let text = render(default_rows(), Format::Markdown, None).unwrap();
    golden::check("report/report.md", &text);
}

#[test]
fn the_csv_is_the_golden_one() {
    let text = render(default_rows(), Format::Csv, None).unwrap();
    golden::check("report/results.csv", &text);
}

#[test]
fn the_json_is_the_golden_one() {
    let text = render(default_rows(), Format::Json, None).unwrap();
    golden::check("report/results.json", &text);
}

#[test]
fn the_page_is_the_golden_one_around_files_of_a_folder_of_templates() {
    // Stand-ins keep style, script and library out of the golden text, and show that a folder's files come first.
    let templates = tempfile::tempdir().unwrap();
    let report = templates.path().join("report");
    std::fs::create_dir_all(report.join("vendor")).unwrap();
    for name in [
        "report.css",
        "report.js",
        "vendor/uPlot.min.css",
        "vendor/uPlot.iife.min.js",
        "vendor/uPlot.LICENSE",
    ] {
        std::fs::write(report.join(name), format!("/* {name} */")).unwrap();
    }
    let page = render(default_rows(), Format::Html, Some(templates.path())).unwrap();
    golden::check("report/report.html", &page);
}

#[test]
fn every_format_is_the_same_each_time() {
    let (_folder, run, rows) = sample(&Sample {
        threads: vec![1],
        ..Sample::default()
    });
    let again = assay::report::rows(&run).unwrap();
    for format in Format::ALL {
        let render = |rows| render(rows, format, None).unwrap();
        assert!(render(&rows) == render(&again), "{format}");
    }
}

#[test]
fn the_page_needs_nothing_from_anywhere() {
    let page = html(default_rows());
    assert!(page.contains("uPlot (v1.6.32)"));
    assert!(page.contains("Permission is hereby granted"));
    for outside in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let links = page.matches("href=\"").count();
    let inside = page.matches("href=\"#").count() + page.matches("href=\"data:").count();
    assert_eq!(links, inside);
}

#[test]
fn a_template_that_does_not_render_is_an_error_and_a_missing_one_falls_back() {
    let templates = tempfile::tempdir().unwrap();
    assert!(render(default_rows(), Format::Html, Some(templates.path())).is_ok());
    let report = templates.path().join("report");
    std::fs::create_dir_all(&report).unwrap();
    std::fs::write(report.join("report.html.j2"), "{{ rows.nothing }}").unwrap();
    let error = render(default_rows(), Format::Html, Some(templates.path())).unwrap_err();
    assert_eq!(error.to_string(), "cannot render the report's template");
}
