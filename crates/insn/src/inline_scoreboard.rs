//! Counters that translated code adds to, from version 2 of the API on: QEMU's scoreboards, which have
//! a row for each CPU. Only CPU 0's is used: see `Plugin::new`.

use crate::qemu::{Instruction, RawInstruction, BOTH};
use core::ffi::{c_int, c_uint, c_void};

const ADD_U64: c_int = 0;

#[repr(C)]
struct Scoreboard {
    _private: [u8; 0],
}

/// `qemu_plugin_u64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    board: *mut Scoreboard,
    offset: usize,
}

extern "C" {
    fn qemu_plugin_scoreboard_new(row: usize) -> *mut Scoreboard;
    fn qemu_plugin_scoreboard_find(board: *mut Scoreboard, vcpu: c_uint) -> *mut c_void;
    fn qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
        instruction: *mut RawInstruction,
        operation: c_int,
        counter: Entry,
        add: u64,
    );
    fn qemu_plugin_register_vcpu_mem_inline_per_vcpu(
        instruction: *mut RawInstruction,
        which: c_int,
        operation: c_int,
        counter: Entry,
        add: u64,
    );
}

/// An array of counters.
pub struct Counters(*mut Scoreboard);

impl Counters {
    /// `length` of them, all 0.
    pub fn new(length: usize) -> Self {
        // SAFETY: no preconditions; QEMU ends itself where memory is short.
        Self(unsafe { qemu_plugin_scoreboard_new(length * size_of::<u64>()) })
    }

    /// Where they are. QEMU moves them where it grows: not to be kept.
    pub fn memory(&self) -> *mut u64 {
        // SAFETY: the board is never freed, and CPU 0 always has a row.
        unsafe { qemu_plugin_scoreboard_find(self.0, 0) }.cast()
    }

    /// Adds whenever the instruction starts.
    pub fn on_execution(&self, instruction: &Instruction, index: usize, add: u64) {
        let (instruction, counter) = (instruction.raw(), self.entry(index));
        // SAFETY: the instruction is being translated; `index` is within the row.
        unsafe {
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD_U64, counter, add);
        }
    }

    /// Adds after each of the instruction's memory accesses.
    pub fn on_access(&self, instruction: &Instruction, index: usize, add: u64) {
        let (instruction, counter) = (instruction.raw(), self.entry(index));
        // SAFETY: as above.
        unsafe {
            qemu_plugin_register_vcpu_mem_inline_per_vcpu(instruction, BOTH, ADD_U64, counter, add);
        }
    }

    fn entry(&self, index: usize) -> Entry {
        let offset = index * size_of::<u64>();
        Entry {
            board: self.0,
            offset,
        }
    }
}
