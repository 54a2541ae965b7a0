//! The content of one file: hashed, packed where it pays, sent and received.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::{Fault, Stop, Tried};
use super::wire::{CHUNK, Chunks, Incoming, Packing, garbled};

/// The level of zstd. Higher ones pack the binaries of databases by a few per cent more at several times the price, and
/// then the processor is slower than a network of 1 Gbit/s.
const LEVEL: i32 = 1;
/// How much of a file is tried at each of [`PLACES`] places.
const SAMPLE: u64 = 64 << 10;
const PLACES: u64 = 3;
/// Files that are smaller fit into one packet or two: nothing to gain.
const WORTH: u64 = 4 << 10;
/// Packing pays when less than so many hundredths of the sample are left: unpacked bytes cost no processor time, and it is
/// the processor that encrypted connections run out of.
const PAYS: usize = 85;

/// Whether it pays to pack a file, told from samples of its start, middle and end. They do not overlap: what is there twice
/// packs well.
pub(super) fn packing(file: &File, size: u64) -> std::io::Result<Packing> {
    if size < WORTH {
        return Ok(Packing::Plain);
    }
    let is_small = size <= PLACES * SAMPLE;
    let (length, places) = if is_small {
        (size, 1)
    } else {
        (SAMPLE, PLACES)
    };
    let length = usize::try_from(length).unwrap_or(CHUNK);
    let (mut original, mut packed) = (0, 0);
    let mut part = vec![0; length];
    for place in 0..places {
        let last = size - length as u64;
        file.read_exact_at(&mut part, last / (PLACES - 1) * place)?;
        original += length;
        packed += zstd::bulk::compress(&part, LEVEL)?.len();
    }
    let pays = packed * 100 < original * PAYS;
    Ok(if pays { Packing::Zstd } else { Packing::Plain })
}

/// Hashes `length` bytes of a file from where it stands on, fewer if it is shorter; returns how many.
pub(super) fn hash(
    file: &mut impl Read,
    length: u64,
    digest: &mut Sha256,
    step: &mut dyn FnMut(u64),
) -> std::io::Result<u64> {
    let mut limited = file.take(length);
    let mut buffer = vec![0; room(length)];
    let mut done = 0;
    loop {
        let read = match limited.read(&mut buffer) {
            Ok(0) => return Ok(done),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digest.update(&buffer[..read]);
        done += read as u64;
        step(read as u64);
    }
}

/// A buffer's size for so many bytes.
fn room(length: u64) -> usize {
    CHUNK.min(usize::try_from(length).unwrap_or(CHUNK)).max(1)
}

/// A digest in hex.
pub(super) fn hex(digest: Sha256) -> String {
    let bytes = digest.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A part of a file that is sent.
pub(super) struct Outgoing<'a> {
    pub(super) file: &'a File,
    pub(super) path: &'a Path,
    /// The bytes that are left of it; it stands at the first of them.
    pub(super) length: u64,
    pub(super) packing: Packing,
    /// Hashes what is sent, if anybody wants to know.
    pub(super) digest: Option<&'a mut Sha256>,
    /// Sees the bytes of the file that were sent.
    pub(super) step: &'a mut dyn FnMut(u64),
}

/// Sends a part of a file. `whole` says, after the last byte, whether it was the right one.
pub(super) fn send(
    mut outgoing: Outgoing<'_>,
    output: &mut dyn Write,
    wire: &mut dyn FnMut(u64),
    whole: &dyn Fn() -> Result<(), Fault>,
) -> Result<(), Stop> {
    let mut chunks = Chunks::new(output, wire);
    let poured = match outgoing.packing {
        Packing::Plain => pour(&mut outgoing, &mut chunks),
        Packing::Zstd => pack(&mut outgoing, &mut chunks),
    };
    match poured.and_then(|()| Ok(whole()?)) {
        Ok(()) => chunks.end().map_err(Stop::Stream),
        Err(Stop::Here(fault)) => {
            // The other end keeps nothing of it; whether it still listens does not matter.
            let _ = chunks.tear();
            Err(Stop::Here(fault))
        }
        Err(stop) => Err(stop),
    }
}

fn pack(outgoing: &mut Outgoing<'_>, chunks: &mut Chunks<'_>) -> Result<(), Stop> {
    let encoder = zstd::stream::write::Encoder::new(chunks, LEVEL);
    let mut encoder = encoder.map_err(Stop::Stream)?;
    pour(outgoing, &mut encoder)?;
    encoder.finish().map(drop).map_err(Stop::Stream)
}

fn pour(outgoing: &mut Outgoing<'_>, output: &mut dyn Write) -> Result<(), Stop> {
    let mut buffer = vec![0; room(outgoing.length)];
    while outgoing.length > 0 {
        let part = &mut buffer[..room(outgoing.length)];
        let read = match outgoing.file.read(part) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Fault::of("read", outgoing.path, &error).into()),
        };
        if read == 0 {
            let path = outgoing.path.to_owned();
            return Err(Fault::Changed { path }.into());
        }
        if let Some(digest) = &mut outgoing.digest {
            digest.update(&part[..read]);
        }
        output.write_all(&part[..read]).map_err(Stop::Stream)?;
        outgoing.length -= read as u64;
        (outgoing.step)(read as u64);
    }
    Ok(())
}

/// Receives exactly `length` bytes of a file and writes them to its end.
pub(super) fn receive(
    input: &mut impl BufRead,
    packing: Packing,
    length: u64,
    mut to: Arriving<'_>,
) -> Result<(), Stop> {
    let mut incoming = Incoming::new(input);
    match packing {
        Packing::Plain => drain(&mut incoming, length, &mut to),
        Packing::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(incoming);
            let decoder = decoder.map_err(Stop::Stream)?;
            drain(
                &mut BufReader::with_capacity(CHUNK, decoder),
                length,
                &mut to,
            )
        }
    }
}

/// Where a content is written.
pub(super) struct Arriving<'a> {
    pub(super) file: &'a mut File,
    pub(super) path: &'a Path,
    pub(super) digest: &'a mut Sha256,
    /// Sees the bytes that were written.
    pub(super) step: &'a mut dyn FnMut(u64),
}

/// Writes what comes right from the buffer that it comes in.
fn drain(content: &mut dyn BufRead, length: u64, to: &mut Arriving<'_>) -> Result<(), Stop> {
    let mut left = length;
    loop {
        let came = match content.fill_buf() {
            Ok([]) if left == 0 => return Ok(()),
            Ok([]) => return Err(garbled("a content is too short")),
            Ok(came) => came,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // What cannot be unpacked has no other kind.
            Err(error) if error.kind() == ErrorKind::Other => {
                return Err(garbled(&error.to_string()));
            }
            Err(error) => return Err(Stop::Stream(error)),
        };
        let length = came.len();
        if length as u64 > left {
            return Err(garbled("a content is too long"));
        }
        left -= length as u64;
        to.file.write_all(came).tried("write", to.path)?;
        to.digest.update(came);
        content.consume(length);
        (to.step)(length as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use rand::{Rng as _, SeedableRng};

    use super::*;

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file.rewind().unwrap();
        file
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        rand_pcg::Pcg64::seed_from_u64(7).fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn packing_pays_for_text_and_not_for_noise_or_a_few_bytes() {
        let text = "2026-03-01 INFO started\n".repeat(20_000).into_bytes();
        let of = |bytes: &[u8]| packing(&file(bytes), bytes.len() as u64).unwrap();
        assert_eq!(of(&text), Packing::Zstd);
        assert_eq!(of(&text[..10_000]), Packing::Zstd);
        assert_eq!(of(&text[..100]), Packing::Plain);
        for length in [5_000, 65_536, 65_537, 100_000, 196_608, 196_609, 500_000] {
            assert_eq!(of(&noise(length)), Packing::Plain, "{length}");
        }
        assert_eq!(of(b""), Packing::Plain);
    }

    #[test]
    fn what_is_packed_already_is_not_packed_again() {
        let text = "2026-03-01 INFO started\n".repeat(200_000);
        let mixed = [text.as_bytes(), &noise(4 << 20)].concat();
        let packed = zstd::bulk::compress(&mixed, 3).unwrap();
        let of = packing(&file(&packed), packed.len() as u64).unwrap();
        assert_eq!(of, Packing::Plain);
    }

    fn through(content: &[u8], packing: Packing) -> Vec<u8> {
        let mut out = Vec::new();
        let outgoing = Outgoing {
            file: &file(content),
            path: Path::new("x"),
            length: content.len() as u64,
            packing,
            digest: None,
            step: &mut |_| {},
        };
        send(outgoing, &mut out, &mut |_| {}, &|| Ok(())).unwrap();
        out
    }

    fn back(bytes: &[u8], packing: Packing, length: u64) -> (Result<(), Stop>, Vec<u8>) {
        let mut target = file(b"");
        let arriving = Arriving {
            file: &mut target,
            path: Path::new("x"),
            digest: &mut Sha256::new(),
            step: &mut |_| {},
        };
        let result = receive(&mut &bytes[..], packing, length, arriving);
        target.rewind().unwrap();
        let mut content = Vec::new();
        target.read_to_end(&mut content).unwrap();
        (result, content)
    }

    #[test]
    fn a_content_comes_as_it_was_packed_or_not() {
        let text = "a line that is much like the next one\n"
            .repeat(30_000)
            .into_bytes();
        for content in [text, noise(700_000), Vec::new()] {
            for packing in [Packing::Plain, Packing::Zstd] {
                let sent = through(&content, packing);
                let (result, got) = back(&sent, packing, content.len() as u64);
                result.unwrap();
                assert!(got == content);
            }
        }
    }

    #[test]
    fn a_content_that_unpacks_to_more_than_was_announced_is_refused() {
        let bomb = through(&vec![0; 8 << 20], Packing::Zstd);
        assert!(bomb.len() < 8 << 10);
        let (result, got) = back(&bomb, Packing::Zstd, 1000);
        assert!(
            matches!(result, Err(Stop::Stream(error)) if error.kind() == ErrorKind::InvalidData)
        );
        assert!(got.len() <= 1000);
    }
}
