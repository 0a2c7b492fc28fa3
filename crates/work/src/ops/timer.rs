//! A timer's expiry. Its time has passed when it is armed, since waiting would be idle time.

use std::hint::black_box;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::arguments::{Arguments, Workload};
use crate::clock::{Clock, ClockKind, Tsc};
use crate::failure::Failure;
use crate::files::{descriptor, read_whole};
use crate::meter::Meter;
use crate::workload::{Domain, Parameter};

pub const WORKLOAD: Workload = Workload {
    name: "timer",
    summary: "arm a timer for a time that has passed, read its expiry",
    does: "One operation arms a timerfd with a time that has passed, computes for a while (a loop of fixed length, \
           whose own cost is taken off), and reads the timerfd without waiting. The timer must have expired exactly \
           once. Up to Linux 6.18 its interrupt comes while the loop runs; Linux 7.2 sees at once that the time has \
           passed, and takes none. What is left is the kernel's work of arming, expiring and reading, and no idle \
           time. In real time there is no loop: the timerfd is read until the timer has expired, and the \
           waiting counts.",
    system_calls: &["timerfd_settime", "read"],
    metric: "arm, expire, read",
    also: &[],
    parameters: &[Parameter {
        name: "spin",
        summary: "turns of the loop in which the interrupt, if any, must come (two instructions each); exact mode only",
        domain: Domain::Number { default: 20_000, minimum: 1_000, maximum: 10_000_000 },
    }],
    source: "cyclictest's wake-up, without the waiting",
    operations: 51,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

/// In real time: an emulated timer's interrupt waits until the host's scheduler has run who emulates it.
const PATIENCE: Duration = Duration::from_secs(10);

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let exact = arguments.clock == ClockKind::Tsc;
    // In real time the loop takes many times as long as the kernel's work, and never twice the same: what is left
    // after taking it off would be noise, or nothing.
    let spin = if exact { arguments.number("spin") } else { 0 };
    // SAFETY: a system call without pointers.
    let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK) };
    let timer = descriptor(timer, "timerfd_create")?;
    // SAFETY: an all-zero itimerspec is valid: no interval.
    let mut past: libc::itimerspec = unsafe { std::mem::zeroed() };
    past.it_value.tv_nsec = 1;
    meter.repeat(|| {
        let none = std::ptr::null_mut();
        // SAFETY: `past` outlives the call; the old value is not asked for.
        if unsafe { libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &past, none) } != 0 {
            return Err(Failure::system("timerfd_settime"));
        }
        turn(spin);
        let mut expired = [0; 8];
        if let Err(failure) = read_whole(&timer, &mut expired) {
            if exact || !is_not_yet() {
                return Err(failure);
            }
            read_late(&timer, &mut expired)?;
        }
        match u64::from_ne_bytes(expired) {
            1 => Ok(()),
            times => Err(Failure::wrong(format!("the timer expired {times} times"))),
        }
    })?;
    if exact {
        meter.subtract(cost_of(spin));
    }
    Ok(())
}

fn is_not_yet() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
}

#[cold]
fn read_late(timer: &OwnedFd, expired: &mut [u8]) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        match read_whole(timer, expired) {
            Err(_) if is_not_yet() && started.elapsed() < PATIENCE => {}
            ended => return ended,
        }
    }
}

#[inline(never)]
fn turn(times: i64) {
    for time in 0..times {
        black_box(time);
    }
}

/// The cheapest of several loops: one without a tick of the kernel's own in it.
fn cost_of(spin: i64) -> u64 {
    let once = || {
        let start = Tsc::now();
        turn(spin);
        Tsc::now() - start
    };
    (0..11).map(|_| once()).min().unwrap_or(0)
}
