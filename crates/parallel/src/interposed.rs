//! The function that QEMU calls in place of the C library's.
//!
//! Which thread is which shows in the order of their calls, as in crates/lockstep: the main thread waits, on the big
//! lock, for the CPUs' thread to be made, and the first other thread that waits on that lock is the CPUs'.

use crate::c_library::{in_main_thread, let_others_in, own_wait, this_thread};
use crate::clocks::in_cpus_thread;
use crate::hooks::skips_idle_time;
use crate::install::{accelerator_is_there, is_cpus_thread};
use crate::installed;
use crate::qemu::is_here;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

/// After so many moves of an idle guest's time the main loop gets its chance: it may have to stop the machine.
const MOVES: usize = 256;

static WAIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static BIG_LOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static MOVED: AtomicUsize = AtomicUsize::new(0);

/// Waits as the C library does; but where all CPUs are idle, their time moves on instead.
///
/// # Safety
/// As pthread_cond_wait.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int {
    if in_main_thread() {
        learn(mutex);
    } else if mutex == BIG_LOCK.load(SeqCst) && installed::is_complete() {
        is_cpus_thread(this_thread());
        // SAFETY: in the CPUs' thread.
        if in_cpus_thread() && unsafe { skips_idle_time(&installed::get().qemu) } {
            if MOVED.fetch_add(1, SeqCst) % MOVES == MOVES - 1 {
                // SAFETY: who waits on a condition holds its lock.
                unsafe { let_others_in(mutex) };
            }
            return 0;
        }
    }
    // SAFETY: as required of the caller.
    unsafe { wait()(condition, mutex) }
}

/// The main thread waits: once a CPU exists, that is on the big lock.
fn learn(mutex: *mut c_void) {
    if installed::is_complete() || !is_here() {
        return;
    }
    let address = crate::c_library::symbol(c"qemu_get_cpu");
    // SAFETY: the function of that name; it only reads.
    let first = unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *mut c_void>(address)(0)
    };
    if !first.is_null() {
        BIG_LOCK.store(mutex, SeqCst);
        accelerator_is_there();
    }
}

fn wait() -> unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int {
    let mut known = WAIT.load(SeqCst);
    if known.is_null() {
        known = own_wait();
        WAIT.store(known, SeqCst);
    }
    // SAFETY: this is the function of that name, with this signature.
    unsafe { core::mem::transmute(known) }
}
