//! What a run leaves: the folder's layout and format, its events, writer, reader and checksums.

mod event;
mod manifest;
mod result;

pub use event::{Entry, Event, Status};
pub use manifest::{FORMAT, Manifest};
pub use result::{Measured, Numbers, RoundResult};
