//! What only TiDB can answer, put as statements that MariaDB can: texts in, texts out.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::release::Release;
use crate::variables;

/// Statements longer than this are data, not questions about the server.
pub(crate) const LONGEST: usize = 16 * 1024;

/// Words of which a statement holds one if it is to be looked at.
const WORDS: &[&str] = &[
    "tidb",
    "version",
    "variables",
    "show config",
    "cluster_",
    "@@socket",
    "stats_healthy",
    "native_password",
    "@@session.transaction_",
    "@@transaction_",
    "@@global.transaction_",
];

/// Tokens outside of quotes that TiDB gives a meaning. All patterns here are for statements in lower case.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let token = concat!(
        r"(?s)(?P<table>`?information_schema`?\s*\.\s*`?(?P<name>cluster_info|cluster_config)`?)",
        r#"|(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`)"#,
        r"|(?P<tidb>\btidb_version\s*\(\s*\))|(?P<version>\bversion\s*\(\s*\))",
        r"|@@(?:(?P<scope>global|session|local)\s*\.\s*)?(?P<variable>tidb_\w+|version_comment|version|socket|transaction_isolation|transaction_read_only)\b",
    );
    Regex::new(token).expect("the pattern is constant")
});

static SHOW_VARIABLES: LazyLock<Regex> = LazyLock::new(|| {
    let show = r"(?s)^show\s+(?P<scope>global\s+|session\s+|local\s+)?variables(?:\s+(?P<what>like|where)\s+(?P<rest>.+))?$";
    Regex::new(show).expect("the pattern is constant")
});

static SHOW_CONFIG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)^show\s+config(?:\s+where\s+(?P<rest>.+))?$").expect("the pattern is constant")
});

static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    let assignment = concat!(
        r"(?s)^\s*(?:(?P<word>global|session|local)\s+|@@(?:(?P<scope>global|session|local)\s*\.\s*)?)?",
        r"`?(?P<name>\w+)`?\s*:?=\s*(?P<value>.+?)\s*$",
    );
    Regex::new(assignment).expect("the pattern is constant")
});

static WITH_PLUGIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"identified\s+with\s+['"]?mysql_native_password['"]?\s+by"#)
        .expect("the pattern is constant")
});

/// What a statement asks for beyond its own words.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Needs {
    pub(crate) variables: bool,
    pub(crate) info: bool,
    pub(crate) config: bool,
}

/// What has been found out for it.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) variables: BTreeMap<String, String>,
    /// Rows of `cluster_info`.
    pub(crate) info: Vec<Vec<String>>,
    /// Rows of `cluster_config`: type, instance, key, value.
    pub(crate) config: Vec<Vec<String>>,
}

const INFO: &str = "TYPE,INSTANCE,STATUS_ADDRESS,VERSION,GIT_HASH,START_TIME,UPTIME,SERVER_ID";

/// What a statement needs; `None` where MariaDB may have it as it is.
pub(crate) fn needs(statement: &str) -> Option<Needs> {
    if statement.len() > LONGEST {
        return None;
    }
    let lower = statement.to_ascii_lowercase();
    // `SHOW CONFIG` may be written with more spaces.
    let show = lower.trim_start().starts_with("show") && lower.contains("config");
    if !show && !WORDS.iter().any(|word| lower.contains(word)) {
        return None;
    }
    Some(Needs {
        variables: lower.contains("tidb_") || lower.contains("variables"),
        info: lower.contains("cluster_info"),
        config: lower.contains("cluster_config") || show,
    })
}

/// Answers for one version.
pub(crate) struct Answers<'a> {
    pub(crate) release: &'a Release,
    /// Variables that `SET GLOBAL` leaves alone.
    pub(crate) ignored: &'a [String],
    pub(crate) facts: &'a Facts,
}

impl Answers<'_> {
    /// The statement that MariaDB is to run instead.
    pub(crate) fn translate(&self, statement: &str) -> String {
        let statement = statement.trim().trim_end_matches(';').trim_end();
        let lower = statement.to_ascii_lowercase();
        if let Some(show) = SHOW_VARIABLES.captures(&lower) {
            return self.show_variables(statement, &show);
        }
        if let Some(show) = SHOW_CONFIG.captures(&lower) {
            let rows = values("c", "Type,Instance,Name,Value", &self.facts.config);
            let condition = show.name("rest").map_or_else(String::new, |rest| {
                format!(" WHERE {}", &statement[rest.range()])
            });
            return format!("WITH {rows} SELECT Type, Instance, Name, Value FROM c{condition}");
        }
        if lower.starts_with("show stats_healthy") {
            return HEALTHY.to_owned();
        }
        if let Some(set) = lower
            .strip_prefix("set")
            .filter(|rest| rest.starts_with([' ', '\t', '\n', '@']) && rest.contains("tidb_"))
        {
            let assignments = &statement[statement.len() - set.len()..];
            return self
                .set(assignments)
                .unwrap_or_else(|(code, text)| signal(code, &text));
        }
        if let Some(plugin) = WITH_PLUGIN.find(&lower) {
            return format!(
                "{}IDENTIFIED BY{}",
                &statement[..plugin.start()],
                &statement[plugin.end()..]
            );
        }
        self.tokens(statement, &lower)
            .unwrap_or_else(|(code, text)| signal(code, &text))
    }

    fn show_variables(&self, statement: &str, show: &Captures<'_>) -> String {
        let global = show
            .name("scope")
            .is_some_and(|scope| scope.as_str().trim() == "global");
        let scope = if global { "GLOBAL" } else { "SESSION" };
        let condition = match (show.name("what"), show.name("rest")) {
            (Some(what), Some(rest)) if what.as_str() == "like" => {
                format!(" WHERE Variable_name LIKE {}", &statement[rest.range()])
            }
            (Some(_), Some(rest)) => format!(" WHERE {}", &statement[rest.range()]),
            _ => String::new(),
        };
        let version = quoted(&self.release.mysql());
        let own = self
            .facts
            .variables
            .iter()
            .map(|(name, value)| vec![name.clone(), value.clone()])
            .collect::<Vec<_>>();
        format!(
            "WITH {} SELECT Variable_name, Value FROM (SELECT LOWER(VARIABLE_NAME) AS Variable_name, \
             CASE VARIABLE_NAME WHEN 'VERSION' THEN {version} WHEN 'VERSION_COMMENT' THEN {} WHEN 'SOCKET' THEN '' \
             ELSE VARIABLE_VALUE END AS Value FROM information_schema.{scope}_VARIABLES \
             UNION ALL SELECT n, v FROM own) AS variables{condition} ORDER BY 1",
            values("own", "n,v", &own),
            quoted(COMMENT),
        )
    }

    /// `SET` of TiDB's variables: all global or all of the session.
    fn set(&self, assignments: &str) -> Result<String, (u16, String)> {
        let (mut global, mut session, mut others) = (Vec::new(), Vec::new(), 0);
        let mut scope = "session".to_owned();
        for assignment in split(assignments) {
            let lower = assignment.to_ascii_lowercase();
            let parts = ASSIGNMENT
                .captures(&lower)
                .ok_or_else(|| (1064, format!("stand-in cannot read SET {assignment}")))?;
            let value = parts
                .name("value")
                .map_or("", |value| &assignment[value.range()]);
            if let Some(word) = parts.name("word").or_else(|| parts.name("scope")) {
                word.as_str().clone_into(&mut scope);
            }
            let name = parts["name"].to_owned();
            if !name.starts_with("tidb_") {
                others += 1;
                continue;
            }
            let default = variables::default(self.release, &name).ok_or_else(|| unknown(&name))?;
            let value = value.trim_matches(['\'', '"']);
            let value = if value.eq_ignore_ascii_case("default") {
                default
            } else {
                value
            };
            let value = variables::normal(&name, default, value)?;
            if scope == "global" {
                global.push((name, value));
            } else {
                session.push((name, value));
            }
        }
        match (global.as_slice(), session.as_slice(), others) {
            (global, [], 0) => Ok(self.set_global(global)),
            ([], session, 0) => {
                let set: Vec<String> = session
                    .iter()
                    .map(|(name, value)| format!("@{name} = {}", quoted(value)))
                    .collect();
                Ok(format!("SET {}", set.join(", ")))
            }
            _ => Err((
                1105,
                "stand-in sets variables of one kind in a statement".to_owned(),
            )),
        }
    }

    fn set_global(&self, variables: &[(String, String)]) -> String {
        let kept: Vec<&(String, String)> = variables
            .iter()
            .filter(|(name, _)| !self.ignored.contains(name))
            .collect();
        let rows: Vec<String> = kept
            .iter()
            .map(|(name, value)| format!("({}, {})", quoted(name), quoted(value)))
            .collect();
        if let [(name, value)] = kept.as_slice()
            && let Some((row, value_there)) = gc_row(name, value)
        {
            return format!(
                "UPDATE mysql.global_variables AS g, mysql.tidb AS t SET g.VARIABLE_VALUE = {}, t.VARIABLE_VALUE = {} \
                 WHERE g.VARIABLE_NAME = {} AND t.VARIABLE_NAME = {}",
                quoted(value),
                quoted(&value_there),
                quoted(name),
                quoted(row)
            );
        }
        match rows.is_empty() {
            true => "DO 0".to_owned(),
            false => format!(
                "REPLACE INTO mysql.global_variables (VARIABLE_NAME, VARIABLE_VALUE) VALUES {}",
                rows.join(", ")
            ),
        }
    }

    /// Replaces the tokens; a column that is one token keeps it as its name.
    fn tokens(&self, statement: &str, lower: &str) -> Result<String, (u16, String)> {
        let mut text = String::new();
        let mut tables: Vec<&str> = Vec::new();
        let mut end = 0;
        for found in TOKEN.captures_iter(lower) {
            let whole = found.get(0).expect("a match has a text").range();
            let (before, after) = (&statement[..whole.start], &statement[whole.end..]);
            text.push_str(&statement[end..whole.start]);
            end = whole.end;
            if found.name("quoted").is_some() {
                text.push_str(&statement[whole]);
            } else if let Some(name) = found.name("name") {
                let name = if name.as_str() == "cluster_info" {
                    "cluster_info"
                } else {
                    "cluster_config"
                };
                tables.push(name);
                text.push_str(name);
            } else {
                text.push_str(&self.value(&found)?);
                if is_column(before, after) {
                    text.push_str(&format!(" AS `{}`", &statement[whole]));
                }
            }
        }
        text.push_str(&statement[end..]);
        tables.sort_unstable();
        tables.dedup();
        let tables: Vec<String> = tables.into_iter().map(|table| self.table(table)).collect();
        Ok(if tables.is_empty() {
            text
        } else {
            format!("WITH {} {text}", tables.join(", "))
        })
    }

    fn value(&self, found: &Captures<'_>) -> Result<String, (u16, String)> {
        if found.name("tidb").is_some() {
            return Ok(quoted(&self.release.described("tidb-server")));
        }
        let Some(variable) = found.name("variable") else {
            return Ok(quoted(&self.release.mysql()));
        };
        let name = variable.as_str();
        match name {
            "version" => return Ok(quoted(&self.release.mysql())),
            "version_comment" => return Ok(quoted(COMMENT)),
            "socket" => return Ok("''".to_owned()),
            // MariaDB has them under older names.
            "transaction_isolation" | "transaction_read_only" => {
                let scope = found
                    .name("scope")
                    .map_or(String::new(), |scope| format!("{}.", scope.as_str()));
                return Ok(format!("@@{scope}{}", name.replace("transaction", "tx")));
            }
            _ => {}
        }
        let default = variables::default(self.release, name).ok_or_else(|| unknown(name))?;
        let value = self
            .facts
            .variables
            .get(name)
            .map_or(default, String::as_str);
        let global = found
            .name("scope")
            .is_some_and(|scope| scope.as_str() == "global");
        let value = if global {
            quoted(value)
        } else {
            format!("COALESCE(@{name}, {})", quoted(value))
        };
        // Switches are numbers to an expression.
        let switch = matches!(default, "ON" | "OFF");
        Ok(if switch {
            format!("IF({value} = 'ON', 1, 0)")
        } else {
            value
        })
    }

    fn table(&self, name: &str) -> String {
        match name {
            "cluster_info" => values(name, INFO, &self.facts.info),
            _ => values(name, "TYPE,INSTANCE,`KEY`,VALUE", &self.facts.config),
        }
    }
}

const COMMENT: &str = "TiDB Server (stand-in for tests), MySQL compatible";

const HEALTHY: &str = "SELECT TABLE_SCHEMA AS Db_name, TABLE_NAME AS Table_name, '' AS Partition_name, 100 AS Healthy \
                       FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' \
                       AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')";

/// The row of `mysql.tidb` that a variable of GC is kept in as well.
fn gc_row(name: &str, value: &str) -> Option<(&'static str, String)> {
    match name {
        "tidb_gc_enable" => Some(("tikv_gc_enable", (value == "ON").to_string())),
        "tidb_gc_life_time" => Some(("tikv_gc_life_time", value.to_owned())),
        "tidb_gc_run_interval" => Some(("tikv_gc_run_interval", value.to_owned())),
        _ => None,
    }
}

fn unknown(name: &str) -> (u16, String) {
    (1193, format!("Unknown system variable '{name}'"))
}

/// A statement that fails as asked.
fn signal(code: u16, text: &str) -> String {
    let text: String = text.chars().take(120).collect();
    format!(
        "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = {}",
        quoted(&text)
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A table of constants for `WITH`.
fn values(name: &str, columns: &str, rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        let empty = vec!["''"; columns.split(',').count()].join(", ");
        return format!("{name}({columns}) AS (SELECT {empty} FROM DUAL WHERE FALSE)");
    }
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|value| quoted(value))
                .collect::<Vec<_>>()
                .join(", ")
        })
        .collect();
    format!("{name}({columns}) AS (VALUES ({}))", rows.join("), ("))
}

/// Whether what stands between these two is a whole column of a list.
fn is_column(before: &str, after: &str) -> bool {
    let before = before.trim_end().to_ascii_lowercase();
    let after = after.trim_start().to_ascii_lowercase();
    let first = before.ends_with("select")
        || before.ends_with(',') && before.trim_start().starts_with("select");
    let last = after.is_empty()
        || after.starts_with(',')
        || after.starts_with("from ")
        || after.starts_with("limit ");
    first && last
}

/// The parts of a list between commas that are not in quotes.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ',') => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}
