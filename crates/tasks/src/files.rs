//! Files of a run, and descriptors.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::failure::{succeeded, Failure};

/// A directory for the time of a run. Its name has the same length for every process: paths cost what they are long.
pub struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    /// Inside `parent`.
    pub fn new(parent: &str) -> Result<Self, Failure> {
        let directory = Path::new(parent).join(format!("ktrial-tasks-{:010}", std::process::id()));
        fs::create_dir(&directory).map_err(|error| wrong(&directory, &error))?;
        Ok(Self { directory })
    }

    /// A path in it, of a task's own.
    pub fn path(&self, name: &str, index: usize) -> CString {
        let path = self.directory.join(format!("{name}-{index:03}"));
        CString::new(path.into_os_string().into_vec()).expect("a path of the kernel's has no NUL")
    }

    /// Make a file with this content; its path.
    pub fn file(&self, name: &str, index: usize, content: &[u8]) -> Result<CString, Failure> {
        let path = self.directory.join(format!("{name}-{index:03}"));
        fs::write(&path, content).map_err(|error| wrong(&path, &error))?;
        Ok(self.path(name, index))
    }

    /// Make a directory in it; the path of `name` in that.
    pub fn path_below(&self, directory: usize, name: &str) -> Result<CString, Failure> {
        let directory = self.directory.join(format!("directory-{directory:03}"));
        fs::create_dir(&directory).map_err(|error| wrong(&directory, &error))?;
        let path = directory.join(name).into_os_string().into_vec();
        Ok(CString::new(path).expect("a path of the kernel's has no NUL"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is in the way of nobody: the name is this process's own.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::wrong(format!("{}: {error}", path.display()))
}

/// Open a file.
#[inline(always)]
pub fn open(path: &CString, flags: i32) -> Result<OwnedFd, Failure> {
    owned(
        // SAFETY: a C string that outlives the call.
        unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) },
        "open",
    )
}

/// A system call's answer as a descriptor.
#[inline(always)]
pub fn owned(answer: RawFd, call: &str) -> Result<OwnedFd, Failure> {
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(succeeded(answer, call)?) })
}

/// Close a descriptor, which must succeed.
#[inline(always)]
pub fn close(file: OwnedFd) -> Result<(), Failure> {
    use std::os::fd::IntoRawFd as _;
    // SAFETY: ours, and of no more use.
    succeeded(unsafe { libc::close(file.into_raw_fd()) }, "close").map(|_| ())
}

/// In a child: close its copies of descriptors that its parent keeps.
pub fn close_all(copies: &[RawFd]) {
    for &copy in copies {
        // SAFETY: the child has no other use of them.
        unsafe { libc::close(copy) };
    }
}

/// A pipe: the end to read from, the end to write to.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    succeeded(unsafe { libc::pipe(ends.as_mut_ptr()) }, "pipe")?;
    Ok((owned(ends[0], "pipe")?, owned(ends[1], "pipe")?))
}

/// A transfer that must be whole.
#[inline(always)]
pub fn whole(answer: isize, wanted: usize, call: &str) -> Result<(), Failure> {
    if answer == wanted as isize {
        return Ok(());
    }
    Err(short(answer, wanted, call))
}

#[cold]
fn short(answer: isize, wanted: usize, call: &str) -> Failure {
    match answer {
        ..0 => Failure::system(call),
        _ => Failure::wrong(format!("{call}: {answer} bytes of {wanted}")),
    }
}

/// One `read` that fills the buffer.
#[inline(always)]
pub fn read(file: &OwnedFd, buffer: &mut [u8]) -> Result<(), Failure> {
    // SAFETY: at most the buffer's length is written into it.
    let got = unsafe { libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    whole(got, buffer.len(), "read")
}

/// One `write` that takes the whole buffer.
#[inline(always)]
pub fn write(file: &OwnedFd, buffer: &[u8]) -> Result<(), Failure> {
    // SAFETY: at most the buffer's length is read from it.
    let put = unsafe { libc::write(file.as_raw_fd(), buffer.as_ptr().cast(), buffer.len()) };
    whole(put, buffer.len(), "write")
}

/// How long a file is, in bytes.
pub fn length(path: &CString) -> Result<u64, Failure> {
    // SAFETY: all zero is valid; the kernel fills it in.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and a structure that outlive the call.
    succeeded(unsafe { libc::stat(path.as_ptr(), &mut about) }, "stat")?;
    Ok(about.st_size as u64)
}

/// An eventfd with this number in it.
pub fn eventfd(number: u32) -> Result<OwnedFd, Failure> {
    owned(
        // SAFETY: no pointers.
        unsafe { libc::eventfd(number, libc::EFD_CLOEXEC) },
        "eventfd",
    )
}
