//! QEMU's own functions, by their names: Debian's QEMU exports all of them, for its modules.

use crate::c_library::symbol;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::mem::transmute_copy;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions that are called here, with the types that QEMU 7.2 has them with.
        #[allow(missing_docs)]
        pub struct Qemu { $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)* }

        impl Qemu {
            /// All of them; None where one is missing.
            pub fn find() -> Option<Self> {
                Some(Self { $($name: {
                    const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!(),
                    };
                    let at = symbol(NAME)?;
                    // SAFETY: the function of that name, whose type is this in QEMU 7.2.
                    unsafe { transmute_copy(&at) }
                },)* })
            }
        }
    };
}

functions! {
    qemu_mutex_lock_iothread_impl: fn(*const c_char, c_int);
    qemu_mutex_unlock_iothread: fn();
    runstate_is_running: fn() -> bool;
    runstate_set: fn(c_int);
    qapi_enum_parse: fn(*const c_void, *const c_char, c_int, *mut c_void) -> c_int;
    qemu_system_reset: fn(c_int);
    qemu_ram_block_by_name: fn(*const c_char) -> *mut c_void;
    qemu_ram_get_host_addr: fn(*mut c_void) -> *mut u8;
    qemu_ram_get_used_length: fn(*mut c_void) -> usize;
    qemu_ram_addr_from_host: fn(*mut u8) -> u64;
    tb_invalidate_phys_range: fn(u64, u64);
    tcg_tb_foreach: fn(extern "C" fn(*mut c_void, *const Translated, *mut c_void) -> c_int, *mut c_void);
    fw_cfg_find: fn() -> *mut c_void;
    fw_cfg_modify_file: fn(*mut c_void, *const c_char, *mut c_void, usize) -> *mut c_void;
    g_free: fn(*mut c_void);
    qio_channel_file_new_fd: fn(c_int) -> *mut c_void;
    object_unref: fn(*mut c_void);
    qemu_file_new_input: fn(*mut c_void) -> *mut c_void;
    qemu_loadvm_state: fn(*mut c_void) -> c_int;
    qemu_loadvm_state_cleanup: fn();
    qemu_fclose: fn(*mut c_void) -> c_int;
}

/// The beginning of `TranslationBlock` in QEMU 7.2.
#[repr(C)]
pub struct Translated {
    /// Where its code is.
    pub address: u64,
}

/// `SHUTDOWN_CAUSE_NONE`: as QEMU resets its machine when it starts.
const AT_START: c_int = 0;

impl Qemu {
    /// The machine as it is before the guest's first instruction. While QEMU waits for a snapshot, it writes no ROM
    /// into memory (`rom_reset`).
    ///
    /// # Safety
    /// In the main thread, with the big lock, the guest stopped.
    pub unsafe fn reset(&self) {
        // SAFETY: as required of the caller; QEMU allows these changes.
        unsafe {
            self.become_(c"prelaunch");
            self.become_(c"inmigrate");
            (self.qemu_system_reset)(AT_START);
        }
    }

    /// Another state of the machine as a whole (`RunState`).
    ///
    /// # Safety
    /// As `reset`, and QEMU allows this change.
    pub unsafe fn become_(&self, state: &CStr) {
        let Some(names) = symbol(c"RunState_lookup") else {
            return;
        };
        // SAFETY: as required of the caller; QEMU's table of the states' names.
        unsafe {
            let number = (self.qapi_enum_parse)(names, state.as_ptr(), -1, core::ptr::null_mut());
            (self.runstate_set)(number);
        }
    }

    /// The state in an open file, which is closed. Whether QEMU took it.
    ///
    /// # Safety
    /// As `reset`.
    pub unsafe fn load(&self, file: c_int) -> bool {
        // SAFETY: as required of the caller.
        unsafe {
            let channel = (self.qio_channel_file_new_fd)(file);
            let stream = (self.qemu_file_new_input)(channel);
            (self.object_unref)(channel);
            let answer = (self.qemu_loadvm_state)(stream);
            (self.qemu_fclose)(stream);
            (self.qemu_loadvm_state_cleanup)();
            answer >= 0
        }
    }
}
