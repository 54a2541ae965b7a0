//! The content of one file: copied or shared, holes kept, and hashed on the way.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, ioctl_ficlone, seek};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// How much is read at a time.
const CHUNK: usize = 1 << 20;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Shares the blocks of `from` with the empty file `to`.
pub(super) fn share(from: &File, to: &File) -> io::Result<()> {
    Ok(ioctl_ficlone(to, from)?)
}

/// Copies the first `size` bytes of `from` to the empty file `to`, and hashes them if `hash` says so.
/// It reads and writes, for what the system offers for copying may share blocks instead.
/// `step` is called with the bytes done since its last call.
pub(super) fn copy(
    from: &File,
    to: &File,
    size: u64,
    hash: bool,
    step: &mut dyn FnMut(u64),
) -> io::Result<String> {
    let mut digest = Digesting::new(hash);
    each_extent(from, size, |part| {
        match part {
            Part::Hole(length) => {
                digest.zeros(length);
                step(length);
            }
            Part::Data(offset, bytes) => {
                to.write_all_at(bytes, offset)?;
                digest.bytes(bytes);
                step(bytes.len() as u64);
            }
        }
        Ok(())
    })?;
    to.set_len(size)?;
    Ok(digest.hex())
}

/// The sha256 of the first `size` bytes of a file, in hex.
pub(super) fn hash(file: &File, size: u64, step: &mut dyn FnMut(u64)) -> io::Result<String> {
    let mut digest = Digesting::new(true);
    each_extent(file, size, |part| {
        let length = match part {
            Part::Hole(length) => {
                digest.zeros(length);
                length
            }
            Part::Data(_, bytes) => {
                digest.bytes(bytes);
                bytes.len() as u64
            }
        };
        step(length);
        Ok(())
    })?;
    Ok(digest.hex())
}

/// A part of a file, in order.
enum Part<'a> {
    /// So many bytes that take no room.
    Hole(u64),
    /// Bytes at an offset.
    Data(u64, &'a [u8]),
}

/// Walks through the first `size` bytes of a file.
fn each_extent(
    file: &File,
    size: u64,
    mut visit: impl FnMut(Part<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK.min(usize::try_from(size).unwrap_or(CHUNK))];
    let mut at = 0;
    while at < size {
        let data = find(file, SeekFrom::Data(at))?.unwrap_or(size).min(size);
        if data > at {
            visit(Part::Hole(data - at))?;
        }
        at = data;
        let end = find(file, SeekFrom::Hole(at))?.unwrap_or(size).min(size);
        while at < end {
            let part = &mut buffer[..CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK))];
            file.read_exact_at(part, at)?;
            visit(Part::Data(at, part))?;
            at += part.len() as u64;
        }
    }
    Ok(())
}

/// Where data or a hole begins next; `None` if none does. A file system that knows no holes has only data.
fn find(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(match from {
            SeekFrom::Data(offset) => Some(offset),
            _ => None,
        }),
        Err(error) => Err(error.into()),
    }
}

/// A sha256 in the making, if one is wanted.
struct Digesting(Option<Sha256>);

impl Digesting {
    fn new(wanted: bool) -> Self {
        Self(wanted.then(Sha256::new))
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.0 {
            digest.update(bytes);
        }
    }

    fn zeros(&mut self, mut length: u64) {
        while length > 0 && self.0.is_some() {
            let part = length.min(ZEROS.len() as u64);
            self.bytes(&ZEROS[..usize::try_from(part).expect("it is small")]);
            length -= part;
        }
    }

    /// In hex; empty if none is wanted.
    fn hex(self) -> String {
        let digest = self.0.map(Sha256::finalize);
        let bytes = digest.as_ref().map_or(&[][..], |digest| digest.as_slice());
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
