//! QEMU's plugin API, declared by hand from its documentation and `nm -D qemu-system-x86_64`: the header is not
//! packaged everywhere, and differs between versions.
//!
//! Everything here is called in QEMU's one TCG thread (`-icount` allows no other), or before it runs.

use alloc::boxed::Box;
use core::ffi::{c_char, c_int, c_uint, c_void};

/// Identifies the plugin.
pub type Id = u64;
/// Called as a block or an instruction starts.
pub type OnExecution = extern "C" fn(vcpu: c_uint, data: *mut c_void);
/// Called after a memory access.
pub type OnAccess = extern "C" fn(vcpu: c_uint, info: u32, address: u64, data: *mut c_void);

/// What QEMU says of itself (`qemu_info_t`).
#[repr(C)]
pub struct Info {
    /// `x86_64`.
    pub target: *const c_char,
    /// Oldest and newest plugin API.
    pub versions: [c_int; 2],
    /// A whole machine, not a single program.
    pub system: bool,
    /// CPUs at the start, and at most.
    pub cpus: [c_int; 2],
}

/// QEMU's own.
#[repr(C)]
pub struct RawBlock {
    _private: [u8; 0],
}

/// QEMU's own.
#[repr(C)]
pub struct RawInstruction {
    _private: [u8; 0],
}

const NO_REGISTERS: c_int = 0;
const ADD_U64: c_int = 0;
/// Loads and stores. QEMU 7.2 takes the two for one another where only one is asked for (`op_rw`, plugin-gen.c).
const BOTH: c_int = 3;

extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, hook: extern "C" fn(Id, *mut RawBlock));
    fn qemu_plugin_register_atexit_cb(id: Id, hook: extern "C" fn(Id, *mut c_void), data: *mut c_void);
    fn qemu_plugin_tb_n_insns(block: *const RawBlock) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const RawBlock, index: usize) -> *mut RawInstruction;
    fn qemu_plugin_register_vcpu_tb_exec_cb(b: *mut RawBlock, hook: OnExecution, flags: c_int, data: *mut c_void);
    fn qemu_plugin_insn_vaddr(i: *const RawInstruction) -> u64;
    fn qemu_plugin_insn_haddr(i: *const RawInstruction) -> *const u8;
    fn qemu_plugin_insn_size(i: *const RawInstruction) -> usize;
    fn qemu_plugin_register_vcpu_insn_exec_cb(i: *mut RawInstruction, h: OnExecution, flags: c_int, data: *mut c_void);
    fn qemu_plugin_mem_is_store(access: u32) -> bool;
    fn qemu_plugin_register_vcpu_mem_cb(i: *mut RawInstruction, h: OnAccess, flags: c_int, rw: c_int, d: *mut c_void);
}

/// Version 1: counters are plain memory, and an instruction's bytes are lent.
#[cfg(feature = "api1")]
mod version {
    use super::{c_int, c_void, RawInstruction, ADD_U64, BOTH};

    extern "C" {
        fn qemu_plugin_insn_data(i: *const RawInstruction) -> *const u8;
        fn qemu_plugin_register_vcpu_insn_exec_inline(i: *mut RawInstruction, op: c_int, at: *mut c_void, add: u64);
        fn qemu_plugin_register_vcpu_mem_inline(i: *mut RawInstruction, rw: c_int, op: c_int, at: *mut c_void, a: u64);
    }

    pub const API: c_int = 1;

    /// Counters that translated code adds to.
    pub struct Counters(*mut u64);

    impl Counters {
        pub fn new(length: usize) -> Self {
            Self(super::zeroed(length))
        }

        pub fn memory(&self) -> *mut u64 {
            self.0
        }

        pub unsafe fn on_execution(&self, instruction: *mut RawInstruction, index: usize, add: u64) {
            // SAFETY: `index` is within the counters, which are never freed.
            unsafe { qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, self.0.add(index).cast(), add) }
        }

        pub unsafe fn on_access(&self, instruction: *mut RawInstruction, index: usize, add: u64) {
            // SAFETY: as above.
            unsafe { qemu_plugin_register_vcpu_mem_inline(instruction, BOTH, ADD_U64, self.0.add(index).cast(), add) }
        }
    }

    pub unsafe fn bytes(instruction: *const RawInstruction, to: &mut [u8]) {
        // SAFETY: QEMU lends as many bytes as the instruction is long, which is the length of `to`.
        unsafe { core::ptr::copy_nonoverlapping(qemu_plugin_insn_data(instruction), to.as_mut_ptr(), to.len()) }
    }
}

/// Version 2 and later: counters are QEMU's, a row for each CPU.
#[cfg(not(feature = "api1"))]
mod version {
    use super::{c_int, c_uint, c_void, RawInstruction, ADD_U64, BOTH};

    #[repr(C)]
    struct Scoreboard {
        _private: [u8; 0],
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Entry {
        board: *mut Scoreboard,
        offset: usize,
    }

    extern "C" {
        fn qemu_plugin_scoreboard_new(row: usize) -> *mut Scoreboard;
        fn qemu_plugin_scoreboard_find(board: *mut Scoreboard, vcpu: c_uint) -> *mut c_void;
        fn qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(i: *mut RawInstruction, op: c_int, at: Entry, add: u64);
        fn qemu_plugin_register_vcpu_mem_inline_per_vcpu(
            i: *mut RawInstruction,
            rw: c_int,
            op: c_int,
            at: Entry,
            add: u64,
        );
        #[cfg(feature = "api2")]
        fn qemu_plugin_insn_data(i: *const RawInstruction) -> *const u8;
        #[cfg(not(feature = "api2"))]
        fn qemu_plugin_insn_data(i: *const RawInstruction, to: *mut c_void, size: usize) -> usize;
    }

    pub const API: c_int = if cfg!(feature = "api4") {
        4
    } else if cfg!(feature = "api3") {
        3
    } else {
        2
    };

    /// Counters that translated code adds to; of CPU 0 only, see `Plugin::inline`.
    pub struct Counters(*mut Scoreboard);

    impl Counters {
        pub fn new(length: usize) -> Self {
            // SAFETY: no preconditions; QEMU ends itself where memory is short.
            Self(unsafe { qemu_plugin_scoreboard_new(length * size_of::<u64>()) })
        }

        pub fn memory(&self) -> *mut u64 {
            // SAFETY: the board is never freed; CPU 0 always has a row. A larger machine moves it: do not keep it.
            unsafe { qemu_plugin_scoreboard_find(self.0, 0) }.cast()
        }

        fn entry(&self, index: usize) -> Entry {
            Entry { board: self.0, offset: index * size_of::<u64>() }
        }

        pub unsafe fn on_execution(&self, instruction: *mut RawInstruction, index: usize, add: u64) {
            let entry = self.entry(index);
            // SAFETY: `index` is within the row.
            unsafe { qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD_U64, entry, add) }
        }

        pub unsafe fn on_access(&self, instruction: *mut RawInstruction, index: usize, add: u64) {
            let entry = self.entry(index);
            // SAFETY: as above.
            unsafe { qemu_plugin_register_vcpu_mem_inline_per_vcpu(instruction, BOTH, ADD_U64, entry, add) }
        }
    }

    #[cfg(feature = "api2")]
    pub unsafe fn bytes(instruction: *const RawInstruction, to: &mut [u8]) {
        // SAFETY: QEMU lends as many bytes as the instruction is long, which is the length of `to`.
        unsafe { core::ptr::copy_nonoverlapping(qemu_plugin_insn_data(instruction), to.as_mut_ptr(), to.len()) }
    }

    #[cfg(not(feature = "api2"))]
    pub unsafe fn bytes(instruction: *const RawInstruction, to: &mut [u8]) {
        // SAFETY: `to` is writable for its length.
        unsafe { qemu_plugin_insn_data(instruction, to.as_mut_ptr().cast(), to.len()) };
    }
}

/// The plugin API's version that this build is for.
pub const API: c_int = version::API;

/// QEMU looks for this name.
#[no_mangle]
#[allow(non_upper_case_globals)] // QEMU's spelling.
pub static qemu_plugin_version: c_int = API;

/// Memory that lives as long as QEMU.
fn zeroed(length: usize) -> *mut u64 {
    alloc::vec![0u64; length].leak().as_mut_ptr()
}

/// Numbered counters.
pub enum Counters {
    /// QEMU adds in translated code.
    Inline(version::Counters),
    /// QEMU calls us to add.
    Called(*mut u64),
}

/// What a called counter adds where.
struct Addition {
    counter: *mut u64,
    add: u64,
}

extern "C" fn add(_: c_uint, data: *mut c_void) {
    // SAFETY: `data` is an Addition, leaked in `Counters::on_execution`; its counter lives as long as QEMU.
    unsafe {
        let addition = &*data.cast::<Addition>();
        *addition.counter += addition.add;
    }
}

extern "C" fn add_after_access(vcpu: c_uint, _: u32, _: u64, data: *mut c_void) {
    add(vcpu, data);
}

impl Counters {
    /// `length` counters, all 0. `inline`: let translated code count.
    pub fn new(length: usize, inline: bool) -> Self {
        if inline {
            Self::Inline(version::Counters::new(length))
        } else {
            Self::Called(zeroed(length))
        }
    }

    /// Where they are, for now.
    pub fn memory(&self) -> *mut u64 {
        match self {
            Self::Inline(counters) => counters.memory(),
            Self::Called(memory) => *memory,
        }
    }

    fn addition(memory: *mut u64, index: usize, add: u64) -> *mut c_void {
        // SAFETY: callers pass indices within the counters.
        let counter = unsafe { memory.add(index) };
        (Box::leak(Box::new(Addition { counter, add })) as *mut Addition).cast()
    }

    /// Adds to counter `index` whenever the instruction starts.
    pub fn on_execution(&self, instruction: &Instruction, index: usize, count: u64) {
        match self {
            // SAFETY: the instruction is being translated.
            Self::Inline(counters) => unsafe { counters.on_execution(instruction.0, index, count) },
            Self::Called(memory) => instruction.on_execution(add, Self::addition(*memory, index, count)),
        }
    }

    /// Adds to counter `index` after each of the instruction's memory accesses.
    pub fn on_access(&self, instruction: &Instruction, index: usize, count: u64) {
        match self {
            // SAFETY: the instruction is being translated.
            Self::Inline(counters) => unsafe { counters.on_access(instruction.0, index, count) },
            Self::Called(memory) => instruction.on_access(add_after_access, Self::addition(*memory, index, count)),
        }
    }
}

/// Whether a memory access, as its hook was told, is a store.
pub fn is_store(access: u32) -> bool {
    // SAFETY: reads bits of its argument.
    unsafe { qemu_plugin_mem_is_store(access) }
}

/// A translation block while it is being translated.
pub struct Block(*mut RawBlock);

impl Block {
    /// How many instructions it has.
    pub fn len(&self) -> usize {
        // SAFETY: QEMU's block, during translation.
        unsafe { qemu_plugin_tb_n_insns(self.0) }
    }

    /// One of them.
    pub fn instruction(&self, index: usize) -> Instruction {
        // SAFETY: QEMU's block, during translation.
        Instruction(unsafe { qemu_plugin_tb_get_insn(self.0, index) })
    }

    /// Calls `hook` whenever the block starts.
    pub fn on_execution(&self, hook: OnExecution, data: *mut c_void) {
        // SAFETY: QEMU's block, during translation; `data` is for `hook` to know.
        unsafe { qemu_plugin_register_vcpu_tb_exec_cb(self.0, hook, NO_REGISTERS, data) }
    }
}

/// An instruction while its block is being translated.
pub struct Instruction(*mut RawInstruction);

impl Instruction {
    /// Where it is.
    pub fn address(&self) -> u64 {
        // SAFETY: QEMU's instruction, during translation.
        unsafe { qemu_plugin_insn_vaddr(self.0) }
    }

    /// Its bytes, copied to `to`.
    pub fn bytes<'a>(&self, to: &'a mut [u8; 16]) -> &'a [u8] {
        // SAFETY: QEMU's instruction, during translation.
        let size = unsafe { qemu_plugin_insn_size(self.0) }.min(to.len());
        // SAFETY: as above, and `to` is no longer than the instruction.
        unsafe { version::bytes(self.0, &mut to[..size]) };
        &to[..size]
    }

    /// The guest page that holds its first byte, in QEMU's memory; None where that is no RAM.
    pub fn page(&self) -> Option<&'static [u8; 4096]> {
        // SAFETY: QEMU's instruction, during translation.
        let host = unsafe { qemu_plugin_insn_haddr(self.0) };
        let within = self.address() as usize & 0xfff;
        if host.is_null() || host as usize & 0xfff != within {
            return None;
        }
        // SAFETY: guest RAM is mapped in whole pages, and as long as QEMU runs. The one thread that could change it
        // is the one that is translating.
        Some(unsafe { &*host.sub(within).cast() })
    }

    /// Calls `hook` whenever the instruction starts.
    pub fn on_execution(&self, hook: OnExecution, data: *mut c_void) {
        // SAFETY: QEMU's instruction, during translation; `data` is for `hook` to know.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(self.0, hook, NO_REGISTERS, data) }
    }

    /// Calls `hook` after each of the instruction's memory accesses.
    pub fn on_access(&self, hook: OnAccess, data: *mut c_void) {
        // SAFETY: as above.
        unsafe { qemu_plugin_register_vcpu_mem_cb(self.0, hook, NO_REGISTERS, BOTH, data) }
    }
}

extern "C" fn translated(_: Id, block: *mut RawBlock) {
    crate::plugin::translate(&Block(block));
}

extern "C" fn at_exit(_: Id, _: *mut c_void) {
    crate::plugin::finish();
}

/// From now on `plugin::translate` sees every block, and `plugin::finish` the end.
pub fn start(id: Id) {
    // SAFETY: `id` is what QEMU gave to qemu_plugin_install.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, at_exit, core::ptr::null_mut());
    }
}
