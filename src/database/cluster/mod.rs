//! A cluster: the processes of a deployment on their hosts, as the system's pack says they are rendered, started, asked and
//! stopped. What no pack can say is in [`tidb`].

mod ask;
mod config_file;
mod context;
mod effective;
mod install;
mod packages;
mod render;
mod settle;
mod spread;
mod sql;
mod start;
mod status;
mod stop;
mod tidb;
mod tls;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use self::context::Scene;
pub use self::render::Rendered;
pub use self::spread::{Connections, Spread};
pub use self::status::InstanceStatus;
use super::{Database, DatabaseError, Done, Effective, Hosts, Parts, Place, Process, Work};
use crate::host::Host;
use crate::pack::{Pack, Protocol, Role};
use crate::plan::{self, Address, Deployment, Instance, SqlTarget, Target};
use crate::service::Removed;
use crate::service::unit_name;
use crate::snapshot::Marker;
use crate::spec::{Settle, User};

/// An instance with all that is known of it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance: Instance,
    pub(super) pack: Arc<Pack>,
    pub(super) deploy: PathBuf,
    pub(super) data: Option<PathBuf>,
    pub(super) snapshot: Option<PathBuf>,
    pub(super) log: PathBuf,
    pub(super) unit: String,
    /// The account that it runs as.
    pub(super) user: Option<String>,
    /// Its program: absolute, or a template.
    pub(super) program: PathBuf,
    /// What templates see, filled in once all members are known.
    pub(super) context: Value,
}

impl Member {
    fn role(&self) -> &Role {
        let role = self.pack.role(&self.instance.role);
        role.expect("an instance was made from its role")
    }

    /// The component in `config` whose tunables it takes.
    pub(super) fn component(&self) -> &str {
        let component = self.role().component.as_ref();
        component.map_or(&*self.instance.role, |name| name.as_str())
    }
}

/// A deployed cluster.
pub struct Cluster {
    scene: Scene,
    deployment: Deployment,
    pack: Arc<Pack>,
    /// In the order in which they are started.
    members: Vec<Member>,
    /// Who statements are sent as, where it is not the pack's account.
    login: Option<User>,
    /// Whether somebody else made it: what it does not tell is no failure.
    is_foreign: bool,
    /// Host -> the host's directory for assay.
    directories: BTreeMap<String, PathBuf>,
    /// The folder of packages on this machine.
    packages: PathBuf,
    /// Its certificates, if it speaks TLS.
    trust: tls::Trust,
}

impl Cluster {
    /// The cluster of a deployment.
    ///
    /// # Errors
    /// A pack is not there, or a text of it cannot be rendered.
    pub fn new(parts: Parts<'_>) -> Result<Self, DatabaseError> {
        let directories = directories(parts.hosts);
        Self::on(parts, directories)
    }

    /// The cluster on hosts of which only the directories are known.
    ///
    /// # Errors
    /// A pack is not there, or a text of it cannot be rendered.
    pub fn on(
        parts: Parts<'_>,
        directories: BTreeMap<String, PathBuf>,
    ) -> Result<Self, DatabaseError> {
        let deployment = revealed(parts.deployment, parts.reveal);
        let pack = parts.packs.get(&deployment.system)?;
        Self::made(parts, directories, deployment, pack)
    }

    /// The cluster of a deployment whose secrets are revealed, of a system as `pack` says it is.
    pub(super) fn made(
        parts: Parts<'_>,
        directories: BTreeMap<String, PathBuf>,
        deployment: Deployment,
        pack: Arc<Pack>,
    ) -> Result<Self, DatabaseError> {
        let entry = pack.form.entry.as_ref();
        let mut cluster = Self {
            scene: Scene {
                marker: parts.marker(),
                system: pack.name.clone(),
                version: deployment.version.clone(),
                tls: deployment.tls,
                entry: entry.map(|e| (e.role.to_string(), e.port.to_string())),
            },
            members: Vec::new(),
            login: None,
            is_foreign: false,
            directories,
            packages: parts.packages.to_owned(),
            trust: tls::Trust::default(),
            pack,
            deployment,
        };
        for instance in &cluster.deployment.instances {
            let pack = match instance.system == cluster.pack.name {
                true => Arc::clone(&cluster.pack),
                false => parts.packs.get(&instance.system)?,
            };
            cluster.members.push(cluster.member(instance, pack));
        }
        cluster.sort();
        let of_all = cluster.scene.of_all(&cluster.members);
        let shown = cluster.members.iter();
        let contexts: Vec<Value> = shown
            .map(|member| cluster.scene.context(member, &of_all))
            .collect::<Result<_, _>>()?;
        for (member, context) in cluster.members.iter_mut().zip(contexts) {
            member.context = context;
        }
        Ok(cluster)
    }

    /// The same cluster, which somebody else made, asked as `login`.
    pub(super) fn made_by_others(mut self, login: Option<User>) -> Self {
        self.is_foreign = true;
        self.login = login;
        self
    }

    /// The same cluster with other names of its units, which run as `user`.
    pub(super) fn with_units(mut self, user: &str, name: impl Fn(&Instance) -> String) -> Self {
        for member in &mut self.members {
            member.unit = name(&member.instance);
            member.user = Some(user.to_owned());
        }
        self
    }

    /// In the order in which they are started.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// What it is made from, secrets revealed.
    pub(super) fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    fn member(&self, instance: &Instance, pack: Arc<Pack>) -> Member {
        let none = PathBuf::new();
        let directory = self.directories.get(&instance.host).unwrap_or(&none);
        let deploy = directory.join(&instance.deploy);
        let role = pack.role(&instance.role);
        let program = role.map_or("", |role| &*role.program);
        let is_whole = program.starts_with('/') || program.starts_with("{{");
        let is_balancer = pack.form.protocol == Protocol::Proxy;
        let user = match is_balancer {
            // A balancer stands before a system, and is not part of it.
            true => pack.form.user.as_ref().map(ToString::to_string),
            false => self.deployment.run_as.clone(),
        };
        Member {
            unit: unit_name(&self.scene.marker, &instance.role, instance.port),
            program: match is_whole {
                true => PathBuf::from(program),
                false => deploy.join(program),
            },
            data: instance.data.as_ref().map(|data| directory.join(data)),
            snapshot: instance.snapshot.as_ref().map(|s| directory.join(s)),
            log: directory.join(&instance.log),
            deploy,
            user,
            context: Value::Null,
            instance: instance.clone(),
            pack,
        }
    }

    /// Puts the members into the order in which they are started: a system before its balancer.
    fn sort(&mut self) {
        let order: Vec<String> = self
            .pack
            .start_order()
            .iter()
            .map(ToString::to_string)
            .collect();
        let own = self.pack.name.clone();
        let place = |member: &Member| {
            let place = order.iter().position(|role| *role == member.instance.role);
            let is_balancer = member.instance.system != own;
            (is_balancer, place.unwrap_or(order.len()))
        };
        self.members.sort_by_key(place);
    }

    /// The members of one role after the other, in the order in which they are started.
    fn stages(&self) -> Vec<&[Member]> {
        self.members
            .chunk_by(|a, b| {
                (&a.instance.system, &a.instance.role) == (&b.instance.system, &b.instance.role)
            })
            .collect()
    }

    /// The deployment's folder on a host.
    fn base(&self, host: &str) -> PathBuf {
        let marker = &self.scene.marker;
        self.directories[host]
            .join(&marker.experiment)
            .join(&marker.deployment)
    }

    /// The instances that clients of the system itself connect to.
    fn entries(&self) -> Vec<&Member> {
        let Some((role, _)) = &self.scene.entry else {
            return Vec::new();
        };
        let entries = self.members.iter();
        entries
            .filter(|m| m.instance.role == *role && m.instance.system == self.pack.name)
            .collect()
    }

    /// The address and port of an entry.
    fn entry_address(&self, member: &Member) -> Address {
        let port = self.scene.entry.as_ref().map(|(_, port)| port);
        let port = port.and_then(|port| member.instance.ports.get(port));
        Address {
            host: member.instance.address.clone(),
            port: port.copied().unwrap_or(member.instance.port),
        }
    }

    /// The addresses of a proxy that belongs to the system, where it has one.
    fn gateways(&self) -> Vec<Address> {
        let Some(gateway) = &self.pack.form.gateway else {
            return Vec::new();
        };
        let members = self.members.iter().filter(|m| {
            m.instance.system == self.pack.name && m.instance.role == gateway.role.as_str()
        });
        members
            .filter_map(|m| {
                Some(Address {
                    host: m.instance.address.clone(),
                    port: *m.instance.ports.get(gateway.port.as_str())?,
                })
            })
            .collect()
    }

    /// Where drivers connect to: the balancer, the system's own proxy, or every entry.
    fn addresses(&self) -> Vec<Address> {
        let balancer = self.deployment.balancer.as_ref();
        if let Some(address) = balancer.and_then(|b| b.address.as_deref()) {
            return vec![address_of(address)];
        }
        if let Some(system) = balancer.and_then(|b| b.system.as_ref()) {
            let member = self.members.iter().find(|m| m.instance.system == *system);
            return member
                .map(|m| Address {
                    host: m.instance.address.clone(),
                    port: m.instance.port,
                })
                .into_iter()
                .collect();
        }
        if !self.deployment.deploy.addresses.is_empty() {
            let named = self.deployment.deploy.addresses.iter();
            return named.map(|text| address_of(text)).collect();
        }
        let gateways = self.gateways();
        if !gateways.is_empty() {
            return gateways;
        }
        let entries = self.entries();
        entries.into_iter().map(|m| self.entry_address(m)).collect()
    }

    /// What marks its folders as its own.
    #[must_use]
    pub fn marker(&self) -> &Marker {
        &self.scene.marker
    }
}

/// The directories of hosts for assay.
pub(super) fn directories(hosts: &Hosts) -> BTreeMap<String, PathBuf> {
    let directory =
        |(name, host): (&String, &Arc<dyn Host>)| (name.clone(), host.directory().to_owned());
    hosts.iter().map(directory).collect()
}

/// A host and its port, `[::1]:4000`; without a port, 0.
pub(super) fn address_of(text: &str) -> Address {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    Address {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: port.parse().unwrap_or(0),
    }
}

/// A user's name without the hosts that it may come from.
fn bare(user: &str) -> &str {
    user.split_once('@').map_or(user, |(name, _)| name)
}

/// The deployment with the values of secrets in place of their names.
pub(super) fn revealed(deployment: &Deployment, reveal: &dyn Fn(&str) -> String) -> Deployment {
    fn walk(value: &mut Value, reveal: &dyn Fn(&str) -> String) {
        match value {
            Value::String(text) if text.contains("${env:") => *text = reveal(text),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, reveal)),
            Value::Object(map) => map.values_mut().for_each(|item| walk(item, reveal)),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(deployment).expect("a deployment is plain data");
    walk(&mut value, reveal);
    serde_json::from_value(value).expect("a deployment with other texts is one")
}

impl Database for Cluster {
    fn places(&self) -> Vec<Place> {
        let place = |member: &Member| {
            Some(Place {
                host: member.instance.host.clone(),
                data: member.data.clone()?,
                snapshot: member.snapshot.clone()?,
            })
        };
        self.members.iter().filter_map(place).collect()
    }

    fn deploy<'a>(&'a self, fresh: bool, work: Work<'a>) -> Done<'a, Value> {
        Box::pin(async move {
            let done = self.install(fresh, work).await;
            self.trust.forget_authority();
            done
        })
    }

    fn start<'a>(&'a self, work: Work<'a>) -> Done<'a, Effective> {
        Box::pin(self.bring_up(work))
    }

    fn equip<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        Box::pin(self.prepare_for_use(work))
    }

    fn analyze<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        Box::pin(self.gather_statistics(work))
    }

    fn settle<'a>(&'a self, settle: &'a Settle, work: Work<'a>) -> Done<'a, Option<String>> {
        Box::pin(self.become_quiet(settle, work))
    }

    fn processes<'a>(&'a self, work: Work<'a>) -> Done<'a, Vec<Process>> {
        Box::pin(self.running(work))
    }

    fn status<'a>(&'a self, work: Work<'a>) -> Done<'a, Vec<InstanceStatus>> {
        Box::pin(self.instances(work))
    }

    fn remove<'a>(
        &'a self,
        dry_run: bool,
        keep_data: bool,
        work: Work<'a>,
    ) -> Done<'a, BTreeMap<String, Removed>> {
        Box::pin(self.clear_away(dry_run, keep_data, work))
    }

    fn spread<'a>(&'a self, work: Work<'a>) -> Done<'a, Option<Spread>> {
        Box::pin(self.connections(work))
    }

    fn stop<'a>(&'a self, work: Work<'a>) -> Done<'a, ()> {
        Box::pin(self.bring_down(work))
    }

    fn target(&self) -> Target {
        let account = &self.pack.form.account;
        let login = self.login.as_ref().or(self.deployment.users.first());
        let (user, password) = match login {
            Some(user) => (bare(&user.name).to_owned(), user.password.clone()),
            None => (account.user.clone(), None),
        };
        let database = self
            .deployment
            .database
            .as_ref()
            .unwrap_or(&account.database);
        Target::Sql(SqlTarget {
            protocol: match self.pack.form.protocol {
                Protocol::Postgres => plan::Protocol::Postgres,
                Protocol::Mysql
                | Protocol::Proxy
                | Protocol::Cql
                | Protocol::Mongodb
                | Protocol::None => plan::Protocol::Mysql,
            },
            addresses: self.addresses(),
            user,
            password,
            database: database.clone(),
            tls: self.trust.client(),
        })
    }
}
