//! QEMU's plugin API, declared by hand from its documentation and `nm -D qemu-system-x86_64`: the
//! header is not packaged everywhere, and differs between versions.
//!
//! Everything here is called in QEMU's one TCG thread (`-icount` allows no other), or before it runs.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// Identifies the plugin.
pub type Id = u64;
/// Called as a block or an instruction starts.
pub type OnExecution = extern "C" fn(vcpu: c_uint, data: *mut c_void);
/// Called after a memory access.
pub type OnAccess = extern "C" fn(vcpu: c_uint, access: u32, address: u64, data: *mut c_void);

/// The plugin API's version that this build is for. QEMU looks for the name.
#[export_name = "qemu_plugin_version"]
pub static VERSION: c_int = if cfg!(feature = "api7") {
    7
} else if cfg!(feature = "api4") {
    4
} else if cfg!(feature = "api3") {
    3
} else if cfg!(feature = "api2") {
    2
} else {
    1
};

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

#[repr(C)]
struct RawPlace {
    _private: [u8; 0],
}

/// Hooks that ask QEMU to bring its copy of the registers up to date cost more.
const NO_REGISTERS: c_int = 0;
/// Loads and stores. QEMU 7.2 takes the two for one another where only one is asked for (`op_rw` in
/// its plugin-gen.c).
pub const BOTH: c_int = 3;

extern "C" {
    fn qemu_plugin_tb_n_insns(block: *const RawBlock) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const RawBlock, index: usize) -> *mut RawInstruction;
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut RawBlock,
        hook: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_insn_vaddr(instruction: *const RawInstruction) -> u64;
    fn qemu_plugin_insn_haddr(instruction: *const RawInstruction) -> *const u8;
    fn qemu_plugin_insn_size(instruction: *const RawInstruction) -> usize;
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut RawInstruction,
        hook: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut RawInstruction,
        hook: OnAccess,
        flags: c_int,
        which: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_mem_is_store(access: u32) -> bool;
    fn qemu_plugin_mem_size_shift(access: u32) -> c_uint;
    fn qemu_plugin_get_hwaddr(access: u32, address: u64) -> *mut RawPlace;
    fn qemu_plugin_hwaddr_is_io(place: *const RawPlace) -> bool;
    fn qemu_plugin_hwaddr_phys_addr(place: *const RawPlace) -> u64;
}

#[cfg(not(feature = "api7"))]
extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, hook: extern "C" fn(Id, *mut RawBlock));
    fn qemu_plugin_register_atexit_cb(id: Id, h: extern "C" fn(Id, *mut c_void), data: *mut c_void);
}

// From version 7 on, hooks get their data in place of the plugin's number.
#[cfg(feature = "api7")]
extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: Id,
        hook: extern "C" fn(*mut RawBlock, *mut c_void),
        data: *mut c_void,
    );
    fn qemu_plugin_register_atexit_cb(id: Id, h: extern "C" fn(*mut c_void), data: *mut c_void);
}

#[cfg(any(feature = "api3", feature = "api4", feature = "api7"))]
extern "C" {
    fn qemu_plugin_insn_data(i: *const RawInstruction, to: *mut c_void, size: usize) -> usize;
}

#[cfg(not(any(feature = "api3", feature = "api4", feature = "api7")))]
extern "C" {
    fn qemu_plugin_insn_data(instruction: *const RawInstruction) -> *const u8;
}

/// A translation block while it is being translated.
pub struct Block(*mut RawBlock);

impl Block {
    /// How many instructions it has.
    pub fn count(&self) -> usize {
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
        #[cfg(any(feature = "api3", feature = "api4", feature = "api7"))]
        // SAFETY: as above, and `to` is writable for `size` bytes.
        unsafe {
            qemu_plugin_insn_data(self.0, to.as_mut_ptr().cast(), size)
        };
        #[cfg(not(any(feature = "api3", feature = "api4", feature = "api7")))]
        // SAFETY: as above; QEMU lends as many bytes as the instruction is long.
        unsafe {
            core::ptr::copy_nonoverlapping(qemu_plugin_insn_data(self.0), to.as_mut_ptr(), size)
        };
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
        // SAFETY: guest RAM is mapped in whole pages, and as long as QEMU runs. The one thread that
        // could change it is the one that is translating.
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

    /// For registering more; valid during translation.
    pub fn raw(&self) -> *mut RawInstruction {
        self.0
    }
}

/// Whether a memory access, as its hook was told, is a store.
pub fn is_store(access: u32) -> bool {
    // SAFETY: reads bits of its argument.
    unsafe { qemu_plugin_mem_is_store(access) }
}

/// How many bytes a memory access reads or writes.
pub fn size(access: u32) -> u64 {
    // SAFETY: reads bits of its argument.
    1 << unsafe { qemu_plugin_mem_size_shift(access) }
}

/// The physical address of an access whose hook is running; None where it goes to a device.
pub fn physical(access: u32, address: u64) -> Option<u64> {
    // SAFETY: called in the access's own hook, as QEMU requires.
    unsafe {
        let place = qemu_plugin_get_hwaddr(access, address);
        let in_ram = !place.is_null() && !qemu_plugin_hwaddr_is_io(place);
        in_ram.then(|| qemu_plugin_hwaddr_phys_addr(place))
    }
}

/// What the plugin does when QEMU calls it.
pub trait Plugin {
    /// A block is being translated.
    fn translate(block: &Block);
    /// QEMU ends.
    fn finish();
}

#[cfg(not(feature = "api7"))]
extern "C" fn translated<P: Plugin>(_: Id, block: *mut RawBlock) {
    P::translate(&Block(block));
}

#[cfg(feature = "api7")]
extern "C" fn translated<P: Plugin>(block: *mut RawBlock, _: *mut c_void) {
    P::translate(&Block(block));
}

#[cfg(not(feature = "api7"))]
extern "C" fn at_exit<P: Plugin>(_: Id, _: *mut c_void) {
    P::finish();
}

#[cfg(feature = "api7")]
extern "C" fn at_exit<P: Plugin>(_: *mut c_void) {
    P::finish();
}

/// From now on the plugin sees every block as it is translated, and the end.
pub fn start<P: Plugin>(id: Id) {
    // SAFETY: `id` is what QEMU gave to qemu_plugin_install.
    unsafe {
        #[cfg(not(feature = "api7"))]
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated::<P>);
        #[cfg(feature = "api7")]
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated::<P>, core::ptr::null_mut());
        qemu_plugin_register_atexit_cb(id, at_exit::<P>, core::ptr::null_mut());
    }
}
