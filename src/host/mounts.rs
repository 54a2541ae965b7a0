//! What is mounted where, from the text of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// Its type, such as `xfs`.
    pub kind: String,
    /// What is mounted, such as `/dev/sda1`.
    pub device: String,
    /// The options of the mount, then those of the file system that it does not repeat.
    pub options: Vec<String>,
}

/// The mounts that this process sees, in the order in which they were made.
///
/// # Errors
/// `/proc` cannot be read.
pub fn mounts() -> std::io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// The mount that a path without links lies on. Of several at one point the last is on top.
#[must_use]
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let depth = |mount: &&Mount| mount.point.components().count();
    let over = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    over.max_by_key(depth)
}

/// Reads the lines; one that is none is skipped.
pub(super) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let text = |field: Vec<u8>| String::from_utf8_lossy(&field).into_owned();
    Some(Mount {
        point: PathBuf::from(OsString::from_vec(unescape(fields.get(4)?))),
        kind: text(unescape(fields.get(dash + 1)?)),
        device: text(unescape(fields.get(dash + 2)?)),
        options: options(&[fields.get(5), fields.get(dash + 3)]),
    })
}

fn options(lists: &[Option<&&[u8]>]) -> Vec<String> {
    let mut found = Vec::new();
    for list in lists.iter().copied().flatten() {
        for option in String::from_utf8_lossy(list).trim().split(',') {
            if !option.is_empty() && !found.iter().any(|known| known == option) {
                found.push(option.to_owned());
            }
        }
    }
    found
}

/// Space, tab, newline and backslash stand there as `\040`, `\011`, `\012` and `\134`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, octal(tail)) {
            (b'\\', Some(value)) => {
                out.push(value);
                rest = &tail[3..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

fn octal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits.get(..3)?).ok()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `proc_pid_mountinfo(5)`, one with escapes as Linux 6.1 writes them, and one cut short.
    const TEXT: &[u8] = b"\
36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
23 28 0:21 / / rw,relatime shared:1 - ext4 /dev/vda rw
41 23 0:40 / /mnt2/a\\040b\\134c\\012d rw shared:7 master:2 - tmpfs tmpfs rw,size=1024k
17 23 0:40 / /cut rw";

    #[test]
    fn mounts_are_read_with_and_without_optional_fields() {
        let read = parse(TEXT);
        assert_eq!(read.len(), 3);
        assert_eq!(read[0].point, Path::new("/mnt2"));
        assert_eq!(read[0].kind, "ext3");
        assert_eq!(read[0].device, "/dev/root");
        assert_eq!(read[2].kind, "tmpfs");
    }

    #[test]
    fn options_of_the_mount_and_of_its_file_system_are_told_once_each() {
        let read = parse(TEXT);
        assert_eq!(read[0].options, ["rw", "noatime", "errors=continue"]);
        assert_eq!(read[2].options, ["rw", "size=1024k"]);
    }

    #[test]
    fn escaped_bytes_of_a_mount_point_are_restored() {
        assert_eq!(parse(TEXT)[2].point, Path::new("/mnt2/a b\\c\nd"));
    }

    #[test]
    fn a_path_lies_on_the_deepest_mount_above_it() {
        let mounts = parse(TEXT);
        let point = |path| mount_of(&mounts, Path::new(path)).map(|m| m.point.as_path());
        assert_eq!(point("/mnt2/x"), Some(Path::new("/mnt2")));
        assert_eq!(point("/mnt20/x"), Some(Path::new("/")));
        assert_eq!(
            point("/mnt2/a b\\c\nd/e"),
            Some(Path::new("/mnt2/a b\\c\nd"))
        );
    }
}
