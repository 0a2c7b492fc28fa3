//! The block device below a directory, and what it has counted.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Columns of a block device's `stat` (Documentation/block/stat.rst).
const READS: usize = 0;
const READ_SECTORS: usize = 2;

/// Requests and 512-byte sectors that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    /// Requests that are done.
    pub requests: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
}

/// The `stat` file of the device that holds `directory`; None where no block device does (tmpfs, a network).
pub fn stat_file(directory: &Path) -> Option<PathBuf> {
    let directory = fs::canonicalize(directory).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let source = source_of(&mounts, &directory)?;
    // Not the directory's own st_dev: btrfs has numbers there that belong to no device.
    let device = fs::metadata(source).ok()?.rdev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let file = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
    file.exists().then_some(file)
}

/// What is mounted where the path lies (proc_pid_mountinfo(5)): of mounts on one place, the last.
fn source_of<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let (left, right) = line.split_once(" - ")?;
        let place = left.split(' ').nth(4)?;
        if path.starts_with(place) && best.is_none_or(|(length, _)| place.len() >= length) {
            best = Some((place.len(), right.split(' ').nth(1)?));
        }
    }
    best.map(|(_, source)| source)
}

/// What the file says by now.
pub fn reads(stat_file: &Path) -> Option<Reads> {
    parsed(&fs::read_to_string(stat_file).ok()?)
}

fn parsed(text: &str) -> Option<Reads> {
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    Some(Reads {
        requests: *numbers.get(READS)?,
        sectors: *numbers.get(READ_SECTORS)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:2 / / rw - rootfs rootfs rw
23 22 0:21 / /proc rw - proc proc rw
30 22 259:1 / /mnt rw,relatime shared:1 - ext4 /dev/nullb1 rw
31 30 259:2 / /mnt/deep rw - xfs /dev/pmem0 rw
";

    #[test]
    fn the_deepest_mount_that_holds_the_path_is_its_own() {
        assert_eq!(
            source_of(MOUNTS, Path::new("/mnt/a/b")),
            Some("/dev/nullb1")
        );
        assert_eq!(
            source_of(MOUNTS, Path::new("/mnt/deep/b")),
            Some("/dev/pmem0")
        );
        assert_eq!(source_of(MOUNTS, Path::new("/mnteep")), Some("rootfs"));
    }

    #[test]
    fn reads_are_the_first_and_the_third_column() {
        let text = "     120        3    61440        9        0        0        0        0        0       10       10";
        assert_eq!(
            parsed(text),
            Some(Reads {
                requests: 120,
                sectors: 61440
            })
        );
        assert_eq!(parsed("1 2"), None);
    }
}
