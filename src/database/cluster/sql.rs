//! What is done to a cluster by SQL: variables, users, databases, statistics, settings that are kept with the data.

use serde_json::{Value, json};

use super::ask::{STATEMENT, rows};
use super::{Cluster, DatabaseError, Member, Work};
use crate::database::Hosts;
use crate::host::Bounds;
use crate::pack;
use crate::pack::keys::{Kind, Scope};
use crate::probe;

impl Cluster {
    /// The member that statements are sent to.
    fn speaker(&self) -> Option<&Member> {
        self.entries().into_iter().next()
    }

    /// Sends statements as the account that may do everything. Returns the rows of the last.
    pub(super) async fn tell(
        &self,
        hosts: &Hosts,
        statements: Vec<String>,
        bounds: Bounds<'_>,
    ) -> Result<Value, DatabaseError> {
        self.tell_in(hosts, None, statements, bounds).await
    }

    /// The same in a database, which matters where a connection sees only one.
    async fn tell_in(
        &self,
        hosts: &Hosts,
        database: Option<&str>,
        statements: Vec<String>,
        bounds: Bounds<'_>,
    ) -> Result<Value, DatabaseError> {
        let Some(member) = self.speaker().filter(|_| !statements.is_empty()) else {
            return Ok(json!([]));
        };
        let mut request = self.sql_at(member, statements, STATEMENT)?;
        if let Some(database) = database {
            request.server.database = Some(database.to_owned());
        }
        let host = &*hosts[&member.instance.host];
        let tables = probe::sql(host, &request, bounds.stop).await;
        let tables =
            tables.map_err(|error| DatabaseError::from(error).of("SQL failed on", member))?;
        Ok(rows(tables))
    }

    /// A text of the pack with more to see.
    fn with(&self, what: &str, text: &str, more: &Value) -> Result<String, DatabaseError> {
        let mut context = self.speaker().map_or(json!({}), |m| m.context.clone());
        if let (Some(context), Some(more)) = (context.as_object_mut(), more.as_object()) {
            context.extend(more.clone());
        }
        Ok(self.scene.render(what, text, &context)?)
    }

    /// Sets every variable, reads it back and compares.
    pub(super) async fn set_variables(
        &self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let sql = &self.pack.form.sql;
        let (Some(set), Some(_)) = (&sql.set_variable, &sql.read_variable) else {
            if let Some(name) = self.deployment.variables.keys().next() {
                let system = &self.pack.name;
                let message = format!("the pack of {system} does not say how `{name}` is set");
                return Err(DatabaseError::Other(message));
            }
            return Ok(());
        };
        let statements = self.deployment.variables.iter().map(|(name, value)| {
            let more = json!({ "name": name, "value": value });
            self.with("set_variable", set, &more)
        });
        let statements = statements.collect::<Result<Vec<_>, _>>()?;
        self.tell(hosts, statements, bounds).await?;
        self.set_on_each(hosts, set, bounds).await?;
        for (name, wanted) in &self.deployment.variables {
            let found = self.variable(hosts, name, bounds).await?;
            if !is_same(wanted, &found) {
                return Err(DatabaseError::NotEffective {
                    of: self.pack.name.clone(),
                    name: format!("the variable `{name}`"),
                    wanted: pack::text(wanted),
                    found,
                });
            }
        }
        Ok(())
    }

    /// Sets those variables on every server that reach only the one that they are set on.
    async fn set_on_each(
        &self,
        hosts: &Hosts,
        set: &str,
        bounds: Bounds<'_>,
    ) -> Result<(), DatabaseError> {
        let Some(keys) = &self.pack.keys else {
            return Ok(());
        };
        let mut statements = Vec::new();
        for (name, value) in &self.deployment.variables {
            if keys.scope(name) == Some(Scope::Instance) {
                let more = json!({ "name": name, "value": value });
                statements.push(self.with("set_variable", set, &more)?);
            }
        }
        for member in self
            .entries()
            .into_iter()
            .skip(1)
            .filter(|_| !statements.is_empty())
        {
            let request = self.sql_at(member, statements.clone(), STATEMENT)?;
            let host = &*hosts[&member.instance.host];
            let told = probe::sql(host, &request, bounds.stop).await;
            told.map_err(|error| DatabaseError::from(error).of("SQL failed on", member))?;
        }
        Ok(())
    }

    /// The value of a variable.
    pub(super) async fn variable(
        &self,
        hosts: &Hosts,
        name: &str,
        bounds: Bounds<'_>,
    ) -> Result<String, DatabaseError> {
        let read = self
            .pack
            .form
            .sql
            .read_variable
            .as_deref()
            .unwrap_or_default();
        let statement = self.with("read_variable", read, &json!({ "name": name }))?;
        let rows = self.tell(hosts, vec![statement], bounds).await?;
        let row = rows.pointer("/0").and_then(Value::as_array);
        let value = row.and_then(|row| row.last());
        Ok(value.map_or_else(|| "not there".to_owned(), pack::text))
    }

    /// Users, the drivers' database, and what the pack does once.
    pub(super) async fn prepare_for_use(&self, work: Work<'_>) -> Result<(), DatabaseError> {
        let Work { hosts, bounds, say } = work;
        for statement in &self.pack.form.after_first_start {
            if self.applies(statement.versions.as_deref()) {
                say(&statement.name);
                let sql = self.with(&statement.name, &statement.sql, &json!({}))?;
                self.tell(hosts, vec![sql], bounds).await?;
            }
        }
        let sql = &self.pack.form.sql;
        let account = &self.pack.form.account;
        let database = self
            .deployment
            .database
            .as_ref()
            .unwrap_or(&account.database);
        say("database and users");
        for text in &sql.create_database {
            let statement = self.with("create_database", text, &json!({ "database": database }))?;
            self.tell(hosts, vec![statement], bounds).await?;
        }
        for user in &self.deployment.users {
            let (name, from) = user.name.split_once('@').unwrap_or((&user.name, "%"));
            let of_user = json!({
                "user": name,
                "from": from,
                "password": user.password.clone().unwrap_or_default(),
                "database": database,
            });
            let mut statements = Vec::new();
            for text in &sql.create_user {
                statements.push(self.with("create_user", text, &of_user)?);
            }
            if user.grants.is_empty() {
                let text = sql.grant_all.as_deref().unwrap_or_default();
                statements.push(self.with("grant_all", text, &of_user)?);
            }
            for grant in &user.grants {
                let mut of_grant = of_user.clone();
                of_grant["grant"] = grant.clone().into();
                let text = sql.grant.as_deref().unwrap_or_default();
                statements.push(self.with("grant", text, &of_grant)?);
            }
            statements.retain(|statement| !statement.trim().is_empty());
            self.tell(hosts, statements, bounds).await?;
        }
        Ok(())
    }

    /// Gathers the statistics of every table of the drivers' database.
    pub(super) async fn gather_statistics(&self, work: Work<'_>) -> Result<(), DatabaseError> {
        let Work { hosts, bounds, say } = work;
        let sql = &self.pack.form.sql;
        let (Some(list), Some(analyze)) = (&sql.tables, &sql.analyze) else {
            let system = &self.pack.name;
            let message = format!("the pack of {system} does not say how tables are analyzed");
            return Err(DatabaseError::Other(message));
        };
        let account = &self.pack.form.account;
        let database = self
            .deployment
            .database
            .as_ref()
            .unwrap_or(&account.database);
        let statement = self.with("tables", list, &json!({ "database": database }))?;
        let within = Some(&**database);
        let tables = self.tell_in(hosts, within, vec![statement], bounds).await?;
        for row in tables.as_array().into_iter().flatten() {
            let Some(table) = row.pointer("/0").and_then(Value::as_str) else {
                continue;
            };
            say(&format!("analyze {table}"));
            let more = json!({ "database": database, "table": table });
            let statement = self.with("analyze", analyze, &more)?;
            self.tell_in(hosts, within, vec![statement], bounds).await?;
        }
        Ok(())
    }
}

/// Whether a value as a database tells it is the one that was asked for: `ON` is `1` and `true`, `1.0` is `1`.
pub(super) fn is_same(wanted: &Value, found: &str) -> bool {
    let normal = |text: &str| {
        let text = text.trim().trim_matches('"').to_ascii_lowercase();
        match &*text {
            "on" | "true" | "yes" => "1".to_owned(),
            "off" | "false" | "no" => "0".to_owned(),
            _ => text,
        }
    };
    let (wanted, found) = (normal(&pack::text(wanted)), normal(found));
    let number = |text: &str| text.parse::<f64>().ok();
    let written = (Value::from(&*wanted), Value::from(&*found));
    wanted == found
        || matches!((number(&wanted), number(&found)), (Some(a), Some(b)) if (a - b).abs() < 1e-9)
        || [Kind::Size, Kind::Duration]
            .into_iter()
            .any(|kind| kind.same(&written.0, &written.1))
}
