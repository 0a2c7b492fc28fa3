//! The CPUs that this program may use.

use crate::failure::Failure;

/// Their numbers.
pub fn allowed() -> Result<Vec<usize>, Failure> {
    // SAFETY: an all-zero set is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call stays within the set's size.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Err(Failure::system("sched_getaffinity"));
    }
    let all = 0..libc::CPU_SETSIZE as usize;
    Ok(all
        // SAFETY: numbers below CPU_SETSIZE.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

/// Hold this thread, and what it will start, on one CPU.
pub fn pin(cpu: usize) -> Result<(), Failure> {
    // SAFETY: an all-zero set is valid; the number came from such a set.
    let one = unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        one
    };
    // SAFETY: the call stays within the set's size.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one) } {
        0 => Ok(()),
        _ => Err(Failure::system("sched_setaffinity")),
    }
}
