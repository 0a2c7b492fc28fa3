//! The server: one thread a connection, which sends the files that it is asked for.

use std::fs::File;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use super::connection::asked;
use super::files::{FileSet, CLASSES};
use super::methods::Method;
use crate::failure::Failure;

/// Bytes in a block of getrusage's.
const BLOCK: u64 = 512;

/// What the server's threads count, by class: requests for which the disk was read, and 512-byte blocks read for them.
#[derive(Default)]
pub struct Told {
    missed: [AtomicU64; CLASSES.len()],
    blocks: [AtomicU64; CLASSES.len()],
}

/// What they counted in one operation.
pub struct Taken {
    /// Requests for which the disk was read: the file was not wholly in the page cache, or its inode was gone.
    pub missed: [u64; CLASSES.len()],
    /// Bytes that were read of the files, with those read ahead.
    pub bytes: [u64; CLASSES.len()],
}

impl Told {
    /// What was counted since the last time.
    pub fn take(&self) -> Taken {
        let taken = |counts: &[AtomicU64; CLASSES.len()]| {
            std::array::from_fn(|class| counts[class].swap(0, Ordering::Relaxed))
        };
        Taken {
            missed: taken(&self.missed),
            bytes: taken(&self.blocks).map(|blocks| blocks * BLOCK),
        }
    }
}

/// Answer requests until the client closes the connection.
pub fn serve(
    socket: &TcpStream,
    mut method: Method,
    files: &FileSet,
    told: &Told,
) -> Result<(), Failure> {
    socket
        .set_nonblocking(!method.blocks())
        .map_err(|error| Failure::io("O_NONBLOCK", &error))?;
    let mut before = blocks_read()?;
    while let Some(name) = asked(socket)? {
        let path = files.path(name);
        let file =
            File::open(&path).map_err(|error| Failure::io(&path.display().to_string(), &error))?;
        // What opening reads is the file system's own: inodes, directories.
        let opened = blocks_read()?;
        method.send(socket, &file, name.size())?;
        let now = blocks_read()?;
        if now > before {
            told.missed[name.class].fetch_add(1, Ordering::Relaxed);
            told.blocks[name.class].fetch_add(now - opened, Ordering::Relaxed);
        }
        before = now;
    }
    Ok(())
}

/// 512-byte blocks that this thread had read from disks so far, ahead of time or at once.
fn blocks_read() -> Result<u64, Failure> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills in the whole structure where it answers 0.
    unsafe {
        match libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) {
            0 => Ok(usage.assume_init().ru_inblock as u64),
            _ => Err(Failure::system("getrusage")),
        }
    }
}
