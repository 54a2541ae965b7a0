//! Golden texts: files under `tests/fixtures/` that are reviewed like code. `ASSAY_BLESS=1` writes them anew.

use std::path::Path;

/// Compares `text` with `tests/fixtures/<name>`.
///
/// # Panics
/// When they differ, with the first line that does.
pub(crate) fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    if std::env::var_os("ASSAY_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    if wanted == text {
        return;
    }
    let line = wanted
        .lines()
        .zip(text.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    panic!(
        "{name} differs from line {}:\n  wanted: {}\n  found:  {}\nASSAY_BLESS=1 writes it anew",
        line + 1,
        at(&wanted),
        at(text)
    );
}
