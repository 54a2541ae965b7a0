//! The items of a pre-flight check: each a function from a host and what is wanted of it to what was found.

mod client;
mod clock;
mod cpu;
mod kernel;
mod leftovers;
mod limits;
mod memory;
mod network;
mod services;
mod storage;
mod system;

use super::{Finding, Fix, HostView, Status, Wanted};

/// Looks at one item; nothing is found of one that is not wanted.
type Item = fn(&HostView<'_>, &Wanted) -> Vec<Finding>;

/// All items, in the order in which people look at a host.
pub(super) const ITEMS: [Item; 27] = [
    clock::offset,
    clock::daemon,
    clock::timezone,
    system::release,
    system::selinux,
    system::epoll_exclusive,
    cpu::threads,
    cpu::governor,
    memory::size,
    memory::swap,
    kernel::huge_pages,
    kernel::settings,
    limits::open_files,
    limits::stack,
    services::irqbalance,
    services::firewalld,
    services::numactl,
    network::speed,
    network::free_ports,
    storage::directory,
    storage::file_system,
    storage::mount_options,
    storage::one_instance,
    storage::room,
    client::ports,
    client::open_files,
    leftovers::leftovers,
];

/// What is known of an item.
struct Known<'a> {
    item: &'a str,
    /// The value; `None` if nobody can tell.
    found: Option<String>,
    wanted: String,
    why: &'a str,
    fix: Option<Fix>,
}

impl Known<'_> {
    /// The finding, if it is as wanted or not; a value that is not known is neither.
    fn is(self, as_wanted: bool, otherwise: Status) -> Vec<Finding> {
        let status = match (&self.found, as_wanted) {
            (None, _) => Status::Unknown,
            (Some(_), true) => Status::Ok,
            (Some(_), false) => otherwise,
        };
        vec![Finding {
            item: self.item.to_owned(),
            status,
            found: self.found.unwrap_or_else(|| "unknown".to_owned()),
            wanted: self.wanted,
            why: self.why.to_owned(),
            fix: self
                .fix
                .filter(|_| matches!(status, Status::Warn | Status::Fail)),
        }]
    }
}

fn by_hand(what: impl Into<String>) -> Option<Fix> {
    Some(Fix::ByHand { what: what.into() })
}

fn on_or_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}
