//! Two threads that wake each other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::processes::never_preempt_on_waking;

pub const WORKLOAD: Workload = Workload {
    name: "futex",
    summary: "two threads wake each other through futexes",
    does: "Two threads on one CPU. One operation sets a word and wakes the thread that waits for it, which \
           does the same in return: two wakes, two context switches. Each number must arrive in its turn. \
           Under SCHED_BATCH neither preempts the other on waking it, so that both wait each time.",
    system_calls: &["futex (wake)", "futex (wait)", "futex (wake, the other)", "futex (wait, the other)"],
    metric: "round trip",
    also: &[],
    parameters: &[],
    source: "perf bench futex; what a contended mutex does",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

const STOP: u32 = u32::MAX;

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    never_preempt_on_waking()?;
    let (question, answer) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let partner = scope.spawn(|| reply(&question, &answer));
        let mut number = 0;
        let measured = meter.repeat(|| {
            number += 1;
            set(&question, number)?;
            match wait_for_change(&answer, number - 1)? == number {
                true => Ok(()),
                false => Err(Failure::wrong("the partner's answer is not the number asked for")),
            }
        });
        let stopped = set(&question, STOP);
        let replied = partner.join().map_err(|_| Failure::wrong("the partner panicked"))?;
        measured.and(stopped).and(replied)
    })
}

fn reply(question: &AtomicU32, answer: &AtomicU32) -> Result<(), Failure> {
    let mut last = 0;
    loop {
        last = wait_for_change(question, last)?;
        if last == STOP {
            return Ok(());
        }
        set(answer, last)?;
    }
}

#[inline(always)]
fn set(word: &AtomicU32, value: u32) -> Result<(), Failure> {
    word.store(value, Ordering::SeqCst);
    // SAFETY: the word outlives the call.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
    match woken {
        0 | 1 => Ok(()),
        _ => Err(Failure::system("futex")),
    }
}

#[inline(always)]
fn wait_for_change(word: &AtomicU32, last: u32) -> Result<u32, Failure> {
    loop {
        let value = word.load(Ordering::SeqCst);
        if value != last {
            return Ok(value);
        }
        let none = std::ptr::null::<libc::timespec>();
        // SAFETY: the word outlives the call.
        let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, last, none) };
        if answer != 0 && !changed_or_interrupted() {
            return Err(Failure::system("futex"));
        }
    }
}

/// The word changed before the kernel looked (EAGAIN), or a signal came (EINTR): look again.
#[cold]
fn changed_or_interrupted() -> bool {
    matches!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN | libc::EINTR))
}
