//! What the guest's time is, for whoever asks.

use crate::c_library::this_thread;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};

/// The time that all CPUs have reached. Other threads read it while the machine is stopped.
pub static START: AtomicI64 = AtomicI64::new(0);
/// When the round ends, for the CPU that runs.
pub static END: AtomicI64 = AtomicI64::new(0);
/// How much of the round the CPU that runs has left.
pub static LEFT: AtomicI64 = AtomicI64::new(0);
/// Timers run, for which it is the round's start.
pub static IN_TIMERS: AtomicBool = AtomicBool::new(false);
/// The thread that the CPUs take turns in; 0: not known yet.
pub static CPUS_THREAD: AtomicUsize = AtomicUsize::new(0);
/// Whether the machine runs.
pub static RUNS: AtomicUsize = AtomicUsize::new(0);

/// So long before every timer that none is due. The main loop looks for due timers as well, whenever the host wakes it:
/// were it to find one, the guest would depend on the host's clock.
const LONG_AGO: i64 = -(1 << 60);

/// Whether this is the CPUs' thread.
pub fn in_cpus_thread() -> bool {
    this_thread() == CPUS_THREAD.load(Relaxed)
}

/// The guest's time, in nanoseconds: the running CPU's own, in a stopped machine that of all.
pub extern "C" fn now() -> i64 {
    if in_cpus_thread() {
        return own();
    }
    match machine_runs() {
        true => LONG_AGO,
        false => START.load(Relaxed),
    }
}

/// As the CPUs' thread sees it.
pub fn own() -> i64 {
    match IN_TIMERS.load(Relaxed) {
        true => START.load(Relaxed),
        false => END.load(Relaxed) - LEFT.load(Relaxed),
    }
}

fn machine_runs() -> bool {
    let address = RUNS.load(Relaxed);
    if address == 0 {
        return false;
    }
    // SAFETY: `runstate_is_running`, which was stored there, and only reads.
    unsafe { core::mem::transmute::<usize, unsafe extern "C" fn() -> bool>(address)() }
}
