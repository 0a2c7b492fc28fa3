//! What a program writes to its standard output and error.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// At most this much is kept of each.
pub const LIMIT: usize = 8 << 20;
const CHUNK: usize = 1 << 16;

/// The reading end of one pipe, and what came out of it. The pipe is always emptied, so that the program never waits
/// for the host: what is above the limit is thrown away.
#[derive(Debug)]
pub struct Capture {
    pipe: Option<File>,
    kept: Vec<u8>,
    dropped: bool,
}

impl Capture {
    /// Of the program that holds the pipe's other end.
    pub fn of(pipe: impl Into<OwnedFd>) -> Self {
        Self {
            pipe: Some(File::from(pipe.into())),
            kept: Vec::new(),
            dropped: false,
        }
    }

    /// What to poll; None once the pipe is at its end.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(File::as_fd)
    }

    /// Read once; waits where there is nothing to read and the other end is open.
    pub fn read_some(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        let mut chunk = [0; CHUNK];
        let size = pipe.read(&mut chunk)?;
        if size == 0 {
            self.pipe = None;
        }
        let kept = size.min(LIMIT - self.kept.len());
        self.kept.extend(&chunk[..kept]);
        self.dropped |= kept < size;
        Ok(())
    }

    /// Read to the end: every program that held the other end is gone.
    pub fn read_rest(&mut self) -> io::Result<()> {
        while self.pipe.is_some() {
            self.read_some()?;
        }
        Ok(())
    }

    /// The text (what is not UTF-8 is replaced), and whether some was thrown away.
    pub fn into_text(self) -> (String, bool) {
        let text = match String::from_utf8(self.kept) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        (text, self.dropped)
    }
}
