//! Files whose content says where it belongs: each 4 KiB begins and ends with a number of the file, the place and the
//! version that was written.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr;

use crate::failure::Failure;
use crate::memory::{Pages, PAGE};

const CHUNK: usize = 1 << 20;
const WORD: usize = 8;

/// The number that stands at both ends of a page.
fn word(file: u64, page: u64, version: u64) -> u64 {
    let mixed = (file << 40) ^ (version << 28) ^ page;
    (mixed ^ 0x5bd1_e995_9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Stamp whole pages that begin at byte `offset` of the file.
pub fn stamp(bytes: &mut [u8], file: u64, offset: u64, version: u64) {
    for (number, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let word = word(file, offset / PAGE as u64 + number as u64, version).to_le_bytes();
        page[..WORD].copy_from_slice(&word);
        page[PAGE - WORD..].copy_from_slice(&word);
    }
}

/// Whether whole pages are those from byte `offset` of the file.
#[inline]
pub fn check(bytes: &[u8], file: u64, offset: u64, version: u64) -> Result<(), Failure> {
    for (number, page) in bytes.chunks_exact(PAGE).enumerate() {
        let at = offset / PAGE as u64 + number as u64;
        let word = word(file, at, version).to_le_bytes();
        if page[..WORD] != word || page[PAGE - WORD..] != word {
            return Err(wrong(file, at));
        }
    }
    Ok(())
}

#[cold]
fn wrong(file: u64, page: u64) -> Failure {
    Failure::wrong(format!(
        "page {page} of file {file} is not what was written there"
    ))
}

/// Make a file of `size` bytes (whole pages), on disk when this returns, and out of the page cache.
pub fn made(path: &Path, file: u64, size: usize) -> Result<File, Failure> {
    let failed = |error: std::io::Error| Failure::io(&path.display().to_string(), &error);
    let mut options = OpenOptions::new();
    let made = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(failed)?;
    let mut buffer = Pages::new(CHUNK.min(size))?;
    for offset in (0..size).step_by(CHUNK) {
        let bytes = &mut buffer[..CHUNK.min(size - offset)];
        stamp(bytes, file, offset as u64, 0);
        made.write_all_at(bytes, offset as u64).map_err(failed)?;
    }
    made.sync_all().map_err(failed)?;
    dropped(&made)?;
    Ok(made)
}

/// Take a file's pages, which must be on disk, out of the page cache.
pub fn dropped(file: &File) -> Result<(), Failure> {
    // SAFETY: a call on an open descriptor, with plain numbers.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(Failure::io(
            "posix_fadvise",
            &std::io::Error::from_raw_os_error(error),
        )),
    }
}

/// How many pages of a file of `size` bytes are in the page cache. Looking changes nothing about them.
pub fn resident(file: &File, size: usize) -> Result<usize, Failure> {
    let mut present = vec![0_u8; size.div_ceil(PAGE)];
    // SAFETY: a fresh mapping that nothing else refers to, unmapped before this returns; the kernel writes one byte a
    // page into `present`.
    let answer = unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if start == libc::MAP_FAILED {
            return Err(Failure::system("mmap"));
        }
        let answer = libc::mincore(start, size, present.as_mut_ptr());
        libc::munmap(start, size);
        answer
    };
    match answer {
        // The other bits mean nothing yet (mincore(2)).
        0 => Ok(present.iter().filter(|byte| **byte & 1 == 1).count()),
        _ => Err(Failure::system("mincore")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_by_file_place_and_version() {
        let mut pages = vec![0; 2 * PAGE];
        stamp(&mut pages, 3, 8192, 1);
        assert!(check(&pages, 3, 8192, 1).is_ok());
        for (file, offset, version) in [(4, 8192, 1), (3, 4096, 1), (3, 8192, 0)] {
            assert!(check(&pages, file, offset, version).is_err());
        }
        pages[2 * PAGE - 1] ^= 1;
        assert!(check(&pages, 3, 8192, 1).is_err(), "torn");
    }

    #[test]
    fn a_file_has_all_its_pages() {
        let path = std::env::temp_dir().join(format!("ktrial-stamped-{}", std::process::id()));
        let (file, size) = (made(&path, 9, CHUNK + 3 * PAGE).unwrap(), CHUNK + 3 * PAGE);
        let mut found = vec![0; size];
        file.read_exact_at(&mut found, 0).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(check(&found, 9, 0, 0).is_ok());
    }

    #[test]
    fn what_was_just_read_is_in_the_page_cache() {
        let path = std::env::temp_dir().join(format!("ktrial-resident-{}", std::process::id()));
        let (file, size) = (made(&path, 9, 5 * PAGE).unwrap(), 5 * PAGE);
        file.read_exact_at(&mut vec![0; size], 0).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(resident(&file, size).unwrap(), 5);
        assert_eq!(resident(&file, 2 * PAGE).unwrap(), 2);
    }
}
