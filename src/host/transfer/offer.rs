//! The host's side of a download, `assay agent store-send`: says what is there, sends the contents that are asked for.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::content::{self, Outgoing};
use super::error::{Fault, Stop, Tried};
use super::list::{Found, Stamp, below, open, walk};
use super::wire::{Fetch, Offer, Voice, Wire};

/// Carries out one download.
pub(super) fn offer<R: Read, W: Write>(wire: &mut Wire<R, W>) -> Result<(), Stop> {
    loop {
        match wire.hear()? {
            Fetch::List(path) => {
                let found = walk(&path)?;
                wire.say(&Offer::List(found))?;
            }
            Fetch::Send { path, files, from } => {
                let mut from = from;
                for file in &files {
                    send(wire, &path, file, from)?;
                    from = 0;
                }
            }
            Fetch::End => return Ok(()),
        }
    }
}

/// Sends the content of a file as it was listed, from a byte on.
fn send<R: Read, W: Write>(
    wire: &mut Wire<R, W>,
    root: &Path,
    listed: &Found,
    from: u64,
) -> Result<(), Stop> {
    let path = below(root, &listed.entry.path);
    let changed = || Fault::Changed { path: path.clone() };
    let (mut file, stamp) = open(&path)?;
    if !listed.stamp.allows(&stamp) {
        return Err(changed().into());
    }
    let size = listed.stamp.size();
    let packing = content::packing(&file, size).tried("read", &path)?;
    file.seek(SeekFrom::Start(0)).tried("read", &path)?;
    let mut digest = Sha256::new();
    let mut voice = Voice::new(wire);
    let read = content::hash(&mut file, from, &mut digest, &mut |_| voice.pulse());
    read.tried("read", &path)?;
    voice.check()?;
    wire.say(&Offer::Content(packing))?;
    let outgoing = Outgoing {
        file: &file,
        path: &path,
        length: size.saturating_sub(from),
        packing,
        digest: Some(&mut digest),
        step: &mut |_| {},
    };
    content::send(outgoing, &mut wire.output, &mut |_| {}, &|| {
        let after = file.metadata().tried("look at", &path)?;
        match listed.stamp.allows(&Stamp::of(&after)) {
            true => Ok(()),
            false => Err(changed()),
        }
    })?;
    wire.say(&Offer::Sha256(content::hex(digest)))
}
