//! QEMU loads the object twice: as a preload, before itself, and as its plugin. Between the two it is refused, or not.

use crate::accelerator::take_over;
use crate::arguments::Arguments;
use crate::c_library::{complain, give_up};
use crate::clocks::{CPUS_THREAD, END, LEFT, RUNS, START};
use crate::hooks::{interrupt, translated};
use crate::installed::{self, Installed};
use crate::qemu::{plugin_version, Id, Qemu};
use alloc::string::String;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// The plugin API's version that QEMU finds here: its own, of those that this object can do with.
#[export_name = "qemu_plugin_version"]
pub static VERSION: AtomicI32 = AtomicI32::new(1);

/// Runs as the object is loaded, before QEMU.
#[used]
#[link_section = ".init_array"]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        VERSION.store(plugin_version(), SeqCst);
    }
    at_load
};

/// QEMU calls this once, as it loads the plugin. 0 is success; anything else ends QEMU.
///
/// # Safety
/// `argv` has `argc` strings.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _info: *const c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: as required of the caller.
    match unsafe { configured(argc, argv) } {
        Ok(waiting) => {
            START.store(waiting.1.clock, SeqCst);
            END.store(waiting.1.clock, SeqCst);
            LEFT.store(0, SeqCst);
            let qemu = installed::keep(waiting);
            // SAFETY: `id` is QEMU's, and the hook lives as long as the process.
            unsafe { (qemu.on_translation)(id, translated) };
            0
        }
        Err(problem) => {
            complain(&problem);
            1
        }
    }
}

/// # Safety
/// As `qemu_plugin_install`.
unsafe fn configured(argc: c_int, argv: *const *const c_char) -> Result<(Qemu, Arguments), String> {
    let words = (0..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: as required of the caller; every argument is a C string.
        let word = unsafe { CStr::from_ptr(*argv.add(index)) };
        word.to_str().unwrap_or("[not UTF-8]")
    });
    let asked = Arguments::read(words)?;
    Ok((Qemu::here()?, asked))
}

/// The main thread waits for the CPUs' thread to be made: the accelerator is there, and the guest has not run. Ends QEMU
/// where it is not as it should be.
pub fn accelerator_is_there() {
    let Some((qemu, asked)) = installed::taken() else {
        return;
    };
    RUNS.store(qemu.machine_runs as usize, SeqCst);
    // SAFETY: as the caller knows.
    match unsafe { take_over(&qemu, interrupt) } {
        Ok(replaced) => installed::complete(Installed {
            qemu,
            asked,
            replaced,
        }),
        Err(problem) => give_up(1, &problem),
    }
}

/// This thread is the CPUs'; the first that is said to be stays it.
pub fn is_cpus_thread(thread: usize) {
    let _ = CPUS_THREAD.compare_exchange(0, thread, SeqCst, SeqCst);
}
