//! From the conditions and readings of a pack to questions for the hosts.

use std::str::FromStr as _;
use std::time::Duration;

use serde_json::Value;

use super::install::{command_of, said};
use super::{Cluster, DatabaseError, Member, bare};
use crate::host::{Bounds, Host, ask};
use crate::pack::{self, Condition, Reading, Test};
use crate::plan::Address;
use crate::probe::{self, Check, Http, Method, Server, Sql, Table, Tls, Until};
use crate::service::Ran;
use crate::units;

/// How long one answer may take.
const ANSWER: units::Duration = units::Duration(Duration::from_secs(10));
/// How long a statement may take that changes much.
pub(super) const STATEMENT: units::Duration = units::Duration(Duration::from_secs(600));
/// From one look to the next.
const PACE: units::Duration = units::Duration(Duration::from_millis(200));

impl Cluster {
    /// Waits until a condition of a member holds.
    pub(super) async fn wait(
        &self,
        host: &dyn Host,
        member: &Member,
        condition: &Condition,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let until = Until {
            what: self.question(member, condition)?,
            limit: units::Duration(whole(bounds.limit)),
            pace: PACE,
        };
        let mut unheard = |_| {};
        probe::until(host, &until, bounds.stop, &mut unheard).await?;
        Ok(())
    }

    /// A condition as a question about a member.
    pub(super) fn question(
        &self,
        member: &Member,
        condition: &Condition,
    ) -> Result<Check, DatabaseError> {
        let tests = condition.r#where.iter();
        let conditions = tests
            .map(|test| self.test(member, test))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(url) = &condition.http {
            let url = self.text(member, "a condition", url)?;
            return Ok(Check::Http {
                request: self.get(member, url),
                status: condition.status,
                conditions,
            });
        }
        if let Some(sql) = &condition.sql {
            let statement = self.text(member, "a condition", sql)?;
            return Ok(Check::Sql {
                request: self.sql_at(member, vec![statement], ANSWER)?,
                conditions,
            });
        }
        if let Some(port) = &condition.listening {
            return Ok(Check::Listening {
                host: member.instance.address.clone(),
                port: member
                    .instance
                    .ports
                    .get(port.as_str())
                    .copied()
                    .unwrap_or(0),
            });
        }
        let command = self.texts(member, "a condition", &condition.command)?;
        let (program, args) = command
            .split_first()
            .map_or(("", &[][..]), |(p, a)| (&**p, a));
        Ok(Check::Command {
            program: program.to_owned(),
            args: args.to_vec(),
            status: 0,
            timeout: ANSWER,
        })
    }

    fn test(&self, member: &Member, test: &Test) -> Result<probe::Condition, DatabaseError> {
        let number = |text: &String| -> Result<f64, DatabaseError> {
            let text = self.text(member, "a condition", text)?;
            let wrong = || DatabaseError::Other(format!("`{text}` is no number"));
            text.trim().parse().map_err(|_| wrong())
        };
        let is = if let Some(value) = &test.equals {
            probe::Test::Equals(value.0.clone())
        } else if let Some(most) = &test.at_most {
            probe::Test::AtMost(number(most)?)
        } else if let Some(least) = &test.at_least {
            probe::Test::AtLeast(number(least)?)
        } else if let Some(pattern) = &test.matches {
            let pattern = probe::Pattern::try_from(pattern.clone());
            let wrong = |error: regex::Error| DatabaseError::Other(error.to_string());
            probe::Test::Matches(pattern.map_err(wrong)?)
        } else if test.empty == Some(true) {
            probe::Test::Empty
        } else {
            probe::Test::NotEmpty
        };
        let pointer = probe::Pointer::try_from(test.at.clone());
        let pointer = pointer.map_err(|error| DatabaseError::Other(error.to_string()))?;
        Ok(probe::Condition { pointer, is })
    }

    /// A GET of a member's endpoint.
    pub(super) fn get(&self, member: &Member, url: String) -> Http {
        Http {
            url,
            tls: self.tls(member),
            login: None,
            method: Method::Get,
            body: None,
            timeout: ANSWER,
        }
    }

    fn tls(&self, member: &Member) -> Option<Tls> {
        let folder = member.deploy.join("tls");
        self.scene.tls.then(|| Tls {
            ca: folder.join("ca.pem"),
            cert: Some(folder.join("cert.pem")),
            key: Some(folder.join("key.pem")),
        })
    }

    /// Statements for a member's own server, as the account that may do everything.
    pub(super) fn sql_at(
        &self,
        member: &Member,
        statements: Vec<String>,
        timeout: units::Duration,
    ) -> Result<Sql, DatabaseError> {
        let account = &member.pack.form.account;
        let address = match &account.socket {
            Some(socket) => {
                let socket = self.text(member, "the socket", socket)?;
                probe::Address::Socket(socket.into())
            }
            None => {
                let Address { host, port } = self.entry_address(member);
                probe::Address::Tcp { host, port }
            }
        };
        Ok(Sql {
            server: Server {
                protocol: match member.pack.form.protocol {
                    pack::Protocol::Postgres => probe::Protocol::Postgres,
                    _ => probe::Protocol::Mysql,
                },
                tls: match &address {
                    probe::Address::Tcp { .. } => self.tls(member),
                    probe::Address::Socket(_) => None,
                },
                address,
                user: match &self.login {
                    Some(login) => bare(&login.name).to_owned(),
                    None => account.user.clone(),
                },
                password: self.login.as_ref().and_then(|login| {
                    let password = login.password.clone()?;
                    Some(password.into())
                }),
                database: match member.pack.form.protocol {
                    pack::Protocol::Postgres => Some(account.database.clone()),
                    _ => None,
                },
            },
            statements,
            timeout,
        })
    }

    /// What a reading of a member gives, as JSON: of SQL the rows, of a command its text.
    pub(super) async fn reading(
        &self,
        host: &dyn Host,
        member: &Member,
        reading: &Reading,
        bounds: Bounds<'_>,
    ) -> Result<Value, DatabaseError> {
        let value = if let Some(url) = &reading.http {
            let url = self.text(member, "a reading", url)?;
            let answer = probe::http(host, &self.get(member, url.clone()), bounds.stop).await?;
            if !answer.is_success() {
                let status = answer.status;
                return Err(DatabaseError::Other(format!(
                    "`{url}` answers with status {status}"
                )));
            }
            serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body))
        } else if let Some(sql) = &reading.sql {
            let statement = self.text(member, "a reading", sql)?;
            let request = self.sql_at(member, vec![statement], ANSWER)?;
            let tables = probe::sql(host, &request, bounds.stop).await?;
            rows(tables)
        } else {
            let command = self.texts(member, "a reading", &reading.command)?;
            let request = command_of(member, &command, ANSWER);
            let ran: Ran = ask(host, "service-run", &request, bounds).await?;
            if !ran.is_success() {
                return Err(DatabaseError::Other(said(&ran)));
            }
            Value::String(format!("{}{}", ran.stdout, ran.stderr))
        };
        let at = reading.at.as_deref().unwrap_or("");
        let found = value.pointer(at).cloned().unwrap_or(Value::Null);
        Ok(match &reading.pattern {
            None => found,
            Some(pattern) => first_group(pattern, &found),
        })
    }
}

/// A limit of a second or more as messages tell it: without fractions.
fn whole(limit: Duration) -> Duration {
    match limit.as_secs() {
        0 => limit,
        seconds => Duration::from_secs(seconds),
    }
}

/// The rows of the last table.
pub(super) fn rows(tables: Vec<Table>) -> Value {
    let last = tables.into_iter().last().unwrap_or_default();
    serde_json::to_value(last.rows).unwrap_or_default()
}

/// What the first group of a pattern matches in a text, or in the first value of rows.
fn first_group(pattern: &str, value: &Value) -> Value {
    let value = value.pointer("/0/0").unwrap_or(value);
    let text = pack::text(value);
    let found = regex::Regex::from_str(pattern).ok().and_then(|pattern| {
        let captures = pattern.captures(&text)?;
        let group = captures.get(1).or_else(|| captures.get(0))?;
        Some(Value::String(group.as_str().to_owned()))
    });
    found.unwrap_or(Value::Null)
}
