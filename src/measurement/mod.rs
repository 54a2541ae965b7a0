//! Measured values and what they are made of: latency histograms, per-second intervals, load results.
//! Everything here is exact: histograms merge by adding counts, percentiles are never averaged.

mod histogram;
mod interval;
mod load;

pub use histogram::{HistogramError, Latency, Percentile};
pub use interval::{Interval, IntervalError, Phase, read_intervals, write_intervals};
pub use load::{LoadResult, OperationResult, read_latency_log, write_latency_log};
