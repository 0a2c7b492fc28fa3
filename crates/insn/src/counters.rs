//! All counters, in the order of `layout`.

use crate::inline;
use crate::layout::LENGTH;
use crate::qemu::Instruction;
use alloc::boxed::Box;
use core::ffi::{c_uint, c_void};

/// Counters, by who adds to them.
pub enum Counters {
    /// QEMU, in translated code.
    Inline(inline::Counters),
    /// We, called by QEMU.
    Called(*mut u64),
}

/// What a called counter adds where.
struct Addition {
    counter: *mut u64,
    add: u64,
}

extern "C" fn add(_: c_uint, data: *mut c_void) {
    // SAFETY: an Addition that was leaked by `addition`; its counter lives as long as QEMU.
    unsafe {
        let addition = &*data.cast::<Addition>();
        *addition.counter += addition.add;
    }
}

extern "C" fn add_after_access(vcpu: c_uint, _: u32, _: u64, data: *mut c_void) {
    add(vcpu, data);
}

impl Counters {
    /// All of them, at 0. `inline`: let translated code count.
    pub fn new(inline: bool) -> Self {
        if inline {
            Self::Inline(inline::Counters::new(LENGTH))
        } else {
            Self::Called(alloc::vec![0u64; LENGTH].leak().as_mut_ptr())
        }
    }

    /// What they count.
    pub fn values(&self) -> &[u64] {
        // SAFETY: LENGTH counters, which live as long as QEMU. Whoever writes to them is standing still
        // while a hook of ours runs, and `add_now` needs `self` for itself.
        unsafe { core::slice::from_raw_parts(self.memory(), LENGTH) }
    }

    /// Adds to one of them.
    pub fn add_now(&mut self, index: usize, count: u64) {
        debug_assert!(index < LENGTH);
        // SAFETY: within the counters; see `values`.
        unsafe { *self.memory().add(index) += count };
    }

    /// Adds to counter `index` whenever the instruction starts.
    pub fn on_execution(&self, instruction: &Instruction, index: usize, count: u64) {
        match self {
            Self::Inline(counters) => counters.on_execution(instruction, index, count),
            Self::Called(memory) => {
                instruction.on_execution(add, addition(*memory, index, count));
            }
        }
    }

    /// Adds to counter `index` after each of the instruction's memory accesses.
    pub fn on_access(&self, instruction: &Instruction, index: usize, count: u64) {
        match self {
            Self::Inline(counters) => counters.on_access(instruction, index, count),
            Self::Called(memory) => {
                instruction.on_access(add_after_access, addition(*memory, index, count));
            }
        }
    }

    fn memory(&self) -> *mut u64 {
        match self {
            Self::Inline(counters) => counters.memory(),
            Self::Called(memory) => *memory,
        }
    }
}

fn addition(memory: *mut u64, index: usize, add: u64) -> *mut c_void {
    // SAFETY: indices come from `layout`.
    let counter = unsafe { memory.add(index) };
    core::ptr::from_mut(Box::leak(Box::new(Addition { counter, add }))).cast()
}
