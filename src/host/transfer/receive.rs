//! The host's side of an upload, `assay agent store-receive`: says what it lacks, takes it into the cache, makes the files.

use std::collections::{HashSet, VecDeque};
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::ioctl_ficlone;
use sha2::{Digest, Sha256};

use super::cache::{Cache, Part};
use super::content::{self, Arriving};
use super::error::{Fault, Stop, Tried, free};
use super::list::{Entry, Kind, below, check, open};
use super::stage::{Stage, is_there};
use super::wire::{Answer, Delivery, Packing, Place, Voice, Want, Wire};

/// Contents that are asked for at a time: each is an open file.
const BATCH: usize = 256;
/// Bytes that are asked for at a time, or one content. Few enough to come within [`STUCK`] over a slow link: another sender
/// takes over what waits for longer, and it is sent twice.
const BATCH_BYTES: u64 = 16 << 20;
/// How often is looked whether another sender is done.
const GLANCE: Duration = Duration::from_millis(50);
/// A sender of whose content nothing came for so long is stuck: its connection is dead and its agent does not know.
const STUCK: Duration = Duration::from_secs(10);
/// How much is copied between two signs of life.
const STRETCH: u64 = 64 << 20;

/// Carries out one upload.
pub(super) fn receive<R: Read, W: Write>(wire: &mut Wire<R, W>) -> Result<(), Stop> {
    let delivery: Delivery = wire.hear()?;
    is_absolute(&delivery.directory)?;
    if let Place::Path { path, .. } = &delivery.place {
        is_absolute(path)?;
    }
    let mut receiving = Receiving {
        cache: Cache::open(&delivery.directory)?,
        entries: &delivery.entries,
        voice: Voice::new(wire),
    };
    receiving.run(&delivery.place)?;
    receiving.voice.wire.say(&Answer::Done)
}

/// Where an agent stands is nobody's business: a path that begins there is a mistake.
fn is_absolute(path: &Path) -> Result<(), Fault> {
    match path.is_absolute() {
        true => Ok(()),
        false => Err(Fault::Refused {
            path: path.to_owned(),
            why: "it is not absolute".to_owned(),
        }),
    }
}

struct Receiving<'a, R, W> {
    cache: Cache,
    entries: &'a [Entry],
    voice: Voice<'a, R, W>,
}

impl<R: Read, W: Write> Receiving<'_, R, W> {
    fn run(&mut self, place: &Place) -> Result<(), Stop> {
        check(self.entries)?;
        self.check_hashes()?;
        if let Place::Path { path, replace } = place
            && self.is_there(path, *replace)?
        {
            return Ok(());
        }
        let lacking = self.lacking()?;
        self.check_room(&lacking)?;
        self.fill(lacking)?;
        match place {
            Place::Cache => Ok(()),
            Place::Path { path, replace } => self.make(path, *replace),
        }
    }

    fn check_hashes(&self) -> Result<(), Fault> {
        for entry in self.entries {
            if matches!(&entry.kind, Kind::File { sha256, .. } if sha256.is_empty()) {
                let (path, why) = (entry.path.clone(), "it has no checksum".to_owned());
                return Err(Fault::Refused { path, why });
            }
        }
        Ok(())
    }

    /// Whether the wanted files are in their place already. Others are refused.
    fn is_there(&mut self, path: &Path, replace: bool) -> Result<bool, Stop> {
        let entries = self.entries;
        is_there(path, entries, replace, |found, wanted| {
            self.is_same(path, found, wanted)
        })
    }

    fn is_same(&mut self, root: &Path, found: &Entry, wanted: &Entry) -> Result<bool, Stop> {
        let Kind::File { size, sha256 } = &wanted.kind else {
            return Ok(found.kind == wanted.kind);
        };
        if !found.is_file() || found.size() != *size {
            return Ok(false);
        }
        let path = below(root, &found.path);
        let (mut file, _) = open(&path)?;
        let mut digest = Sha256::new();
        let read = content::hash(&mut file, *size, &mut digest, &mut |_| self.voice.pulse());
        let read = read.tried("read", &path)?;
        self.voice.check()?;
        Ok(read == *size && content::hex(digest) == *sha256)
    }

    /// The first file of each content that the cache lacks.
    fn lacking(&mut self) -> Result<VecDeque<usize>, Stop> {
        let (mut lacking, mut seen) = (VecDeque::new(), HashSet::new());
        let entries = self.entries;
        for (number, entry) in entries.iter().enumerate() {
            if let Kind::File { sha256, .. } = &entry.kind
                && seen.insert(sha256.as_str())
                && !self.find(number)?
            {
                lacking.push_back(number);
            }
        }
        Ok(lacking)
    }

    fn find(&mut self, number: usize) -> Result<bool, Stop> {
        let (sha256, size) = content_of(self.entries, number);
        let found = self.cache.find(sha256, size, &mut |_| self.voice.pulse())?;
        self.voice.check()?;
        Ok(found)
    }

    /// Refuses to begin what the disk has no room for.
    fn check_room(&self, lacking: &VecDeque<usize>) -> Result<(), Fault> {
        let wanted = self.wanted(lacking.iter());
        let path = self.cache.folder().to_owned();
        let free = free(&path);
        match wanted > free {
            true => Err(Fault::Space { path, wanted, free }),
            false => Ok(()),
        }
    }

    /// Bytes that are still to come.
    fn wanted<'n>(&self, lacking: impl Iterator<Item = &'n usize>) -> u64 {
        let of = |number: &usize| {
            let (sha256, size) = content_of(self.entries, *number);
            size.saturating_sub(self.cache.came(sha256))
        };
        lacking.map(of).sum()
    }

    /// Takes everything that is lacking into the cache.
    fn fill(&mut self, mut lacking: VecDeque<usize>) -> Result<(), Stop> {
        let mut waiting = Waiting::default();
        while !lacking.is_empty() {
            let batch = self.lock(&mut lacking)?;
            if batch.is_empty() {
                if let Some(&first) = lacking.front() {
                    self.wait(first, &mut waiting)?;
                }
                continue;
            }
            let wants = batch.iter().map(|(number, part)| Want {
                file: *number,
                from: part.length,
            });
            self.voice.wire.say(&Answer::Wants(wants.collect()))?;
            for (number, part) in batch {
                let had = part.length;
                match self.take(number, part, &lacking)? {
                    Some(true) => {}
                    // What was there before may have been wrong.
                    Some(false) if had > 0 => lacking.push_front(number),
                    Some(false) => {
                        let path = self.entries[number].path.clone();
                        return Err(Fault::Changed { path }.into());
                    }
                    None => lacking.push_back(number),
                }
            }
        }
        Ok(())
    }

    /// Begins with as many contents as a batch holds; those that others are at are put off.
    fn lock(&mut self, lacking: &mut VecDeque<usize>) -> Result<Vec<(usize, Part)>, Stop> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for _ in 0..lacking.len() {
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                break;
            }
            let Some(number) = lacking.pop_front() else {
                break;
            };
            let Some(part) = self.begin(number)? else {
                lacking.push_back(number);
                continue;
            };
            // Somebody may have finished it just before.
            if self.find(number)? {
                part.discard();
                continue;
            }
            bytes += content_of(self.entries, number).1 - part.length;
            batch.push((number, part));
        }
        Ok(batch)
    }

    fn begin(&mut self, number: usize) -> Result<Option<Part>, Stop> {
        let (sha256, size) = content_of(self.entries, number);
        let part = self.cache.part(sha256, size, &mut |_| self.voice.pulse())?;
        self.voice.check()?;
        Ok(part)
    }

    /// Waits a moment for somebody who sends the same content; takes it over if nothing comes.
    fn wait(&mut self, number: usize, waiting: &mut Waiting) -> Result<(), Stop> {
        std::thread::sleep(GLANCE);
        let (sha256, _) = content_of(self.entries, number);
        let pulse = self.cache.pulse(sha256);
        if waiting.is_stuck(number, pulse) {
            self.cache.take_over(sha256)?;
        }
        self.voice.pulse();
        self.voice.check()
    }

    /// Receives one content. Says whether it is the right one; `None` if somebody took it over.
    fn take(
        &mut self,
        number: usize,
        mut part: Part,
        lacking: &VecDeque<usize>,
    ) -> Result<Option<bool>, Stop> {
        let packing: Packing = self.voice.wire.hear()?;
        let (sha256, size) = content_of(self.entries, number);
        let length = size - part.length;
        let arriving = Arriving {
            file: &mut part.file,
            path: &part.path,
            digest: &mut part.digest,
            step: &mut |_| {},
        };
        let received = content::receive(&mut self.voice.wire.input, packing, length, arriving);
        received.map_err(|stop| match stop {
            Stop::Here(fault @ Fault::Space { .. }) => {
                // A full disk harms everybody on the host: what was begun gives its room back.
                part.discard();
                let _ = part.file.set_len(0);
                let wanted = length + self.wanted(lacking.iter());
                let free = free(self.cache.folder());
                let Fault::Space { path, .. } = fault else {
                    unreachable!("it is one")
                };
                Stop::Here(Fault::Space { path, wanted, free })
            }
            stop => stop,
        })?;
        Ok(part.admit(sha256)?)
    }

    /// Makes the files from the cache.
    fn make(&mut self, path: &Path, replace: bool) -> Result<(), Stop> {
        let entries = self.entries;
        let stage = Stage::beside(path, entries[0].is_file())?;
        let mut left: u64 = entries.iter().map(Entry::size).sum();
        for (number, entry) in entries.iter().enumerate() {
            stage.make(entry)?;
            if entry.is_file() {
                let content = self.cache.content(content_of(entries, number).0)?;
                let target = stage.file(entry)?;
                self.copy(content, target, &stage, entry)
                    .map_err(|stop| match stop {
                        Stop::Here(fault) => Stop::Here(fault.wanting(left)),
                        stop => stop,
                    })?;
                left -= entry.size();
            }
        }
        stage.dress(entries.iter(), 0)?;
        Ok(stage.finish(replace)?)
    }

    /// Fills a file with a content of the cache; they share blocks where the file system can.
    fn copy(
        &mut self,
        content: File,
        mut target: File,
        stage: &Stage,
        entry: &Entry,
    ) -> Result<(), Stop> {
        let path = stage.of(entry);
        if ioctl_ficlone(&target, &content).is_err() {
            loop {
                let mut stretch = (&content).take(STRETCH);
                if std::io::copy(&mut stretch, &mut target).tried("write", &path)? == 0 {
                    break;
                }
                self.voice.pulse();
                self.voice.check()?;
            }
        }
        let mode = Permissions::from_mode(entry.mode);
        target
            .set_permissions(mode)
            .tried("set the mode of", &path)?;
        Ok(())
    }
}

/// The checksum and size of a file of the list.
fn content_of(entries: &[Entry], number: usize) -> (&str, u64) {
    match &entries[number].kind {
        Kind::File { size, sha256 } => (sha256, *size),
        Kind::Folder | Kind::Link { .. } => unreachable!("only files have contents"),
    }
}

/// The wait for another sender.
#[derive(Default)]
struct Waiting {
    seen: Option<(usize, Option<(u64, SystemTime)>)>,
    since: Option<Instant>,
}

impl Waiting {
    /// Whether nothing has come of a content for too long.
    fn is_stuck(&mut self, number: usize, pulse: Option<(u64, SystemTime)>) -> bool {
        if self.seen != Some((number, pulse)) {
            self.seen = Some((number, pulse));
            self.since = Some(Instant::now());
        }
        let stuck = self.since.is_some_and(|since| since.elapsed() >= STUCK);
        if stuck {
            *self = Self::default();
        }
        stuck
    }
}
