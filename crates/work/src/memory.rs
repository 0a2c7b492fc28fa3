//! Buffers that cost nothing while operations are measured: whole pages, touched beforehand.

use std::ops::{Deref, DerefMut};
use std::ptr;

use crate::failure::Failure;

/// The size of a small page on x86-64.
pub const PAGE: usize = 4096;

/// Whole pages of zeros, present from the start. They are no huge pages (whether one is to be had depends on the
/// state of memory), and a forked child does not have them, so that fork does not copy what is not under study.
pub struct Pages {
    start: *mut u8,
    length: usize,
}

impl Pages {
    /// At least `bytes` bytes, and at least one page.
    pub fn new(bytes: usize) -> Result<Self, Failure> {
        let length = bytes.max(1).next_multiple_of(PAGE);
        // SAFETY: a fresh private mapping, placed by the kernel.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Failure::system("mmap"));
        }
        let mut pages = Self {
            start: start.cast(),
            length,
        };
        pages.advise(libc::MADV_DONTFORK)?;
        // A kernel without huge pages refuses this advice (EINVAL), and needs none.
        let _ = pages.advise(libc::MADV_NOHUGEPAGE);
        pages.touch();
        Ok(pages)
    }

    fn advise(&self, advice: i32) -> Result<(), Failure> {
        // SAFETY: the range is this mapping; neither advice changes its content.
        match unsafe { libc::madvise(self.start.cast(), self.length, advice) } {
            0 => Ok(()),
            _ => Err(Failure::system("madvise")),
        }
    }

    fn touch(&mut self) {
        for page in self.chunks_mut(PAGE) {
            // SAFETY: a valid, aligned byte; volatile, so that the write that makes the page present is kept.
            unsafe { ptr::write_volatile(page.as_mut_ptr(), 0) };
        }
    }
}

// SAFETY: the mapping belongs to this value alone, and to no thread.
unsafe impl Send for Pages {}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is this long, readable, initialised to zero, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and writable; `&mut self` makes the reference the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// Room for `length` 64-bit numbers, present from the start.
pub struct Numbers {
    pages: Pages,
    length: usize,
}

impl Numbers {
    /// All zero.
    pub fn new(length: usize) -> Result<Self, Failure> {
        Ok(Self {
            pages: Pages::new(length * size_of::<u64>())?,
            length,
        })
    }
}

impl Deref for Numbers {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: the pages are aligned, initialised, and long enough for `length` numbers.
        unsafe { std::slice::from_raw_parts(self.pages.start.cast(), self.length) }
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above; `&mut self` makes the reference the only one.
        unsafe { std::slice::from_raw_parts_mut(self.pages.start.cast(), self.length) }
    }
}
