//! What is used of QEMU's inside and of its plugin API: looked up by name, all of it before anything is changed.
//!
//! Declared by hand from the sources of the versions in `TESTED`. A function of the same name that takes other
//! arguments would be called wrongly: so other versions are refused.

use crate::c_library::symbol;
use alloc::format;
use alloc::string::String;
use core::ffi::{c_char, c_int, c_void, CStr};

/// Versions whose functions are as they are declared here, and with which the tests were run.
const TESTED: [(i64, i64); 2] = [(7, 2), (10, 0)];
const TESTED_IN_WORDS: &str = "7.2 (Debian 12) and 10.0 (Debian 13)";
/// The guest's clock (`QEMU_CLOCK_VIRTUAL`), and timers of every kind.
const VIRTUAL: c_int = 1;
const ALL_TIMERS: c_int = -1;

/// A CPU, QEMU's own.
#[repr(C)]
pub struct Cpu {
    _private: [u8; 0],
}
/// Identifies the plugin.
pub type Id = u64;
/// Called as a block or an instruction starts.
pub type OnExecution = unsafe extern "C" fn(vcpu: u32, data: usize);

/// Called at an access to memory.
pub type OnAccess = unsafe extern "C" fn(vcpu: u32, access: u32, address: u64, data: usize);
/// Of loads and stores: 7.2 takes them for one another where one is asked for.
pub const LOADS_AND_STORES: c_int = 3;

/// `VersionInfo`.
#[repr(C)]
pub struct Version {
    triple: *const [i64; 3],
    package: *const c_char,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident: fn($($argument:ty),*) $(-> $answer:ty)? = $name:literal $(or $other:literal)?;)*) => {
        /// QEMU's functions.
        pub struct Qemu {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Qemu {
            /// Looks all of them up. An error names the first that is missing.
            fn found() -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let address = named(&[$name $(, $other)?])?;
                        // SAFETY: the function of that name, in a version in which it has this signature.
                        unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $answer)?>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// CPU by number; null beyond the last.
    cpu: fn(c_int) -> *mut Cpu = c"qemu_get_cpu";
    /// Ask a CPU to leave its loop.
    exit: fn(*mut Cpu) = c"cpu_exit";
    /// Bring the CPU's registers to what they are at this place of the translated code.
    restore: fn(*mut Cpu, usize) -> bool = c"cpu_restore_state";
    /// Leave the translated code, without an exception.
    leave: fn(*mut Cpu) = c"cpu_loop_exit_noexc";
    /// Whether the CPU has nothing to do.
    is_idle: fn(*mut Cpu) -> bool = c"cpu_thread_is_idle";
    /// Whether none has.
    all_idle: fn() -> bool = c"all_cpu_threads_idle";
    /// Whether the CPU was stopped, or the machine is.
    is_stopped: fn(*mut Cpu) -> bool = c"cpu_is_stopped";
    /// Whether the machine runs.
    machine_runs: fn() -> bool = c"runstate_is_running";
    /// Nanoseconds until the next timer; -1: none.
    deadline: fn(c_int, c_int) -> i64 = c"qemu_clock_deadline_ns_all";
    /// Run timers that are due.
    run_timers: fn(c_int) -> bool = c"qemu_clock_run_timers";
    /// Take the big lock.
    lock: fn(*const c_char, c_int) = c"bql_lock_impl" or c"qemu_mutex_lock_iothread_impl";
    /// Give it back.
    unlock: fn() = c"bql_unlock" or c"qemu_mutex_unlock_iothread";
    /// Whether this thread has it.
    is_locked: fn() -> bool = c"bql_locked" or c"qemu_mutex_iothread_locked";
    /// The accelerator's operations.
    operations: fn() -> *mut *mut c_void = c"cpus_get_accel";
    /// The guest's clock, as everybody in QEMU reads it.
    clock: fn() -> i64 = c"cpus_get_virtual_clock";
    /// The time-stamp counter's, as everybody in QEMU reads it.
    ticks: fn() -> i64 = c"cpus_get_elapsed_ticks";
    version: fn(*mut *mut c_void) -> *const Version = c"qmp_query_version";
    on_translation: fn(Id, unsafe extern "C" fn(Id, *mut c_void)) = c"qemu_plugin_register_vcpu_tb_trans_cb";
    length: fn(*mut c_void) -> usize = c"qemu_plugin_tb_n_insns";
    instruction: fn(*mut c_void, usize) -> *mut c_void = c"qemu_plugin_tb_get_insn";
    size: fn(*mut c_void) -> usize = c"qemu_plugin_insn_size";
    /// Where the guest has the block.
    address: fn(*mut c_void) -> u64 = c"qemu_plugin_tb_vaddr";
    /// Where QEMU keeps an instruction's bytes; null where they are in no RAM.
    host_address: fn(*mut c_void) -> *const u8 = c"qemu_plugin_insn_haddr";
    on_block: fn(*mut c_void, OnExecution, c_int, usize) = c"qemu_plugin_register_vcpu_tb_exec_cb";
    on_access: fn(*mut c_void, OnAccess, c_int, c_int, usize) = c"qemu_plugin_register_vcpu_mem_cb";
    /// Whether an access writes.
    is_store: fn(u32) -> bool = c"qemu_plugin_mem_is_store";
    /// Where an access goes; null where that is not known.
    place: fn(u32, u64) -> *mut c_void = c"qemu_plugin_get_hwaddr";
    /// Whether that is a device.
    is_device: fn(*mut c_void) -> bool = c"qemu_plugin_hwaddr_is_io";
    /// The physical address.
    physical: fn(*mut c_void) -> u64 = c"qemu_plugin_hwaddr_phys_addr";
    on_instruction: fn(*mut c_void, OnExecution, c_int, usize) = c"qemu_plugin_register_vcpu_insn_exec_cb";
}

fn named(names: &[&CStr]) -> Result<*mut c_void, String> {
    let found = names.iter().map(|name| symbol(name));
    found
        .into_iter()
        .find(|address| !address.is_null())
        .ok_or_else(|| {
            let name = names[0].to_str().unwrap_or_default();
            format!(
                "this QEMU does not export {name}: it is none that is built as Debian builds it"
            )
        })
}

/// Whether this process is a QEMU that emulates a machine; programs that start it have the preload, too.
pub fn is_here() -> bool {
    !symbol(c"qemu_get_cpu").is_null()
}

/// The version of the plugin API that this QEMU wants: up to 8.2.3 that is 1. A later one is refused, but by this object,
/// which says why, and not by its number.
pub fn plugin_version() -> c_int {
    match symbol(c"qemu_plugin_scoreboard_new").is_null() {
        true => 1,
        false => 4,
    }
}

impl Qemu {
    /// This QEMU, if it is one of those that are known. An error says why not.
    pub fn here() -> Result<Self, String> {
        let qemu = Self::found()?;
        // SAFETY: it only reads, and what it makes is left to it; a null place for errors is allowed.
        let version = unsafe { &*(qemu.version)(core::ptr::null_mut()) };
        // SAFETY: QEMU's own three numbers.
        let [major, minor, _] = unsafe { *version.triple };
        if TESTED.contains(&(major, minor)) {
            return Ok(qemu);
        }
        Err(format!(
            "the inside of QEMU {major}.{minor} is not known here, that of {TESTED_IN_WORDS} is"
        ))
    }

    /// Whether this QEMU's `cmpxchg8b` and `cmpxchg16b` take the flags from before the block for those that the block has
    /// made. Where a CPU then leaves before other flags are made, what stays of a comparison (a pointer) is taken for
    /// flags of the processor, and the guest fails. Up to 7.2 (helper_cmpxchg16b_unlocked, target/i386/tcg/mem_helper.c;
    /// 8.0 does without the helper).
    pub fn mistakes_flags(&self) -> bool {
        plugin_version() == 1
    }

    /// The bytes of an instruction that is being translated, copied to `to`.
    ///
    /// # Safety
    /// QEMU's instruction, during translation.
    pub unsafe fn bytes<'a>(&self, instruction: *mut c_void, to: &'a mut [u8; 16]) -> &'a [u8] {
        // SAFETY: as required of the caller.
        let size = unsafe { (self.size)(instruction) }.min(to.len());
        let address = symbol(c"qemu_plugin_insn_data");
        if plugin_version() == 1 {
            // SAFETY: the function's signature in this version of the API.
            let lend: unsafe extern "C" fn(*mut c_void) -> *const u8 =
                unsafe { core::mem::transmute(address) };
            // SAFETY: as required of the caller; QEMU lends as many bytes as the instruction is long.
            unsafe { core::ptr::copy_nonoverlapping(lend(instruction), to.as_mut_ptr(), size) };
        } else {
            // SAFETY: the function's signature in this version of the API.
            let copy: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> usize =
                unsafe { core::mem::transmute(address) };
            // SAFETY: as required of the caller, and `to` is writable for `size` bytes.
            unsafe { copy(instruction, to.as_mut_ptr(), size) };
        }
        &to[..size]
    }

    /// Nanoseconds until the guest's next timer, from what its clock says now.
    pub fn until_timer(&self) -> Option<i64> {
        // SAFETY: it only reads.
        let left = unsafe { (self.deadline)(VIRTUAL, ALL_TIMERS) };
        (left >= 0).then_some(left)
    }

    /// Run the guest's timers that are due.
    ///
    /// # Safety
    /// The big lock is held.
    pub unsafe fn run_due_timers(&self) {
        // SAFETY: as required of the caller.
        unsafe { (self.run_timers)(VIRTUAL) };
    }
}
