//! Threads made and joined.

use std::mem::MaybeUninit;
use std::ptr;

use crate::arguments::{Arguments, Workload};
use crate::children::IN_A_ROW;
use crate::failure::Failure;
use crate::meter::Meter;

pub const WORKLOAD: Workload = Workload {
    name: "thread",
    summary: "make a thread and join it",
    does: "One operation makes a POSIX thread, which returns the number it was given, and joins it. The C \
           library keeps the stack between operations. The number that comes back must be the one given. \
           Three in a row are timed together, as with fork; the time is that of one. Before them there is a pause, untimed, in which the kernel finishes what it put off (in exact \
           mode).",
    system_calls: &["clone3 or clone", "rseq (thread)", "set_robust_list (thread)", "madvise (thread)", "exit (thread)", "futex"],
    metric: "create, join",
    also: &[],
    parameters: &[],
    source: "lmbench lat_proc, with threads",
    operations: 51,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: true,
    run,
};

/// 64 KiB: no huge page can back it, and it does not depend on the user's stack limit.
const STACK: usize = 64 * 1024;

extern "C" fn same(number: *mut libc::c_void) -> *mut libc::c_void {
    number
}

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: initialised here, then given a valid stack size.
    let status = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr())
            | libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK)
    };
    checked("pthread_attr_setstacksize", status)?;
    let mut number = 0;
    let mut one = || {
        number += 1;
        let given = ptr::without_provenance_mut(number);
        let (mut thread, mut returned) = (0, ptr::null_mut());
        // SAFETY: initialised attributes; `same` looks at nothing but its argument.
        checked("pthread_create", unsafe { libc::pthread_create(&mut thread, attributes.as_ptr(), same, given) })?;
        // SAFETY: a thread that can be joined, once.
        checked("pthread_join", unsafe { libc::pthread_join(thread, &mut returned) })?;
        match returned == given {
            true => Ok(()),
            false => Err(Failure::wrong("the thread returned another number")),
        }
    };
    meter.bundle(IN_A_ROW);
    meter.repeat_settled(|| (0..IN_A_ROW).try_for_each(|_| one()))
}

#[inline(always)]
fn checked(call: &str, status: i32) -> Result<(), Failure> {
    match status {
        0 => Ok(()),
        error => Err(Failure::io(call, &std::io::Error::from_raw_os_error(error))),
    }
}
