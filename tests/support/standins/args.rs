//! Command lines, taken and refused as the real programs do it.

use crate::release::Release;

/// A flag: its name without dashes, whether a value follows, and the version that brought it.
pub(crate) struct Flag(
    pub(crate) &'static str,
    pub(crate) Takes,
    pub(crate) &'static str,
);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Takes {
    Nothing,
    Value,
}

/// The flags that were given, in order.
#[derive(Debug, Default)]
pub(crate) struct Arguments(Vec<(String, String)>);

/// A command line that is not taken: the message and the exit code.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) text: String,
    pub(crate) code: u8,
}

impl Arguments {
    pub(crate) fn parse(
        component: &str,
        flags: &[Flag],
        words: &[String],
        release: &Release,
    ) -> Result<Self, Refused> {
        let mut given = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let unknown = || refuse(component, word, release);
            let (name, value) = split(word).ok_or_else(unknown)?;
            let known = |flag: &&Flag| flag.0 == name && release.since(flag.2);
            let flag = flags.iter().find(known).ok_or_else(unknown)?;
            let value = match (flag.1, value) {
                (_, Some(value)) => value.to_owned(),
                (Takes::Nothing, None) => "true".to_owned(),
                (Takes::Value, None) => words.next().cloned().ok_or_else(|| without_value(name))?,
            };
            given.0.push((name.to_owned(), value));
        }
        Ok(given)
    }

    /// The last value of a flag, if it was given and is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut given = self.0.iter().rev();
        given
            .find(|(flag, _)| flag == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "false")
    }

    /// The value of a flag that there must be.
    pub(crate) fn need(&self, name: &str) -> Result<&str, crate::Failure> {
        self.get(name)
            .ok_or_else(|| format!("the flag --{name} is missing").into())
    }
}

fn split(word: &str) -> Option<(&str, Option<&str>)> {
    let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    Some(match bare.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (bare, None),
    })
}

fn without_value(name: &str) -> Refused {
    Refused {
        text: format!(
            "flag needs an argument: -{name}\nUsage of this stand-in: see tests/support/standins"
        ),
        code: 2,
    }
}

/// TiKV parses with clap, TiDB and PD with Go's flag package, PD since 7.0 with cobra.
fn refuse(component: &str, word: &str, release: &Release) -> Refused {
    let name = word
        .split('=')
        .next()
        .unwrap_or_default()
        .trim_start_matches('-');
    let (text, code) = match component {
        "tikv-server" => (
            format!(
                "error: Found argument '{word}' which wasn't expected, or isn't valid in this context\n\nUSAGE:\n    tikv-server [FLAGS] [OPTIONS]\n\n(stand-in)"
            ),
            1,
        ),
        "pd-server" if release.since("7.0") => {
            (format!("Error: unknown flag: --{name}\n(stand-in)"), 1)
        }
        _ => (
            format!("flag provided but not defined: -{name}\nUsage of {component} (stand-in):"),
            2,
        ),
    };
    Refused { text, code }
}
