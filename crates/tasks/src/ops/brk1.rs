//! Move the end of the heap.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::memory::PAGE;
use crate::workload::PROCESSES;

pub const WORKLOAD: Workload = Workload {
    name: "brk1",
    summary: "move the end of the heap",
    does: "Moves the program break up by a page and back, without touching it; the kernel's answer must be \
           the break that was asked for. Processes alone: threads have one break together.",
    system_calls: &["brk", "brk"],
    metric: "grow, shrink",
    also: &[],
    parameters: &[],
    kinds: PROCESSES,
    source: "will-it-scale brk1",
    operations: 1500,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|_| {
        let here = brk(0);
        Ok(move || {
            must(brk(here + PAGE) == here + PAGE, "the break did not move up")?;
            must(brk(here) == here, "the break did not move back")
        })
    })?;
    Ok(())
}

#[inline(always)]
fn brk(to: usize) -> usize {
    // SAFETY: only what lies above everything that was allocated is moved, and put back before anything else is.
    unsafe { libc::syscall(libc::SYS_brk, to) as usize }
}
