//! What a workload is to the engine: operations with names, statements to prepare, and a client for each thread.

use super::LoadError;
use super::backend::{Connection, Failure, Session};
use super::oltp::Oltp;
use super::ycsb::Ycsb;
use crate::plan::LoadRun;
use crate::spec::Schema;

/// A workload, shared by the threads.
pub(super) trait Workload: Sync {
    /// The names of its operations, in name order; results are kept by position.
    fn operations(&self) -> &'static [&'static str];

    /// The statements that every session prepares; the clients run them by position.
    fn statements(&self) -> Vec<String>;

    /// The client of one thread.
    fn client(&self, seed: u64, thread: u32) -> Box<dyn Client + '_>;
}

/// One thread's side of a workload.
pub(super) trait Client {
    /// Chooses the next operation and what it needs, before its time starts; gives its position.
    fn draw(&mut self) -> usize;

    /// Carries out the operation drawn last.
    ///
    /// # Errors
    /// The operation failed; no transaction is left open.
    fn execute(&mut self, session: &mut dyn Session) -> Result<(), Failure>;
}

/// The workload of `run`, after a look whether the data it wants are there.
///
/// # Errors
/// Workload and dataset do not fit each other, or the tables are missing or smaller than said.
pub(super) fn open(
    run: &LoadRun,
    connection: &mut dyn Connection,
) -> Result<Box<dyn Workload>, LoadError> {
    let workload = run.workload.kind();
    if workload.schema() != run.dataset.schema() {
        let why = format!("`{workload}` does not work on the tables of its dataset");
        return Err(LoadError::Job(why));
    }
    Ok(match workload.schema() {
        Schema::Ycsb => Box::new(Ycsb::open(run, connection)?),
        Schema::Sysbench => Box::new(Oltp::open(run, connection)?),
    })
}
