//! The CPU time that ktrial itself has used: this process and its parent.

use std::mem::MaybeUninit;

use nix::time::{clock_gettime, ClockId};

/// Nanoseconds used so far by this process and by the process `parent` (0: none), with all their threads.
pub fn of_ktrial(parent: i32) -> u64 {
    let own = read(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    if parent == 0 {
        return own;
    }
    own + read(process_clock(parent))
}

/// Nanoseconds used by all descendants that were waited for. This process adopts orphans, and waits for them, so that
/// after a run it is all that the run used, also in servers that it left behind.
pub fn of_children() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: memory of the right type. RUSAGE_CHILDREN is known, so that the call succeeds and fills it in.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let nanoseconds =
        |time: libc::timeval| (time.tv_sec * 1_000_000_000 + time.tv_usec * 1000) as u64;
    nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime)
}

/// As clock_getcpuclockid(3) makes it: the kernel's CPUCLOCK_SCHED (2) of a whole process
/// (include/linux/posix-timers_types.h).
fn process_clock(process: i32) -> ClockId {
    ClockId::from_raw((!process << 3) | 2)
}

/// A process that is gone has used nothing.
fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_clock_of_a_process() {
        let before = read(process_clock(std::process::id() as i32));
        let mut sum = 0u64;
        for number in 0..20_000_000u64 {
            sum = std::hint::black_box(sum ^ number);
        }
        let used = read(process_clock(std::process::id() as i32)) - before;
        assert!(used > 1_000_000, "{used} ns");
    }

    #[test]
    fn a_process_that_is_not_there_has_used_nothing() {
        // PID_MAX_LIMIT: numbers stay below it.
        assert_eq!(read(process_clock(4 << 20)), 0);
    }
}
