//! What a program writes to its standard output and error: read rarely, so that reading does not disturb it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::unistd::pipe2;

/// At most this much is kept of each: what the agent keeps in a guest.
pub const LIMIT: usize = 8 << 20;
/// The most that a user without privilege may ask for (/proc/sys/fs/pipe-max-size): a program can write a mebibyte
/// before it waits for its reader.
const PIPE: i32 = 1 << 20;
const CHUNK: usize = 1 << 16;

/// One pipe. It is always emptied in the end: what is above the limit is thrown away.
#[derive(Debug)]
pub struct Output {
    reading: File,
    writing: Option<OwnedFd>,
    open: bool,
    kept: Vec<u8>,
    dropped: bool,
}

impl Output {
    /// A pipe that no program has yet.
    pub fn new() -> io::Result<Self> {
        let (reading, writing) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&reading, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // Where the user's pipes are too large already it keeps its size.
        let _smaller = fcntl(&reading, FcntlArg::F_SETPIPE_SZ(PIPE));
        Ok(Self {
            reading: reading.into(),
            writing: Some(writing),
            open: true,
            kept: Vec::new(),
            dropped: false,
        })
    }

    /// The end for the program.
    pub fn for_child(&self) -> i32 {
        self.writing.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// The program has had its copy of the end, and is gone. Not before: the last one that closes it wakes the reader.
    pub fn close_for_child(&mut self) {
        self.writing = None;
    }

    /// What to poll; None once the pipe is at its end.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.reading.as_fd())
    }

    /// Read what is there now.
    pub fn drain(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        while self.open {
            match self.reading.read(&mut chunk) {
                Ok(0) => self.open = false,
                Ok(size) => self.keep(&chunk[..size]),
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(LIMIT - self.kept.len());
        self.kept.extend(&bytes[..kept]);
        self.dropped |= kept < bytes.len();
    }

    /// The text (what is not UTF-8 is replaced), and whether some was thrown away.
    pub fn into_text(self) -> (String, bool) {
        (
            String::from_utf8_lossy(&self.kept).into_owned(),
            self.dropped,
        )
    }
}
