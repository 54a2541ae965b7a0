//! A host at the other end of a channel. There `assay agent serve` carries out what is asked, many things at once over one
//! channel; here a [`Link`] asks. What must outlive the channel is a [job](jobs).

mod jobs;
mod link;
mod serve;
mod supervise;
mod wire;

pub(super) use link::{Link, Refused, Survivor, Task};
pub use serve::serve;
pub use supervise::supervise;
pub(super) use wire::{Ending, HELLO};
