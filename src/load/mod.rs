//! The native driver's engine: loads datasets and runs workloads, YCSB A to F and sysbench's OLTP set, in threads of its
//! own. It carries out a [`Job`] and leaves the files of a [`LoadResult`](crate::measurement::LoadResult).

mod backend;
mod distribution;
mod engine;
#[cfg(test)]
mod goodness;
mod loading;
mod oltp;
mod random;
#[cfg(test)]
mod testing;
pub mod tool;
mod workload;
mod ycsb;

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use self::backend::{Backend, Null, Sqlite};
pub use self::backend::{ErrorKind, Failure};
use self::engine::Settings;
use crate::plan::{Job, LoadRun, Progress, Protocol, Target, Work};
use crate::spec::{Dataset, Schema};

/// What a job came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// The dataset is in the database.
    Loaded {
        /// Rows written.
        rows: u64,
        /// Time it took.
        seconds: f64,
    },
    /// The workload was measured; its files are written.
    Measured {
        /// Operations that succeeded in the window.
        operations: u64,
        /// Operations that failed in the window.
        errors: u64,
        /// Length of the window.
        seconds: f64,
    },
}

/// A job that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job contradicts itself.
    #[error("the job cannot be run: {0}")]
    Job(String),
    /// A database that it does not speak to.
    #[error("the native driver cannot drive a {0} server yet; use the driver `sysbench`")]
    Protocol(Protocol),
    /// No connection.
    #[error("cannot connect to the database")]
    Connect(#[source] Failure),
    /// A table that is to be made is there already.
    #[error("table `{0}` exists already; a dataset is loaded into a database without it")]
    Exists(String),
    /// Loading failed half way.
    #[error("cannot load the dataset")]
    Loading(#[source] Failure),
    /// The workload's tables cannot be used.
    #[error("cannot use the dataset's tables")]
    Tables(#[source] Failure),
    /// The tables hold less than the dataset says.
    #[error("the data are not the dataset's: {0}")]
    Data(String),
    /// An error that makes the rest of the run worthless.
    #[error("`{operation}` failed in a way that ends the run ({})", .failure.kind)]
    Fatal {
        /// The operation that met it.
        operation: String,
        /// What the database said.
        #[source]
        failure: Failure,
    },
    /// The threads cannot be had.
    #[error("cannot start the client threads")]
    Threads(#[source] std::io::Error),
    /// A client thread came to an end by itself.
    #[error("a client thread ended before the load began")]
    Thread,
    /// A result file cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl LoadError {
    fn connect(failure: Failure) -> Self {
        Self::Connect(failure)
    }

    fn loading(failure: Failure) -> Self {
        Self::Loading(failure)
    }

    fn data(failure: Failure) -> Self {
        Self::Tables(failure)
    }
}

/// Carries out `job` and says how far it is.
///
/// # Errors
/// The job could not be carried out to its end. Operations that fail are no error: they are counted in the result.
pub fn run(job: &Job, progress: &mut dyn FnMut(Progress)) -> Result<Done, LoadError> {
    check(job).map_err(|why| LoadError::Job(why.into()))?;
    let create = matches!(job.work, Work::Load(_));
    let backend: Box<dyn Backend> = match &job.target {
        Target::Sqlite { path, pragmas } => Box::new(Sqlite {
            path: path.clone(),
            pragmas: pragmas.clone(),
            create,
        }),
        Target::Null => Box::new(Null),
        Target::Sql(sql) => return Err(LoadError::Protocol(sql.protocol)),
    };
    match &job.work {
        Work::Load(dataset) => load(dataset, backend.as_ref(), job.seed, progress),
        Work::Run(run) => measure(run, backend.as_ref(), job.seed, progress),
    }
}

/// What no job may be. Jobs made from a plan are not, but anyone can write one.
fn check(job: &Job) -> Result<(), &'static str> {
    let (Work::Load(dataset) | Work::Run(LoadRun { dataset, .. })) = &job.work;
    let (_, fields, field_length) = dataset.ycsb_shape();
    if dataset.rows() == 0 || fields == 0 || field_length == 0 {
        return Err("its dataset is empty");
    }
    if let Work::Run(run) = &job.work {
        if run.threads == 0 {
            return Err("it has no threads");
        }
        if run
            .rate
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            return Err("its rate is no number above 0");
        }
        if run.workload.max_scan_length == Some(0) || run.workload.range_size == Some(0) {
            return Err("its scans are empty");
        }
    }
    Ok(())
}

fn load(
    dataset: &Dataset,
    backend: &dyn Backend,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, LoadError> {
    let started = Instant::now();
    let of = dataset.rows();
    let mut loaded = |rows| progress(Progress::Loaded { rows, of });
    match dataset.schema {
        Schema::Ycsb => ycsb::Table::of(dataset).load(backend, seed, &mut loaded),
        Schema::Sysbench => oltp::Tables::of(dataset).load(backend, seed, &mut loaded),
    }?;
    Ok(Done::Loaded {
        rows: of,
        seconds: started.elapsed().as_secs_f64(),
    })
}

fn measure(
    run: &LoadRun,
    backend: &dyn Backend,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, LoadError> {
    std::fs::create_dir_all(&run.output).map_err(|source| LoadError::Output {
        path: run.output.clone(),
        source,
    })?;
    // This connection is gone before the threads come: it must hold no lock that they want.
    let workload = {
        let mut connection = backend.connect().map_err(LoadError::connect)?;
        workload::open(run, connection.as_mut())?
    };
    let settings = Settings {
        threads: run.threads,
        rate: run.rate,
        warmup: run.warmup.0,
        window: run.duration.0,
        seed,
    };
    let (result, start) = engine::run(&settings, backend, workload.as_ref(), progress)?;
    for (name, bytes) in result.to_files(start) {
        let path = run.output.join(name);
        std::fs::write(&path, bytes).map_err(|source| LoadError::Output { path, source })?;
    }
    Ok(Done::Measured {
        operations: result.count(),
        errors: result.errors(),
        seconds: result.window_s,
    })
}
