//! What hooks are given, side by side: what one of them reads brings what the next ones read into the host's caches.
//!
//! It is never given back: QEMU does not say when a block is translated anew.

use alloc::vec::Vec;
use core::ffi::c_void;

/// Data of one kind for many hooks.
pub struct Kept<T>(Vec<T>);

/// So many stand side by side.
const TOGETHER: usize = 1024;

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Kept<T> {
    /// For a hook.
    pub fn keep(&mut self, data: T) -> *mut c_void {
        if self.0.len() == self.0.capacity() {
            core::mem::replace(&mut self.0, Vec::with_capacity(TOGETHER)).leak();
        }
        let place = self.0.len();
        self.0.push(data);
        // SAFETY: it was just put there.
        unsafe { self.0.as_mut_ptr().add(place) }.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_where_it_is() {
        let mut kept = Kept::default();
        let all: Vec<*mut c_void> = (0..3 * TOGETHER).map(|number| kept.keep(number)).collect();
        for (number, place) in all.iter().enumerate() {
            // SAFETY: kept above, and never given back.
            assert_eq!(unsafe { *place.cast::<usize>() }, number);
        }
        assert_eq!(all[1] as usize - all[0] as usize, size_of::<usize>());
    }
}
