//! The options of sysbench by version: which exist, what they hold, and which are not given by hand.

use std::fmt;

use indexmap::IndexMap;

use crate::spec::Scalar;

/// Versions that take the same options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// 1.0.
    Old,
    /// 1.1, which was never released: builds of the main branch.
    New,
}

impl Series {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Old, Self::New];
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "sysbench 1.0",
            Self::New => "sysbench 1.1",
        })
    }
}

/// Why sysbench cannot do what is asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No version has this option.
    #[error("sysbench has no option `{option}`{help}")]
    Unknown {
        /// The option.
        option: String,
        /// What was meant, behind a semicolon.
        help: String,
    },
    /// Only other versions have this option.
    #[error("{series} has no option `{option}`")]
    Elsewhere {
        /// The version.
        series: Series,
        /// The option.
        option: String,
    },
    /// The option is not given by hand.
    #[error("the option `{option}` is not given by hand: {why}")]
    Own {
        /// The option.
        option: String,
        /// What to do instead, or why it is not to be had.
        why: &'static str,
    },
    /// The option stands there twice.
    #[error("the option `{0}` is given twice")]
    Twice(String),
    /// The option's value is none.
    #[error("`{option}` takes {expected}, not `{value}`")]
    Value {
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// Both the workload's key and the option say how keys are drawn.
    #[error("both `distribution` and the option `rand-type` say how keys are drawn")]
    TwoDistributions,
    /// It has no such distribution.
    #[error("{series} has no distribution `{name}`")]
    Distribution {
        /// The version.
        series: Series,
        /// The distribution.
        name: &'static str,
    },
    /// It has no such script.
    #[error("sysbench has no script `{0}`")]
    Script(&'static str),
    /// It has no such tables.
    #[error("sysbench loads the schema `sysbench` only")]
    Schema,
    /// It cannot keep such a rate.
    #[error("sysbench takes whole rates only, not {0}/s")]
    Rate(f64),
    /// It does not drive such a system.
    #[error("it drives servers of MySQL and PostgreSQL only")]
    Target,
    /// There is nothing to connect to.
    #[error("there is no address to connect to")]
    NoAddress,
    /// It would connect to pairs of hosts and ports that nobody listens on.
    #[error(
        "it connects to every given port of every given host, so that either the ports or the hosts must be the same, not {0}; put a load balancer before them"
    )]
    Addresses(String),
    /// It takes one address only.
    #[error("it takes one address of PostgreSQL, not {0}; put a load balancer before them")]
    OneAddress(usize),
    /// Its config file cannot hold such a password.
    #[error("its config file cannot hold a password {0}")]
    Password(&'static str),
    /// It wants certificates that are not there.
    #[error("{0} wants TLS with a certificate authority, a client certificate and its key")]
    Tls(Series),
}

/// What an option holds.
#[derive(Clone, Copy)]
enum Holds {
    Flag,
    Whole,
    Real,
    /// One of these words.
    Word(&'static [&'static str]),
    Text,
    /// It is set by assay, or cannot be had; why.
    Own(&'static str),
}

use Holds::{Flag, Own, Real, Text, Whole, Word};
use Series::{New, Old};

/// An option, the versions that have it, what it holds.
type Known = (&'static str, &'static [Series], Holds);

const BOTH: &[Series] = &Series::ALL;

const ADDRESS: &str = "it follows from the cluster";
const SHAPE: &str = "it follows from the dataset";
const REPORT: &str = "results are read from what it makes sysbench print";
const SPEND: &str = "it changes what is measured to no use";
const ALIAS: &str = "it is an old name, and gone in 1.1";

/// The options of the OLTP scripts, of the drivers and of sysbench itself, as their own help of 1.0.20 and 1.1 lists them.
const KNOWN: &[Known] = &[
    // The scripts.
    ("auto_inc", BOTH, Flag),
    ("create_secondary", BOTH, Flag),
    ("create_table_options", &[New], Text),
    ("delete_inserts", BOTH, Whole),
    ("distinct_ranges", BOTH, Whole),
    ("index_updates", BOTH, Whole),
    ("mysql_storage_engine", BOTH, Text),
    ("non_index_updates", BOTH, Whole),
    ("order_ranges", BOTH, Whole),
    ("pgsql_variant", BOTH, Word(&["redshift"])),
    ("point_selects", BOTH, Whole),
    ("range_selects", BOTH, Flag),
    ("range_size", BOTH, Whole),
    ("reconnect", &[New], Whole),
    ("secondary", BOTH, Flag),
    ("simple_ranges", BOTH, Whole),
    ("skip_trx", BOTH, Flag),
    ("sum_ranges", BOTH, Whole),
    ("table_size", BOTH, Own(SHAPE)),
    ("tables", BOTH, Own(SHAPE)),
    // Random numbers.
    ("rand-pareto-h", BOTH, Real),
    (
        "rand-seed",
        BOTH,
        Own("it follows from the seed of the round"),
    ),
    ("rand-spec-iter", &[Old], Whole),
    ("rand-spec-pct", &[Old], Whole),
    ("rand-spec-res", &[Old], Whole),
    (
        "rand-type",
        BOTH,
        Word(&["uniform", "gaussian", "special", "pareto", "zipfian"]),
    ),
    ("rand-zipfian-exp", &[New], Real),
    // Databases.
    ("db-debug", BOTH, Own(SPEND)),
    ("db-driver", BOTH, Own(ADDRESS)),
    ("db-ps-mode", BOTH, Word(&["auto", "disable"])),
    ("mysql-compression", BOTH, Flag),
    ("mysql-compression-algorithms", &[New], Text),
    ("mysql-db", BOTH, Own(ADDRESS)),
    ("mysql-debug", BOTH, Own(SPEND)),
    ("mysql-dry-run", BOTH, Own("nothing would be measured")),
    ("mysql-host", BOTH, Own(ADDRESS)),
    ("mysql-ignore-errors", BOTH, Text),
    ("mysql-password", BOTH, Own(ADDRESS)),
    ("mysql-port", BOTH, Own(ADDRESS)),
    ("mysql-socket", BOTH, Own(ADDRESS)),
    ("mysql-ssl", BOTH, Own(ADDRESS)),
    ("mysql-ssl-ca", &[New], Own(ADDRESS)),
    ("mysql-ssl-cert", &[New], Own(ADDRESS)),
    ("mysql-ssl-cipher", BOTH, Text),
    ("mysql-ssl-key", &[New], Own(ADDRESS)),
    ("mysql-user", BOTH, Own(ADDRESS)),
    ("pgsql-db", BOTH, Own(ADDRESS)),
    ("pgsql-host", BOTH, Own(ADDRESS)),
    ("pgsql-password", BOTH, Own(ADDRESS)),
    ("pgsql-port", BOTH, Own(ADDRESS)),
    ("pgsql-sslmode", &[New], Own(ADDRESS)),
    ("pgsql-user", BOTH, Own(ADDRESS)),
    // sysbench itself.
    ("config-file", BOTH, Own("it holds the password")),
    ("debug", BOTH, Own(SPEND)),
    (
        "events",
        BOTH,
        Own("rounds last as long as `rounds.duration`"),
    ),
    (
        "forced-shutdown",
        BOTH,
        Own("a run that does not end is ended by `rounds.limits.grace`, and its numbers are none"),
    ),
    ("help", BOTH, Own(REPORT)),
    ("histogram", BOTH, Own(REPORT)),
    ("luajit-cmd", &[New], Text),
    ("max-requests", &[Old], Own(ALIAS)),
    ("max-time", &[Old], Own(ALIAS)),
    ("num-threads", &[Old], Own(ALIAS)),
    ("percentile", BOTH, Own(REPORT)),
    ("rate", BOTH, Own("it is `sweep.rate`")),
    ("report-checkpoints", BOTH, Own(REPORT)),
    ("report-interval", BOTH, Own(REPORT)),
    ("thread-init-timeout", &[New], Whole),
    ("thread-stack-size", BOTH, Text),
    (
        "threads",
        BOTH,
        Own("it is `sweep.threads`, or `threads` of a dataset"),
    ),
    ("time", BOTH, Own("it is `rounds.duration`")),
    ("tx-rate", &[Old], Own(ALIAS)),
    ("validate", BOTH, Own(SPEND)),
    ("verbosity", BOTH, Own(REPORT)),
    ("version", BOTH, Own(REPORT)),
    ("warmup-time", &[New], Own("it is `rounds.warmup`")),
];

/// Options by the names that sysbench's help has for them.
pub(super) type Options<'a> = IndexMap<&'static str, &'a str>;

/// Whether some version takes all of `options`.
///
/// # Errors
/// The first of them that none takes.
pub fn check(options: &IndexMap<String, Scalar>) -> Result<(), Refusal> {
    let [old, new] = Series::ALL.map(|series| read(options, series));
    match (old, new) {
        (Err(why), Err(_)) => Err(why),
        _ => Ok(()),
    }
}

/// `options` as a version takes them.
pub(super) fn read(
    options: &IndexMap<String, Scalar>,
    series: Series,
) -> Result<Options<'_>, Refusal> {
    let mut found = Options::new();
    for (option, Scalar(value)) in options {
        let option = option.as_str();
        let (name, versions, holds) = known(option)?;
        if let Own(why) = holds {
            return Err(Refusal::Own {
                option: option.to_owned(),
                why,
            });
        }
        if !versions.contains(&series) {
            return Err(Refusal::Elsewhere {
                series,
                option: option.to_owned(),
            });
        }
        fits(option, value, *holds)?;
        if found.insert(*name, value.as_str()).is_some() {
            return Err(Refusal::Twice((*name).to_owned()));
        }
    }
    Ok(found)
}

fn plain(option: &str) -> String {
    option.to_lowercase().replace('-', "_")
}

/// The option of a name; dashes and underscores are the same.
fn known(option: &str) -> Result<&'static Known, Refusal> {
    let same = |(name, ..): &&Known| option.replace('-', "_") == plain(name);
    KNOWN.iter().find(same).ok_or_else(|| Refusal::Unknown {
        option: option.to_owned(),
        help: closest(option).map_or_else(String::new, |name| format!("; did you mean `{name}`?")),
    })
}

/// The option that a word was likely meant to be.
fn closest(word: &str) -> Option<&'static str> {
    let word = plain(word.trim_start_matches('-'));
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    KNOWN
        .iter()
        .map(|(name, ..)| (strsim::damerau_levenshtein(&word, &plain(name)), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn fits(option: &str, value: &str, holds: Holds) -> Result<(), Refusal> {
    let (fits, expected) = match holds {
        Flag => (
            matches!(value, "on" | "off" | "true" | "false" | "1" | "0"),
            "`true` or `false`".to_owned(),
        ),
        Whole => (
            !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()),
            "a whole number".to_owned(),
        ),
        Real => (
            value.parse::<f64>().is_ok_and(f64::is_finite),
            "a number".to_owned(),
        ),
        Word(words) => (words.contains(&value), format!("`{}`", words.join("`, `"))),
        Text | Own(_) => (
            !value.is_empty() && !value.contains(char::is_control),
            "a text".to_owned(),
        ),
    };
    if fits {
        return Ok(());
    }
    Err(Refusal::Value {
        option: option.to_owned(),
        value: value.to_owned(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn options(pairs: &[(&str, &str)]) -> IndexMap<String, Scalar> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), Scalar((*value).to_owned()));
        pairs.iter().map(own).collect()
    }

    fn refusal(name: &str, value: &str) -> String {
        check(&options(&[(name, value)])).unwrap_err().to_string()
    }

    /// The options that a recorded help lists.
    fn help(file: &str) -> Vec<String> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let path = folder
            .join("tests/fixtures/driver/sysbench/help")
            .join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let option = |line: &str| {
            let option = line.trim_start().strip_prefix("--")?;
            let end = option.find(|c: char| !(c.is_alphanumeric() || "_-".contains(c)))?;
            Some(option[..end].to_owned())
        };
        text.lines().filter_map(option).collect()
    }

    #[test]
    fn the_table_is_what_the_helps_of_both_versions_list() {
        let files = [
            (Old, ["1.0.20.txt", "1.0.20-oltp_read_write.txt"]),
            (New, ["1.1.0.txt", "1.1.0-oltp_read_write.txt"]),
        ];
        for (series, files) in files {
            let listed: Vec<String> = files.iter().flat_map(|file| help(file)).collect();
            let known = |(_, versions, _): &&Known| versions.contains(&series);
            let names: Vec<&str> = KNOWN.iter().filter(known).map(|(name, ..)| *name).collect();
            for option in &listed {
                assert!(names.contains(&option.as_str()), "{series}: {option}");
            }
            for name in names {
                assert!(
                    listed.iter().any(|option| option == name),
                    "{series}: {name}"
                );
            }
        }
    }

    #[test]
    fn dashes_and_underscores_are_the_same() {
        let given = options(&[("point-selects", "5"), ("db_ps_mode", "disable")]);
        let read = read(&given, Old).unwrap();
        assert_eq!(read["point_selects"], "5");
        assert_eq!(read["db-ps-mode"], "disable");
        let twice = options(&[("skip-trx", "on"), ("skip_trx", "on")]);
        assert_eq!(check(&twice), Err(Refusal::Twice("skip_trx".into())));
    }

    #[test]
    fn unknown_options_are_refused_with_what_was_meant() {
        assert_eq!(
            refusal("point_select", "1"),
            "sysbench has no option `point_select`; did you mean `point_selects`?"
        );
        assert_eq!(
            refusal("--rand-tpye", "uniform"),
            "sysbench has no option `--rand-tpye`; did you mean `rand-type`?"
        );
        assert_eq!(refusal("colour", "red"), "sysbench has no option `colour`");
    }

    #[test]
    fn options_that_follow_from_the_experiment_are_refused_with_its_key() {
        assert_eq!(
            refusal("threads", "4"),
            "the option `threads` is not given by hand: it is `sweep.threads`, or `threads` of a dataset"
        );
        assert!(refusal("mysql-password", "x").contains("follows from the cluster"));
    }

    #[test]
    fn values_are_those_of_their_options() {
        for (name, value, expected) in [
            ("skip_trx", "yes", "`true` or `false`"),
            ("point_selects", "ten", "a whole number"),
            ("rand-pareto-h", "x", "a number"),
            ("db-ps-mode", "always", "`auto`, `disable`"),
            ("mysql-ignore-errors", "", "a text"),
        ] {
            let text = refusal(name, value);
            assert_eq!(text, format!("`{name}` takes {expected}, not `{value}`"));
        }
        let good = [
            ("skip_trx", "true"),
            ("rand-pareto-h", "0.2"),
            ("mysql-ignore-errors", "all"),
        ];
        assert_eq!(check(&options(&good)), Ok(()));
    }

    #[test]
    fn options_of_one_version_are_refused_by_the_other() {
        let given = options(&[("reconnect", "10")]);
        assert_eq!(check(&given), Ok(()));
        let text = read(&given, Old).unwrap_err().to_string();
        assert_eq!(text, "sysbench 1.0 has no option `reconnect`");
        // No version has both.
        let both = options(&[("reconnect", "10"), ("rand-spec-pct", "1")]);
        assert!(check(&both).is_err());
    }
}
