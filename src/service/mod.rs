//! The programs of a deployment on one host: its directories, files, systemd units and processes. The work is done there, by
//! agents; whatever they change carries the deployment's [marker](crate::snapshot::Marker), and may be asked for again.

mod agent;
mod cgroup;
mod error;
mod folder;
mod header;
mod install;
mod name;
mod owner;
mod program;
mod record;
mod removal;
mod start;
mod state;
mod stop;
mod systemd;
mod tail;
mod unit;
mod units;

pub use agent::{Here, agent};
pub use error::{Printed, ServiceError};
pub use install::{Directory, File, Install, Installed, UnitFile, install};
pub use name::{unit_name, unit_prefix};
pub use program::{Ran, Run, run};
pub use removal::{Left, Removal, Remove, Removed, removal, remove};
pub use start::{Start, start};
pub use state::{Activity, Exit, State, Status, status};
pub use stop::{Stop, Stopped, stop};
pub use systemd::Systemd;
pub use unit::{Limits, Restart, Unit, UnitError};
