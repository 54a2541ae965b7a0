//! The files that the page is made of: built in, each replaceable by one in a folder of templates.

use std::path::Path;

use rust_embed::RustEmbed;

use super::ReportError;

#[derive(RustEmbed)]
#[folder = "templates/report"]
struct BuiltIn;

/// The text of `templates/report/<name>`, or of the file built in.
///
/// # Errors
/// The file cannot be read, or there is none of that name.
pub(super) fn text(name: &str, templates: Option<&Path>) -> Result<String, ReportError> {
    if let Some(path) = templates.map(|t| t.join("report").join(name)) {
        match std::fs::read_to_string(&path) {
            Ok(text) => return Ok(text),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(ReportError::Read { path, source }),
        }
    }
    let file = BuiltIn::get(name).ok_or_else(|| ReportError::NoTemplate(name.to_owned()))?;
    Ok(String::from_utf8_lossy(&file.data).into_owned())
}
