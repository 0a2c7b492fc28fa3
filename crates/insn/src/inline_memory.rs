//! Counters that translated code adds to, in version 1 of the API: plain memory.

use crate::qemu::{Instruction, RawInstruction, BOTH};
use core::ffi::{c_int, c_void};

const ADD_U64: c_int = 0;

extern "C" {
    fn qemu_plugin_register_vcpu_insn_exec_inline(
        instruction: *mut RawInstruction,
        operation: c_int,
        counter: *mut c_void,
        add: u64,
    );
    fn qemu_plugin_register_vcpu_mem_inline(
        instruction: *mut RawInstruction,
        which: c_int,
        operation: c_int,
        counter: *mut c_void,
        add: u64,
    );
}

/// An array of counters.
pub struct Counters(*mut u64);

impl Counters {
    /// `length` of them, all 0.
    pub fn new(length: usize) -> Self {
        Self(alloc::vec![0u64; length].leak().as_mut_ptr())
    }

    /// Where they are.
    pub fn memory(&self) -> *mut u64 {
        self.0
    }

    /// Adds whenever the instruction starts.
    pub fn on_execution(&self, instruction: &Instruction, index: usize, add: u64) {
        // SAFETY: the instruction is being translated; the counters are never freed.
        unsafe {
            let counter = self.0.add(index).cast();
            let instruction = instruction.raw();
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, counter, add);
        }
    }

    /// Adds after each of the instruction's memory accesses.
    pub fn on_access(&self, instruction: &Instruction, index: usize, add: u64) {
        // SAFETY: as above.
        unsafe {
            let counter = self.0.add(index).cast();
            let instruction = instruction.raw();
            qemu_plugin_register_vcpu_mem_inline(instruction, BOTH, ADD_U64, counter, add);
        }
    }
}
