//! A child by vfork.

use crate::arguments::{Arguments, Workload};
use crate::children::{self, STATUS};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::processes::wait;

pub const WORKLOAD: Workload = Workload {
    name: "vfork",
    summary: "a child by vfork, its exit, the wait for it",
    does: "One operation makes a child that borrows this process's memory (vfork) and exits at once with \
           status 42, and waits for it. The status must be that one. Three in a row are timed together, after \
           a pause in which the kernel finishes what it put off (in exact mode); the time is that of one.",
    system_calls: &["vfork", "exit_group (child)", "wait4"],
    metric: "vfork, exit, wait",
    also: &[],
    parameters: &[],
    source: "lmbench lat_proc; posix_spawn's way of making a child",
    operations: 31,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: true,
    run,
};

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    children::measure(meter, || wait(children::born(libc::SYS_vfork, 0, 0)?, STATUS))
}
