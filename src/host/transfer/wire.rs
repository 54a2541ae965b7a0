//! The two ends' language: lines of JSON, and between them contents as chunks of bytes.
//!
//! A content follows the line that announces it: any number of chunks, each its length (four bytes, big-endian) and so many
//! bytes, then a length of zero; or [`TORN`], when its sender cannot go on.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{Fault, Stop};
use super::list::{Entry, Found};

/// How much is read, packed and sent at a time.
pub(super) const CHUNK: usize = 256 << 10;
/// No chunk is larger.
const LARGEST_CHUNK: u32 = 1 << 20;
/// No line is longer: the list of a tree of a million files.
const LONGEST_LINE: u64 = 256 << 20;
/// Instead of a chunk's length: the content ends here and is not whole.
const TORN: u32 = u32::MAX;

/// What an upload asks the host for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Delivery {
    /// The folder on the host that the cache is in.
    #[serde(with = "super::name")]
    pub(super) directory: std::path::PathBuf,
    /// Where the files should go.
    pub(super) place: Place,
    /// The files.
    pub(super) entries: Vec<Entry>,
}

/// Where an upload goes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    /// Only into the cache.
    Cache,
    /// To a path.
    Path {
        #[serde(with = "super::name")]
        path: std::path::PathBuf,
        /// Whether another file may be there before.
        replace: bool,
    },
}

/// What the host answers to an upload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It is working.
    Alive,
    /// It lacks these, and waits for them in this order.
    Wants(Vec<Want>),
    /// Everything is in its place.
    Done,
    /// It cannot go on.
    Failed(Fault),
}

/// A content that is wanted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Want {
    /// The number of its file in the list.
    pub(super) file: usize,
    /// The first byte that is wanted; those before are there.
    pub(super) from: u64,
}

/// What a download asks the host for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fetch {
    /// What is at a path.
    List(#[serde(with = "super::name")] std::path::PathBuf),
    /// Contents of files that were listed, in this order; the first one from a byte on.
    Send {
        #[serde(with = "super::name")]
        path: std::path::PathBuf,
        files: Vec<Found>,
        from: u64,
    },
    /// Nothing more.
    End,
}

/// What the host answers to a download.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Offer {
    /// It is working.
    Alive,
    /// What is there.
    List(Vec<Found>),
    /// A content follows.
    Content(Packing),
    /// The sha256 of the whole content that it was, in hex.
    Sha256(String),
    /// It cannot go on.
    Failed(Fault),
}

/// How a content is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Packing {
    /// As it is.
    Plain,
    /// As one zstd stream.
    Zstd,
}

/// One end of a channel.
pub(super) struct Wire<R, W> {
    pub(super) input: BufReader<R>,
    pub(super) output: W,
}

impl<R: Read, W: Write> Wire<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::with_capacity(CHUNK, input),
            output,
        }
    }

    /// Writes a line.
    pub(super) fn say(&mut self, message: &impl Serialize) -> Result<(), Stop> {
        let mut line = serde_json::to_vec(message).expect("messages are plain data");
        line.push(b'\n');
        let written = self.output.write_all(&line);
        written
            .and_then(|()| self.output.flush())
            .map_err(Stop::Stream)
    }

    /// Reads a line.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Stop> {
        let mut line = Vec::new();
        let mut limited = (&mut self.input).take(LONGEST_LINE);
        limited.read_until(b'\n', &mut line).map_err(Stop::Stream)?;
        if line.last() != Some(&b'\n') {
            return Err(match line.len() as u64 {
                LONGEST_LINE.. => garbled("a line has no end"),
                _ => Stop::Stream(ErrorKind::UnexpectedEof.into()),
            });
        }
        serde_json::from_slice(&line).map_err(|error| garbled(&error.to_string()))
    }
}

/// The host's end during long work: says now and then that it goes on.
pub(super) struct Voice<'a, R, W> {
    pub(super) wire: &'a mut Wire<R, W>,
    told: Instant,
    broken: Option<Stop>,
}

/// How often is told that work goes on.
const PULSE: Duration = Duration::from_secs(5);

impl<'a, R: Read, W: Write> Voice<'a, R, W> {
    pub(super) fn new(wire: &'a mut Wire<R, W>) -> Self {
        Self {
            wire,
            told: Instant::now(),
            broken: None,
        }
    }

    /// Says that work goes on, if it is time for it. Only where the other end listens for a line.
    pub(super) fn pulse(&mut self) {
        if self.told.elapsed() >= PULSE {
            self.told = Instant::now();
            // `Answer::Alive`, `Offer::Alive`.
            self.broken = self.wire.say(&"alive").err();
        }
    }

    /// Whether the other end still listens.
    pub(super) fn check(&mut self) -> Result<(), Stop> {
        self.broken.take().map_or(Ok(()), Err)
    }
}

/// What came is no part of a transfer.
pub(super) fn garbled(why: &str) -> Stop {
    Stop::Stream(io::Error::new(ErrorKind::InvalidData, why))
}

/// A content on its way out, in chunks.
pub(super) struct Chunks<'a> {
    output: &'a mut dyn Write,
    /// Room for the length, then the bytes.
    chunk: Vec<u8>,
    /// Sees the bytes of each chunk that was sent.
    sent: &'a mut dyn FnMut(u64),
}

const HEAD: usize = size_of::<u32>();

impl<'a> Chunks<'a> {
    pub(super) fn new(output: &'a mut dyn Write, sent: &'a mut dyn FnMut(u64)) -> Self {
        let mut chunk = Vec::with_capacity(HEAD + CHUNK);
        chunk.resize(HEAD, 0);
        Self {
            output,
            chunk,
            sent,
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let length = self.chunk.len() - HEAD;
        if length > 0 {
            let head = u32::try_from(length).expect("a chunk is small");
            self.chunk[..HEAD].copy_from_slice(&head.to_be_bytes());
            // Told before it is known to have arrived: what a broken connection swallowed was sent as well.
            (self.sent)(length as u64);
            self.output.write_all(&self.chunk)?;
            self.chunk.truncate(HEAD);
        }
        Ok(())
    }

    /// Ends the content.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.send()?;
        self.output.write_all(&0_u32.to_be_bytes())?;
        self.output.flush()
    }

    /// Ends a content that is not whole.
    pub(super) fn tear(self) -> io::Result<()> {
        self.output.write_all(&TORN.to_be_bytes())?;
        self.output.flush()
    }
}

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(HEAD + CHUNK - self.chunk.len())];
        self.chunk.extend_from_slice(part);
        if self.chunk.len() == HEAD + CHUNK {
            self.send()?;
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A content that comes in. It hands on what has come without waiting for whole chunks, so that what came before a broken
/// connection is kept.
pub(super) struct Incoming<'a> {
    input: &'a mut dyn BufRead,
    left: u32,
    ended: bool,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead) -> Self {
        Self {
            input,
            left: 0,
            ended: false,
        }
    }

    fn head(&mut self) -> io::Result<()> {
        let mut head = [0; HEAD];
        self.input.read_exact(&mut head)?;
        match u32::from_be_bytes(head) {
            0 => self.ended = true,
            TORN => return Err(ErrorKind::ConnectionAborted.into()),
            length @ ..=LARGEST_CHUNK => self.left = length,
            _ => {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "a chunk is too long",
                ));
            }
        }
        Ok(())
    }
}

impl BufRead for Incoming<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 && !self.ended {
            self.head()?;
        }
        if self.ended {
            return Ok(&[]);
        }
        let came = self.input.fill_buf()?;
        if came.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(&came[..came.len().min(self.left as usize)])
    }

    fn consume(&mut self, amount: usize) {
        self.input.consume(amount);
        self.left -= u32::try_from(amount).expect("it is at most what was left");
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let came = self.fill_buf()?;
        let length = came.len().min(buffer.len());
        buffer[..length].copy_from_slice(&came[..length]);
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut none = |_| {};
        let mut chunks = Chunks::new(&mut out, &mut none);
        chunks.write_all(content).unwrap();
        chunks.end().unwrap();
        out
    }

    #[test]
    fn a_content_of_several_chunks_comes_as_it_was() {
        let content: Vec<u8> = (0..CHUNK * 2 + 17).map(|i| (i % 251) as u8).collect();
        let bytes = [sent(&content), b"next".to_vec()].concat();
        let mut input = &bytes[..];
        let mut back = Vec::new();
        Incoming::new(&mut input).read_to_end(&mut back).unwrap();
        assert!(back == content);
        assert_eq!(input, b"next");
    }

    #[test]
    fn what_came_of_a_broken_content_is_handed_on_before_the_error() {
        let bytes = sent(b"0123456789");
        for cut in HEAD..bytes.len() - HEAD {
            let mut back = Vec::new();
            let error = Incoming::new(&mut &bytes[..cut]).read_to_end(&mut back);
            assert_eq!(error.unwrap_err().kind(), ErrorKind::UnexpectedEof);
            assert_eq!(back, &b"0123456789"[..cut - HEAD]);
        }
    }

    #[test]
    fn a_torn_content_is_no_whole_one() {
        let mut out = Vec::new();
        let mut none = |_| {};
        let mut chunks = Chunks::new(&mut out, &mut none);
        chunks.write_all(b"abc").unwrap();
        chunks.tear().unwrap();
        let error = Incoming::new(&mut &out[..]).read_to_end(&mut Vec::new());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    }

    #[test]
    fn a_chunk_of_absurd_length_is_refused_before_anything_is_kept() {
        let bytes = (LARGEST_CHUNK + 1).to_be_bytes();
        let error = Incoming::new(&mut &bytes[..]).read_to_end(&mut Vec::new());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_line_without_an_end_is_a_broken_stream_and_one_of_other_words_is_garbled() {
        let hear = |text: &str| match Wire::new(text.as_bytes(), Vec::new()).hear::<Answer>() {
            Err(Stop::Stream(error)) => error.kind(),
            other => panic!("{other:?}"),
        };
        assert_eq!(hear("\"done\""), ErrorKind::UnexpectedEof);
        assert_eq!(hear("\"undone\"\n"), ErrorKind::InvalidData);
    }
}
