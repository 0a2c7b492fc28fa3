//! Give the CPU away, with nobody to take it.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{succeeded, Failure};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "sched-yield1",
    summary: "give the CPU away, with nobody to take it",
    does: "Calls sched_yield, which must succeed.",
    system_calls: &["sched_yield"],
    metric: "call",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale sched_yield",
    operations: 1500,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|_| {
        // SAFETY: takes no arguments.
        Ok(|| succeeded(unsafe { libc::sched_yield() }, "sched_yield").map(|_| ()))
    })?;
    Ok(())
}
