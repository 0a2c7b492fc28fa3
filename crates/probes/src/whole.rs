//! The kernel's files, read whole.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// How much is read at once.
pub const CHUNK: usize = 1 << 16;

/// From its start: a file in /proc is made anew for each reading from there.
pub fn whole(file: &File, chunk: &mut [u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let size = file.read_at(chunk, bytes.len() as u64).ok()?;
        bytes.extend_from_slice(&chunk[..size]);
        if size == 0 {
            return Some(bytes);
        }
    }
}
