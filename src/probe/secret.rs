//! A text that is for servers only: never printed, and taken out of what servers say.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Shorter values are not looked for in texts: replacing every `1` would hide the text, not the secret.
const SHORTEST: usize = 4;

/// What stands in place of a secret.
const MASK: &str = "***";

/// A password. Requests carry it as it is; `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The value, for the moment of use.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without the value.
    pub(super) fn hide(&self, text: &str) -> String {
        if self.0.chars().count() < SHORTEST {
            return text.to_owned();
        }
        text.replace(&self.0, MASK)
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}
