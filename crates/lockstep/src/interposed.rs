//! The functions that QEMU calls in place of the C library's.

use crate::c_library;
use crate::turns::{Condition, Mutex, Patience, Turns};
use core::ffi::{c_int, c_void};

static TURNS: Turns = Turns::new();

/// Waits as the C library does, and notes when the CPU's thread waits.
///
/// # Safety
/// As pthread_cond_wait.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex) -> c_int {
    let wait = c_library::wait();
    if c_library::in_main_thread() {
        TURNS.main_thread_waits(mutex);
        // SAFETY: as required of the caller.
        return unsafe { wait(condition, mutex) };
    }
    let is_cpu = TURNS.other_thread_waits(c_library::thread(), condition, mutex);
    if is_cpu {
        // SAFETY: the word is that of a static.
        unsafe { c_library::wake(TURNS.word()) };
    }
    // SAFETY: as required of the caller.
    let answer = unsafe { wait(condition, mutex) };
    if is_cpu {
        TURNS.cpu_starts();
    }
    answer
}

/// Wakes as the C library does; a CPU that the main loop wakes counts as running from here on.
///
/// # Safety
/// As pthread_cond_broadcast.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut Condition) -> c_int {
    let broadcast = c_library::broadcast();
    if TURNS.wakes_cpu(condition) && c_library::in_main_thread() {
        TURNS.cpu_starts();
    }
    // SAFETY: as required of the caller.
    unsafe { broadcast(condition) }
}

/// Polls as the C library does; the main loop then waits for the CPU's thread to wait.
///
/// # Safety
/// As ppoll.
#[no_mangle]
pub unsafe extern "C" fn ppoll(
    files: *mut c_void,
    count: u64,
    time: *const c_void,
    signals: *const c_void,
) -> c_int {
    let poll = c_library::poll();
    // SAFETY: as required of the caller.
    let answer = unsafe { poll(files, count, time, signals) };
    if TURNS.cpu_is_known() && c_library::in_main_thread() {
        wait_for_cpu();
    }
    answer
}

fn wait_for_cpu() {
    if !TURNS.cpu_runs() {
        return;
    }
    let mut patience = Patience::new(c_library::cpu_time());
    while TURNS.cpu_runs() {
        // SAFETY: the word is that of a static.
        let woken = unsafe { c_library::sleep_while_zero(TURNS.word()) };
        if !woken && TURNS.cpu_runs() && patience.is_at_its_end(c_library::cpu_time()) {
            return;
        }
    }
}
