//! Reading files and summing what they hold.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::Tried as _;
use super::{PackageError, Watch, hex};

/// Bytes that are read at once.
pub(super) const CHUNK: usize = 1 << 17;

/// A reader that sums what goes through it.
pub(super) struct Summed {
    file: File,
    digest: Sha256,
}

impl Summed {
    pub(super) fn new(file: File) -> Self {
        let digest = Sha256::new();
        Self { file, digest }
    }

    /// The sha256 of the whole file.
    pub(super) fn sum(mut self) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(hex(self.digest))
    }
}

impl Read for Summed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(buffer)?;
        self.digest.update(&buffer[..got]);
        Ok(got)
    }
}

/// Opens a file to read it; waits for no fifo.
pub(super) fn open(path: &Path) -> Result<File, PackageError> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => File::open(path).tried("open", path),
        Ok(_) => Err(io::Error::other("it is no file")).tried("read", path),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(path)),
        Err(error) => Err(error).tried("open", path),
    }
}

pub(super) fn missing(path: &Path) -> PackageError {
    PackageError::Missing {
        what: format!("file `{}`", path.display()),
    }
}

/// The sha256 of a file; `step` is called with every piece, and may end it.
pub(super) fn sum_of(
    path: &Path,
    step: &dyn Fn() -> Result<(), PackageError>,
) -> Result<String, PackageError> {
    let mut file = Summed::new(open(path)?);
    let mut buffer = vec![0; CHUNK];
    loop {
        step()?;
        if file.read(&mut buffer).tried("read", path)? == 0 {
            return Ok(hex(file.digest));
        }
    }
}

/// An error if it was stopped.
pub(super) fn stopped(watch: &Watch) -> Result<(), PackageError> {
    if watch.stop.is_cancelled() {
        return Err(PackageError::Stopped);
    }
    Ok(())
}
