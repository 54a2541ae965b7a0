//! Snapshots: the cold copy of a deployment's data, taken once and put back before rounds.
//! A method says what is asked of the host; the work itself is done there, by [`directory`], in the agent.

mod agent;
mod choice;
mod copy;
pub mod directory;
mod error;
mod method;
mod reflink;

pub use agent::{MarkedDirectory, agent};
pub use choice::{Choice, ChoiceError, choose};
pub use copy::Copy;
pub use directory::{Capabilities, Cloning, Done, Marker, Order, Progress, Stage};
pub use error::SnapshotError;
pub use method::{Attention, SnapshotMethod};
pub use reflink::Reflink;
