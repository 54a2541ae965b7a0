//! Snapshots: the cold copy of a deployment's data, taken once and put back before rounds.
//! A method says what is asked of the host; the work itself is done there, by [`directory`], in the agent.

pub mod directory;
