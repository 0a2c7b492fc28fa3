//! Two processes and two pipes.

use crate::arguments::{Arguments, Workload};
use crate::echo;
use crate::failure::Failure;
use crate::files;
use crate::meter::Meter;

pub const WORKLOAD: Workload = Workload {
    name: "context-switch",
    summary: "a token between two processes, through two pipes",
    does: "Two processes on one CPU. One operation writes an 8-byte number to the other process's pipe and \
           waits for the answer on a second pipe: two context switches. The number must come back increased \
           by one. Under SCHED_BATCH neither preempts the other on waking it, so that both wait each time.",
    system_calls: &["write", "read", "read (the other process)", "write (the other process)"],
    metric: "round trip",
    also: &[],
    parameters: &[],
    source: "UnixBench context1; lmbench lat_ctx",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let (there, question) = files::pipe()?;
    let (answer, back) = files::pipe()?;
    echo::measure(meter, 8, (answer, question), (there, back))
}
