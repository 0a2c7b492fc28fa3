//! Memory that processes and threads share alike.

use std::ops::Deref;
use std::ptr;

use crate::failure::Failure;

/// A type all of whose bytes may be zero, and that many may change at once.
///
/// # Safety
/// Zeroes are a valid value, and it is made of atomics alone.
pub unsafe trait Zeroed: Sync {}

// SAFETY: an atomic of a plain integer.
unsafe impl Zeroed for std::sync::atomic::AtomicU32 {}
// SAFETY: an atomic of a plain integer.
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}
// SAFETY: the alignment adds nothing but padding.
unsafe impl<T: Zeroed> Zeroed for Alone<T> {}

/// A value with a cache line of its own, and its neighbour.
#[repr(align(128))]
pub struct Alone<T>(pub T);

/// An array in pages that are shared with all children, all zero at first.
pub struct Shared<T: Zeroed> {
    start: *const T,
    length: usize,
}

// SAFETY: what is in it is Sync, and the pages stay where they are for as long as it lives.
unsafe impl<T: Zeroed> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Send for Shared<T> {}

impl<T: Zeroed> Shared<T> {
    /// So many of them.
    pub fn new(length: usize) -> Result<Self, Failure> {
        let (read_write, shared) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh mapping.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                (length * size_of::<T>()).max(1),
                read_write,
                shared,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Failure::system("mmap"));
        }
        let shared = Self {
            start: start.cast_const().cast(),
            length,
        };
        shared.touch();
        Ok(shared)
    }

    /// Each page is there before anybody measures.
    fn touch(&self) {
        for at in (0..self.length * size_of::<T>()).step_by(4096) {
            // SAFETY: inside the mapping, which nobody else has yet.
            unsafe { self.start.cast::<u8>().add(at).cast_mut().write_volatile(0) };
        }
    }
}

impl<T: Zeroed> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `length` values, all zero at first, which is valid by `Zeroed`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl<T: Zeroed> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping; nobody borrows it any more.
        unsafe {
            libc::munmap(
                self.start.cast_mut().cast(),
                (self.length * size_of::<T>()).max(1),
            )
        };
    }
}
