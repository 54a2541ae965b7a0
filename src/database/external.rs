//! A cluster that is there already: its variables are set and loads are run; it is neither deployed nor stopped, and no file
//! of it is touched. It is asked by SQL only, from the first client.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cluster::{Cluster, address_of, directories, revealed};
use super::{Database, DatabaseError, Done, Effective, Parts, Place, Work};
use crate::pack::{Condition, Pack, Reading};
use crate::plan::{Address, Deployment, Instance, Target};
use crate::spec::{ResourceControl, Settle};

/// A cluster that is there already.
pub(super) struct External {
    cluster: Cluster,
    /// What is not asked of it, since SQL does not tell.
    unasked: Vec<String>,
}

impl External {
    /// The cluster of a deployment.
    ///
    /// # Errors
    /// There is no pack of its system, or the pack does not say where clients connect to.
    pub(super) fn new(parts: Parts<'_>) -> Result<Self, DatabaseError> {
        let mut deployment = revealed(parts.deployment, parts.reveal);
        let mut pack = Pack::clone(&*parts.packs.get(&deployment.system)?);
        let unasked = by_sql_only(&mut pack);
        deployment.instances = instances(&deployment, &pack)?;
        // The first user is who assay and drivers are; it is there already.
        let has_login = !deployment.users.is_empty();
        let login = has_login.then(|| deployment.users.remove(0));
        let hosts = directories(parts.hosts);
        let cluster = Cluster::made(parts, hosts, deployment, Arc::new(pack))?;
        Ok(Self {
            cluster: cluster.made_by_others(login),
            unasked,
        })
    }

    async fn find(&self, work: Work<'_>) -> Result<Effective, DatabaseError> {
        let mut effective = self.cluster.found(work).await?;
        effective.unasked.extend(self.unasked.iter().cloned());
        Ok(effective)
    }
}

impl Database for External {
    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    fn deploy<'a>(&'a self, _fresh: bool, work: Work<'a>) -> Done<'a, Value> {
        let _ = work;
        Box::pin(async { Ok(Value::Null) })
    }

    fn start<'a>(&'a self, work: Work<'a>) -> Done<'a, Effective> {
        Box::pin(self.find(work))
    }

    fn equip<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        self.cluster.equip(work)
    }

    fn analyze<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        self.cluster.analyze(work)
    }

    fn settle<'a>(&'a self, settle: &'a Settle, work: Work<'a>) -> Done<'a, Option<String>> {
        self.cluster.settle(settle, work)
    }

    fn stop<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        let _ = work;
        Box::pin(async { Ok(()) })
    }

    fn target(&self) -> Target {
        self.cluster.target()
    }
}

/// Its entries, as the first client sees them.
fn instances(deployment: &Deployment, pack: &Pack) -> Result<Vec<Instance>, DatabaseError> {
    let silent = || {
        let message = format!("the pack of {} says no `entry` for clients", pack.name);
        DatabaseError::Other(message)
    };
    let entry = pack.form.entry.as_ref().ok_or_else(silent)?;
    let role = pack.role(entry.role.as_str()).ok_or_else(silent)?;
    let client = deployment.clients.first().cloned().unwrap_or_default();
    let ports = || {
        role.ports
            .iter()
            .map(|(name, port)| (name.to_string(), *port))
    };
    let settings = role.settings.iter();
    let settings: BTreeMap<String, Value> = settings
        .map(|(name, value)| (name.to_string(), value.0.clone()))
        .collect();
    let instance = |text: &String| {
        let Address { host, port } = address_of(text);
        let mut ports: BTreeMap<String, u16> = ports().collect();
        ports.insert(entry.port.to_string(), port);
        Instance {
            id: format!("{}-{port}@{host}", entry.role),
            system: pack.name.clone(),
            role: entry.role.to_string(),
            host: client.clone(),
            address: host,
            port,
            ports,
            deploy: PathBuf::new(),
            data: None,
            snapshot: None,
            log: PathBuf::new(),
            settings: settings.clone(),
            config: Value::Object(Map::new()),
            resource_control: ResourceControl::default(),
        }
    };
    Ok(deployment.deploy.addresses.iter().map(instance).collect())
}

/// Leaves of a pack what can be asked of its entry by SQL and changes nothing but what the experiment says. Returns what
/// that leaves out.
fn by_sql_only(pack: &mut Pack) -> Vec<String> {
    let form = &mut pack.form;
    let mut unasked = Vec::new();
    form.account.socket = None;
    let entry = form.entry.as_ref().map(|entry| entry.role.clone());
    for (name, role) in &mut form.roles {
        let is_entry = entry.as_ref() == Some(name);
        let told = |reading: &Option<Reading>| {
            let by_sql = reading.as_ref().is_none_or(|r| r.sql.is_some());
            by_sql && (is_entry || reading.is_none())
        };
        for (what, reading) in [
            ("version", &mut role.version),
            ("configuration", &mut role.effective),
        ] {
            if !told(reading) {
                unasked.push(format!("the {what} of `{name}`"));
                *reading = None;
            }
        }
        role.ready.retain(|condition| condition.sql.is_some());
        if role.ready.is_empty() {
            role.ready.push(Condition {
                sql: Some("SELECT 1".to_owned()),
                ..Condition::default()
            });
        }
    }
    let of_entry = |role: &Option<_>| role.is_none() || *role == entry;
    form.settle.retain(|condition| {
        let asked = condition.sql.is_some() && of_entry(&condition.role);
        if !asked {
            let name = condition.name.as_deref().unwrap_or("a condition");
            unasked.push(format!("before a round, whether {name}"));
        }
        asked
    });
    for statement in form.after_first_start.drain(..) {
        unasked.push(format!("to see to it that {}", statement.name));
    }
    unasked
}
