//! The first line of a unit file of ours, which says whose it is.

use crate::snapshot::Marker;

const START: &str = "# assay: ";

/// A unit file's text with its header.
pub(super) fn with(marker: &Marker, content: &str) -> String {
    // JSON has no line ends but escaped ones.
    let marker = serde_json::to_string(marker).expect("a marker is plain data");
    format!("{START}{marker}\n{content}")
}

/// Whose a unit file is, if it is one of ours.
pub(super) fn of(text: &[u8]) -> Option<Marker> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    serde_json::from_slice(line.strip_prefix(START.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_one_line_whatever_names_are_in_it_and_says_whose_the_file_is() {
        let marker = Marker {
            experiment: "a\nExecStart=/bin/sh".into(),
            deployment: "\"\\\u{2028}".into(),
        };
        let text = with(&marker, "[Unit]\n");
        assert_eq!(text.lines().count(), 2);
        assert_eq!(of(text.as_bytes()), Some(marker));
    }

    #[test]
    fn files_of_others_are_of_nobody() {
        for text in [
            "",
            "[Unit]\n",
            "# assay: \n",
            "# assay: {}\n",
            "\n# assay: {\"experiment\":\"a\",\"deployment\":\"b\"}\n",
        ] {
            assert_eq!(of(text.as_bytes()), None, "{text}");
        }
    }
}
