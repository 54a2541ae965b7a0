//! The packages of a cluster: obtained once on this machine, sent once to each host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::try_join_all;

use super::install::{needed, plain};
use super::{Cluster, DatabaseError, Member};
use crate::database::Hosts;
use crate::host::transfer::Source;
use crate::host::{Bounds, Host};
use crate::pack::Programs;
use crate::package::{Arch, Origin, Package, Platform, Store, Wanted, Watch};

/// What was obtained: by component and kind of CPU.
#[derive(Default)]
pub(super) struct Obtained {
    packages: BTreeMap<(String, &'static str), (Package, Source)>,
    /// A program that takes the place of the packaged one.
    patches: BTreeMap<(String, &'static str), (Package, Source)>,
    /// Host -> its kind of CPU.
    archs: BTreeMap<String, Arch>,
}

impl Obtained {
    /// What is recorded of them.
    pub(super) fn records(&self) -> Vec<&Package> {
        let all = self.packages.values().chain(self.patches.values());
        all.map(|(package, _)| package).collect()
    }
}

impl Cluster {
    /// Obtains the packages of all members.
    pub(super) async fn obtain(
        &self,
        hosts: &Hosts,
        bounds: Bounds<'_>,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Obtained, DatabaseError> {
        let mut obtained = Obtained::default();
        let packaged = |m: &&Member| m.pack.form.programs == Programs::Packages;
        let members: Vec<&Member> = self.members.iter().filter(packaged).collect();
        let names: BTreeSet<&String> = members.iter().map(|m| &m.instance.host).collect();
        let each = names.into_iter().map(async |name| {
            let arch = arch_of(&*hosts[name], bounds).await?;
            Ok::<_, DatabaseError>((name.clone(), arch))
        });
        obtained.archs = try_join_all(each).await?.into_iter().collect();
        let store = Store::new(&self.packages);
        for member in members {
            let arch = obtained.archs[&member.instance.host];
            let key = (component(member), arch.name());
            if obtained.packages.contains_key(&key) {
                continue;
            }
            say(&format!("package {}", key.0));
            let wanted = Wanted {
                component: key.0.clone(),
                version: self.version(member)?,
                platform: Platform::linux(arch),
            };
            let watch = Watch::new(bounds.stop.clone());
            let got = get(&store, &self.origin(member)?, &wanted, &watch).await?;
            obtained.packages.insert(key.clone(), got);
            if let Some(path) = self.deployment.packages.binaries.get(&*key.0) {
                let name = member.role().program.rsplit('/').next().unwrap_or_default();
                let origin = Origin::Binary {
                    path: PathBuf::from(path),
                    name: name.to_owned(),
                };
                let got = get(&store, &origin, &wanted, &watch).await?;
                obtained.patches.insert(key, got);
            }
        }
        Ok(obtained)
    }

    /// The version of a member's package.
    fn version(&self, member: &Member) -> Result<String, DatabaseError> {
        let own = member.role().package_version.as_deref();
        if let Some(own) = own {
            return self.text(member, "the version", own);
        }
        let version = self.scene.version.clone();
        version.ok_or_else(|| {
            DatabaseError::Other(format!(
                "no version is asked for of `{}`",
                member.instance.id
            ))
        })
    }

    /// Where a member's package comes from.
    fn origin(&self, member: &Member) -> Result<Origin, DatabaseError> {
        let packages = &self.deployment.packages;
        if let Some(tarball) = packages.tarballs.get(&*component(member)) {
            return Ok(Origin::Tarball(tarball.clone()));
        }
        if let Some(offline) = &packages.offline {
            return Ok(Origin::Offline(PathBuf::from(offline)));
        }
        let mirror = packages
            .mirror
            .as_ref()
            .or(member.pack.form.mirror.as_ref());
        mirror.cloned().map(Origin::Mirror).ok_or_else(|| {
            let system = &member.pack.name;
            DatabaseError::Other(format!(
                "nobody says where the packages of {system} come from; write `packages: {{mirror: ...}}`"
            ))
        })
    }

    /// Brings the program of a member to its host.
    pub(super) async fn bring(
        &self,
        host: &dyn Host,
        member: &Member,
        obtained: &Obtained,
    ) -> Result<(), DatabaseError> {
        let Some(arch) = obtained.archs.get(&member.instance.host) else {
            return Ok(());
        };
        if member.pack.form.programs != Programs::Packages {
            return Ok(());
        }
        let key = (component(member), arch.name());
        let bin = member.deploy.join("bin");
        let unheard: crate::host::transfer::Progress = Arc::new(|_| {});
        // With another program in its place, the folder is no longer what the package has.
        let replaced = obtained.patches.get(&key);
        if let Some((package, _)) = obtained.packages.get(&key) {
            for entry in entries(&package.folder)? {
                let name = entry.file_name().unwrap_or_default().to_owned();
                let is_replaced =
                    replaced.is_some_and(|(patch, _)| patch.folder.join(&name).exists());
                if !is_replaced {
                    let source = Source::read(&entry).await?;
                    let remote = bin.join(&name);
                    host.send(&source, &remote, true, Arc::clone(&unheard))
                        .await?;
                }
            }
        }
        if let Some((patch, _)) = replaced {
            for entry in entries(&patch.folder)? {
                let source = Source::read(&entry).await?;
                let remote = bin.join(entry.file_name().unwrap_or_default());
                host.send(&source, &remote, true, Arc::clone(&unheard))
                    .await?;
            }
        }
        Ok(())
    }
}

/// The name of a member's package.
fn component(member: &Member) -> String {
    let package = member.role().package.as_ref();
    package.map_or_else(|| member.instance.role.clone(), ToString::to_string)
}

async fn get(
    store: &Store,
    origin: &Origin,
    wanted: &Wanted,
    watch: &Watch,
) -> Result<(Package, Source), DatabaseError> {
    let package = store.obtain(origin, wanted, watch).await?;
    let source = Source::read(&package.folder).await?;
    Ok((package, source))
}

fn entries(folder: &std::path::Path) -> Result<Vec<PathBuf>, DatabaseError> {
    let failed = |error: std::io::Error| {
        DatabaseError::Other(format!("cannot read `{}`: {error}", folder.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    paths.collect::<Result<_, _>>().map_err(failed)
}

async fn arch_of(host: &dyn Host, bounds: Bounds<'_>) -> Result<Arch, DatabaseError> {
    let ran = plain(host, &["/usr/bin/uname", "-m"], bounds).await?;
    needed(&ran)?;
    Arch::from_uname(&ran.stdout).ok_or_else(|| {
        let machine = ran.stdout.trim();
        let name = host.name();
        DatabaseError::Other(format!(
            "there are no packages for `{machine}`, which `{name}` is"
        ))
    })
}
