//! Two processes and a pair of local sockets.

use crate::arguments::{Arguments, Workload};
use crate::echo;
use crate::failure::Failure;
use crate::files;
use crate::meter::Meter;

pub const WORKLOAD: Workload = Workload {
    name: "socketpair",
    summary: "a round trip between two processes, through a pair of local sockets",
    does: "Two processes on one CPU with the two ends of a local stream socket pair. One operation sends 64 \
           bytes and waits for the answer. The answer must be complete, and the number in it increased by \
           one. Under SCHED_BATCH neither preempts the other on waking it, so that both wait each time.",
    system_calls: &["write", "read", "read (the other process)", "write (the other process)"],
    metric: "round trip",
    also: &[],
    parameters: &[echo::BYTES],
    source: "lmbench lat_unix",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let (ours, theirs) = files::socketpair()?;
    let (our_copy, their_copy) = (echo::duplicate(&ours)?, echo::duplicate(&theirs)?);
    echo::measure(meter, arguments.size("bytes"), (ours, our_copy), (theirs, their_copy))
}
