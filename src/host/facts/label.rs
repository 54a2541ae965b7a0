//! Facts in words for people.

use super::Facts;
use crate::units::Bytes;

impl Facts {
    /// What is known, each fact with its label.
    #[must_use]
    pub fn labelled(&self) -> Vec<(&'static str, String)> {
        let all = self.machine().into_iter().chain(self.system());
        all.chain(self.storage_and_network())
            .filter_map(|(label, value)| Some((label, value.filter(|v| !v.is_empty())?)))
            .collect()
    }

    fn machine(&self) -> Vec<(&'static str, Option<String>)> {
        let bytes = |n: u64| Bytes(n).to_string();
        vec![
            ("Host name", self.hostname.clone()),
            ("Operating system", self.os.clone()),
            ("Kernel", self.kernel.clone()),
            ("Architecture", self.architecture.clone()),
            ("Virtualisation", self.virtualisation.clone()),
            ("CPU", self.cpu.clone()),
            ("CPUs online", self.cpus.map(|n| n.to_string())),
            ("CPU layout", self.layout()),
            ("Frequency governor", self.governor.clone()),
            ("Memory", self.memory_bytes.map(bytes)),
            ("Memory available", self.memory_available_bytes.map(bytes)),
            ("Swap", self.swap_bytes.map(bytes)),
            ("Transparent huge pages", self.thp.clone()),
            ("Control group", self.cgroup_limits()),
        ]
    }

    fn layout(&self) -> Option<String> {
        let (sockets, cores) = (self.sockets?, self.cores?);
        let nodes = self
            .numa_nodes
            .map_or(String::new(), |n| format!(", NUMA nodes: {n}"));
        Some(format!("sockets: {sockets}, cores: {cores}{nodes}"))
    }

    fn cgroup_limits(&self) -> Option<String> {
        let group = self.cgroup.as_ref()?;
        let memory = group.memory_bytes.map(|n| format!("memory {}", Bytes(n)));
        let cpus = group.cpus.map(|n| format!("{n} CPUs"));
        let limits: Vec<_> = memory.into_iter().chain(cpus).collect();
        Some(limits.join(", "))
    }

    fn system(&self) -> Vec<(&'static str, Option<String>)> {
        let pairs = self
            .sysctls
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let running = self.services.iter().filter(|(_, runs)| **runs);
        let packages = self.packages.iter();
        let versions = packages.filter_map(|(name, v)| Some(format!("{name} {}", v.as_ref()?)));
        let limits = self.limits.as_ref().and_then(|limits| {
            let (nofile, stack) = (limits.nofile_soft?, limits.stack_soft?);
            Some(format!("{nofile} open files, {stack} bytes of stack"))
        });
        vec![
            ("Time zone", self.timezone.clone()),
            ("SELinux", self.selinux.clone()),
            (
                "Daemons",
                Some(
                    running
                        .map(|(name, _)| name.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                ),
            ),
            ("Limits", limits),
            (
                "Kernel settings",
                Some(pairs.collect::<Vec<_>>().join(", ")),
            ),
            ("Programs", Some(versions.collect::<Vec<_>>().join(", "))),
        ]
    }

    fn storage_and_network(&self) -> Vec<(&'static str, Option<String>)> {
        let bytes = |n: u64| Bytes(n).to_string();
        let file_system = self.file_system.as_ref();
        let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let disks = self.block_devices.iter().map(|disk| {
            let size = disk.size_bytes.map(|n| format!(" {}", Bytes(n)));
            let model = disk.model.as_ref().map(|model| format!(" {model}"));
            let scheduler = disk.scheduler.as_ref().map(|s| format!(" ({s})"));
            let rest = [size, model, scheduler].map(Option::unwrap_or_default);
            format!("{}{}", disk.name, rest.concat())
        });
        vec![
            ("Disks", Some(disks.collect::<Vec<_>>().join(", "))),
            (
                "File system",
                file_system.map(|f| format!("{} on {}, mounted at {}", f.kind, f.device, f.mount)),
            ),
            ("Mount options", file_system.map(|f| f.options.join(","))),
            (
                "Space",
                file_system
                    .map(|f| format!("{} free of {}", bytes(f.free_bytes), bytes(f.size_bytes))),
            ),
            (
                "Reflinks",
                file_system.and_then(|f| f.reflink).map(yes_or_no),
            ),
            ("Network interfaces", Some(self.nics.join(", "))),
        ]
    }
}
