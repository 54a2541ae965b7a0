//! What the work on a directory says on its way.

use serde::{Deserialize, Serialize};

/// How far the work on a directory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Files done.
    pub files: u64,
    /// Files in all.
    pub of_files: u64,
    /// Bytes done.
    pub bytes: u64,
    /// Bytes in all.
    pub of_bytes: u64,
}

/// The stages of the work, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// What an interrupted call left behind is removed.
    #[default]
    Tidying,
    /// Files are counted.
    Counting,
    /// Files are copied, or their blocks shared.
    Copying,
    /// Files are read and hashed.
    Reading,
    /// Everything is flushed to disk.
    Flushing,
    /// The manifest is written or compared.
    Comparing,
    /// The new directory takes its place.
    Switching,
    /// The old directory is removed.
    Removing,
}

/// Who listens: called between any two changes on disk.
pub type Listener<'a> = &'a mut dyn FnMut(&Progress);

/// Progress and who listens to it.
pub(super) struct Telling<'a> {
    now: Progress,
    listener: Listener<'a>,
}

impl<'a> Telling<'a> {
    pub(super) fn new(listener: Listener<'a>) -> Self {
        Self {
            now: Progress::default(),
            listener,
        }
    }

    /// A stage begins, or a step of it is done.
    pub(super) fn stage(&mut self, stage: Stage) {
        self.now.stage = stage;
        (self.listener)(&self.now);
    }

    /// So much is to be done.
    pub(super) fn expect(&mut self, files: u64, bytes: u64) {
        (self.now.of_files, self.now.of_bytes) = (files, bytes);
    }

    /// So much more is done.
    pub(super) fn done(&mut self, files: u64, bytes: u64) {
        self.now.files += files;
        self.now.bytes += bytes;
        (self.listener)(&self.now);
    }
}
