//! A child by fork.

use crate::arguments::{Arguments, Workload};
use crate::children::{self, STATUS};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::processes::wait;

pub const WORKLOAD: Workload = Workload {
    name: "fork",
    summary: "a child by fork, its exit, the wait for it",
    does: "One operation forks a child, which exits at once with status 42 and touches no memory, and waits \
           for it. The status must be that one. Three in a row are timed together, after a pause in which the \
           kernel finishes what it put off (in exact mode); the time is that of one.",
    system_calls: &["fork", "exit_group (child)", "wait4"],
    metric: "fork, exit, wait",
    also: &[],
    parameters: &[],
    source: "UnixBench spawn; lmbench lat_proc fork",
    operations: 31,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: true,
    run,
};

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    children::measure(meter, || wait(children::born(libc::SYS_fork, 0, 0)?, STATUS))
}
