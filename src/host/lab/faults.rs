//! Faults: what goes wrong with hosts, on request, and back again.

use std::time::Duration;

use super::locks::Mode;
use super::processes::{HostProcesses, Snapshot};
use super::{Entry, HostState, Lab, LabError, Labs, links, processes, status};

/// What to do to a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Drop all its packets, in both directions, so that its peers see silence.
    Cut,
    /// Stop all its processes where they are. Its kernel goes on: connections stay open and are acknowledged.
    Pause,
    /// Take its power: peers see silence, and every process is gone at once. Its disk stays.
    Kill,
    /// Make its network worse.
    Slow(Slowness),
    /// Undo all of these.
    Heal,
}

/// How a network is made worse, in each direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slowness {
    /// Every packet is this much later.
    pub delay: Option<Duration>,
    /// Bits in a second.
    pub rate: Option<u64>,
    /// Per cent of the packets that are lost.
    pub loss: Option<f64>,
}

impl Slowness {
    /// The queue that does it: `tbf` suffices for a rate, and is in kernels that lack `netem`.
    fn queue(&self) -> Vec<String> {
        let rate = self.rate.map(|rate| format!("{rate}bit"));
        let text = match (self.delay, self.loss, &rate) {
            (None, None, Some(rate)) => format!("tbf rate {rate} burst 32kb latency 200ms"),
            (delay, loss, rate) => {
                let delay = delay.map(|d| format!(" delay {}us", d.as_micros()));
                let loss = loss.map(|loss| format!(" loss {loss}%"));
                let rate = rate.as_ref().map(|rate| format!(" rate {rate}"));
                let parts = [delay, loss, rate].map(Option::unwrap_or_default);
                // Room for what a fast link sends during the delay.
                format!("netem limit 20000{}", parts.concat())
            }
        };
        text.split(' ').map(str::to_owned).collect()
    }
}

impl Labs {
    /// Finds a host: `LAB/HOST`, or the host alone where only one lab has it.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(&self, host: &str) -> Result<(String, String), LabError> {
        let (wanted, name) = match host.split_once('/') {
            Some((lab, name)) => (Some(lab), name),
            None => (None, host),
        };
        let mut labs = Vec::new();
        for lab in self.names()? {
            let is_wanted = wanted.is_none_or(|wanted| wanted == lab);
            // A lab that cannot be read has no hosts to name.
            let read = self.read(&lab).ok().flatten();
            if is_wanted && read.is_some_and(|read| read.host(name).is_some()) {
                labs.push(lab);
            }
        }
        match labs.len() {
            0 => Err(LabError::NoHost(host.to_owned())),
            1 => Ok((labs.swap_remove(0), name.to_owned())),
            _ => Err(LabError::Ambiguous {
                host: host.to_owned(),
                labs,
            }),
        }
    }

    /// Does something to a host, which [`Labs::find`] found; its state afterwards. Doing it twice is doing it once.
    ///
    /// # Errors
    /// The lab is being made or removed, the host is dead and cannot be paused, or the kernel lacks what it takes.
    pub fn fault(&self, lab: &str, host: &str, fault: &Fault) -> Result<HostState, LabError> {
        let _held = self.lock(lab, Mode::Beside)?;
        let missing = || LabError::NoHost(host.to_owned());
        let lab = self.read(lab)?.ok_or_else(missing)?;
        let host = lab.host(host).ok_or_else(missing)?;
        let _alone = self.lock_host(&self.paths(&lab, host).host)?;
        if !links::exists(&lab, host) {
            let (host, state) = (host.name.clone(), HostState::Absent);
            return Err(LabError::State { host, state });
        }
        match fault {
            Fault::Cut => links::set_open(&lab, host, false)?,
            Fault::Pause => pause(&lab, host)?,
            Fault::Kill => {
                // Silence first, so that no peer hears the connections being closed.
                links::set_open(&lab, host, false)?;
                processes::kill(&lab, std::slice::from_ref(host))?;
            }
            Fault::Slow(slowness) => slow(&lab, host, slowness)?,
            Fault::Heal => self.heal(&lab, host)?,
        }
        Ok(status::state(&Snapshot::take(), &lab, host))
    }

    fn heal(&self, lab: &Lab, host: &Entry) -> Result<(), LabError> {
        links::set_queue(lab, host, None)?;
        let found = HostProcesses::of(lab, host);
        // A host without one of the two is dead, or dying.
        if found.supervisors.is_empty() || found.inside.is_empty() {
            processes::kill(lab, std::slice::from_ref(host))?;
            super::cgroups::remove(&lab.cgroup(host))?;
            let note = self.paths(lab, host).lock_name;
            super::nspawn::clean(lab, host, &note)?;
            let mut child = self.start(lab, host)?;
            links::set_open(lab, host, true)?;
            return self.wait_ready(lab, host, &mut child);
        }
        processes::go_on(lab, host)?;
        links::set_open(lab, host, true)
    }
}

fn pause(lab: &Lab, host: &Entry) -> Result<(), LabError> {
    if HostProcesses::of(lab, host).inside.is_empty() {
        let (host, state) = (host.name.clone(), HostState::Killed);
        return Err(LabError::State { host, state });
    }
    processes::stop(lab, host)
}

fn slow(lab: &Lab, host: &Entry, slowness: &Slowness) -> Result<(), LabError> {
    let queue = slowness.queue();
    let set = links::set_queue(lab, host, Some(&queue));
    if set.is_err() {
        // The first direction may have been changed.
        links::set_queue(lab, host, None)?;
    }
    match set {
        Err(LabError::Tool { said, .. })
            if queue[0] == "netem" && said.contains("qdisc kind is unknown") =>
        {
            Err(LabError::Kernel(
                "delay or lose packets: it was built without CONFIG_NET_SCH_NETEM; a rate alone works without it",
            ))
        }
        set => set,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowness_becomes_the_simplest_queue_that_does_it() {
        let queue = |slowness: Slowness| slowness.queue().join(" ");
        let rate = Some(10_000_000);
        let only_rate = Slowness {
            rate,
            ..Slowness::default()
        };
        assert_eq!(
            queue(only_rate),
            "tbf rate 10000000bit burst 32kb latency 200ms"
        );
        let all = Slowness {
            delay: Some(Duration::from_millis(50)),
            rate,
            loss: Some(1.5),
        };
        assert_eq!(
            queue(all),
            "netem limit 20000 delay 50000us loss 1.5% rate 10000000bit"
        );
    }

    #[test]
    fn a_host_is_found_by_its_name_or_with_its_lab() {
        let folder = tempfile::tempdir().unwrap();
        let labs = Labs::new(folder.path(), "/bin/assay");
        for name in ["lab", "lab-b"] {
            std::fs::create_dir(labs.of(name)).unwrap();
            labs.write(&super::super::description::tests::sample(name, 2))
                .unwrap();
        }
        let pair = |lab: &str, host: &str| (lab.to_owned(), host.to_owned());
        assert_eq!(labs.find("lab1").unwrap(), pair("lab", "lab1"));
        assert_eq!(labs.find("lab-b/lab-b2").unwrap(), pair("lab-b", "lab-b2"));
        for wrong in ["lab3", "lab/lab-b1", "nosuch/lab1", "lab/"] {
            assert!(
                matches!(labs.find(wrong), Err(LabError::NoHost(_))),
                "{wrong}"
            );
        }
    }
}
