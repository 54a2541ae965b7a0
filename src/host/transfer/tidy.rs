//! Keeps a host's cache small.

use super::agent::{Tidy, Tidying};
use super::bridge::{Line, converse};
use super::cache::Tidied;
use super::error::{Stop, TransferError};
use super::{Options, TIDY, Target};

/// Bytes that a cache may take when nobody says otherwise: a dozen versions of a database.
pub const CACHE_LIMIT: u64 = 20 << 30;

/// Removes the contents of a host's cache that were used longest ago until at most `limit` bytes are left.
///
/// # Errors
/// A transfer uses the cache, or it cannot be read.
pub async fn tidy_cache(
    target: Target<'_>,
    limit: u64,
    options: &Options,
) -> Result<Tidied, TransferError> {
    let request = Tidy {
        directory: target.directory.to_owned(),
        limit,
    };
    let ask = |request: &mut Tidy, line: &mut Line| {
        line.say(request)?;
        match line.hear()? {
            Tidying::Done(tidied) => Ok(tidied),
            Tidying::Failed(fault) => Err(Stop::There(fault)),
        }
    };
    converse(target.channels, TIDY, options.silence, request, ask)
        .await
        .1
}
