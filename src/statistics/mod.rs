//! What rounds say together: summaries, ratios of pairs, the ratio over many cells. Pure functions of numbers.
//! The unit of replication is the round; no inference is made here.

mod ratio;
mod summary;

pub use ratio::{Overall, PairedRatio, RatioError, overall, paired_ratio};
pub use summary::{Summary, geometric_mean, mean};
