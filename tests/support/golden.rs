//! Texts that are kept and compared. `ASSAY_BLESS=1` writes them anew; the difference is then reviewed like code.

use std::fs;
use std::path::{Path, PathBuf};

/// The project's folder.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Asserts that the file at `path` in the project holds `text`.
pub(crate) fn assert_kept(path: &str, text: &str) {
    let file: PathBuf = project().join(path);
    if std::env::var_os("ASSAY_BLESS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == text,
        "{path} is out of date: run the tests with ASSAY_BLESS=1 and look at the difference\n{}",
        first_difference(&kept, text)
    );
}

fn first_difference(kept: &str, text: &str) -> String {
    let mut pairs = kept.lines().zip(text.lines()).enumerate();
    match pairs.find(|(_, (a, b))| a != b) {
        Some((n, (a, b))) => format!("line {}:\n- {a}\n+ {b}", n + 1),
        None => format!(
            "{} lines are kept, {} are wanted",
            kept.lines().count(),
            text.lines().count()
        ),
    }
}

/// Asserts that the file at `path` in `tests/fixtures` holds `text`.
pub(crate) fn check(path: &str, text: &str) {
    assert_kept(&format!("tests/fixtures/{path}"), text);
}
