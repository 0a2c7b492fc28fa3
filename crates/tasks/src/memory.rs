//! Mapped memory.

use std::os::fd::RawFd;
use std::ptr;

use crate::failure::{succeeded, Failure};

/// The size of a page.
pub const PAGE: usize = 4096;

/// What is mapped: memory of one's own, or a file.
#[derive(Clone, Copy)]
pub struct Mapping {
    /// In bytes.
    pub length: usize,
    /// `MAP_PRIVATE`, `MAP_SHARED`, `MAP_ANONYMOUS`.
    pub flags: i32,
    /// The file; -1 for memory.
    pub file: RawFd,
}

impl Mapping {
    /// Map it, anywhere.
    #[inline(always)]
    pub fn map(self) -> Result<*mut u8, Failure> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a free place.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                self.length,
                access,
                self.flags,
                self.file,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Failure::system("mmap"));
        }
        Ok(start.cast())
    }

    /// Unmap what `map` gave.
    ///
    /// # Safety
    /// `start` is from `map` of the same mapping, and used no more.
    #[inline(always)]
    pub unsafe fn unmap(self, start: *mut u8) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        succeeded(unsafe { libc::munmap(start.cast(), self.length) }, "munmap").map(|_| ())
    }

    /// Map it, write a byte to each page, read the one next to it, which must be zero, and unmap it.
    #[inline(always)]
    pub fn touched(self) -> Result<(), Failure> {
        let start = self.map()?;
        let mut sum = 0;
        for at in (0..self.length).step_by(PAGE) {
            // SAFETY: inside the mapping just made, and the file is as long.
            unsafe {
                start.add(at).write_volatile(1);
                sum |= start.add(at + 1).read_volatile();
            }
        }
        // SAFETY: just mapped, used no more.
        unsafe { self.unmap(start)? };
        crate::failure::must(sum == 0, "fresh memory is not zero")
    }
}

/// From now on no huge page serves this process: a fault is a page's.
pub fn no_huge_pages() -> Result<(), Failure> {
    succeeded(
        // SAFETY: a plain system call.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) },
        "prctl",
    )
    .map(|_| ())
}
