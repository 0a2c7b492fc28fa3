//! File descriptors, and reads and writes that are whole or an error.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Turn a system call's answer into a descriptor.
pub fn descriptor(answer: i32, call: &str) -> Result<OwnedFd, Failure> {
    if answer < 0 {
        return Err(Failure::system(call));
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

/// A pipe: the end to read from, the end to write to.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    let answer = unsafe { libc::pipe(ends.as_mut_ptr()) };
    descriptor_pair(answer, ends, "pipe")
}

/// A connected pair of local stream sockets.
pub fn socketpair() -> Result<(OwnedFd, OwnedFd), Failure> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    let answer =
        unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
    descriptor_pair(answer, ends, "socketpair")
}

fn descriptor_pair(
    answer: i32,
    ends: [RawFd; 2],
    call: &str,
) -> Result<(OwnedFd, OwnedFd), Failure> {
    if answer < 0 {
        return Err(Failure::system(call));
    }
    Ok((descriptor(ends[0], call)?, descriptor(ends[1], call)?))
}

/// One `read` that fills the buffer; a short one is an error.
#[inline(always)]
pub fn read_whole(file: &impl AsRawFd, buffer: &mut [u8]) -> Result<(), Failure> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    let got = unsafe { libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    if got == buffer.len() as isize {
        return Ok(());
    }
    Err(incomplete("read", got, buffer.len()))
}

/// One `write` that takes the whole buffer; a short one is an error.
#[inline(always)]
pub fn write_whole(file: &impl AsRawFd, buffer: &[u8]) -> Result<(), Failure> {
    // SAFETY: the kernel reads at most the buffer's length from it.
    let put = unsafe { libc::write(file.as_raw_fd(), buffer.as_ptr().cast(), buffer.len()) };
    if put == buffer.len() as isize {
        return Ok(());
    }
    Err(incomplete("write", put, buffer.len()))
}

#[cold]
fn incomplete(call: &str, moved: isize, wanted: usize) -> Failure {
    match moved {
        ..0 => Failure::system(call),
        0 => Failure::wrong(format!("{call}: the other end is gone")),
        _ => Failure::wrong(format!("{call}: {moved} bytes of {wanted}")),
    }
}

/// A directory of our own for the time of a run. Its name has the same length for every process, because the kernel's
/// work on a path depends on the length.
pub struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    /// Inside `parent`.
    pub fn new(parent: &str) -> Result<Self, Failure> {
        let directory = Path::new(parent).join(format!("ktrial-work-{:010}", std::process::id()));
        fs::create_dir(&directory)
            .map_err(|error| Failure::io(&directory.display().to_string(), &error))?;
        Ok(Self { directory })
    }

    /// The path of the file `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Make a file with this content; returns its path for system calls.
    pub fn file(&self, name: &str, content: &[u8]) -> Result<CString, Failure> {
        let path = self.path(name);
        fs::write(&path, content)
            .map_err(|error| Failure::io(&path.display().to_string(), &error))?;
        CString::new(path.into_os_string().into_encoded_bytes())
            .map_err(|_| Failure::wrong("the path holds a NUL"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is in the way of nobody: the name is this process's own.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
