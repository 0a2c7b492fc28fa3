//! A loop of arithmetic, for comparison: nothing is shared.

use std::hint::black_box;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "loop1",
    summary: "a loop of arithmetic, for comparison: nothing is shared",
    does: "A hundred steps of a linear congruential generator, from a number of the task's own. The result \
           must be the one that the task found at its beginning. No system call, no memory: what does not \
           scale here is the machine's, not the kernel's.",
    system_calls: &[],
    metric: "100 steps",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale has no such test; it is the control",
    operations: 5000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let seed = task.index as u64;
        let expected = steps(seed);
        Ok(move || must(steps(black_box(seed)) == expected, "the loop gave another result"))
    })?;
    Ok(())
}

#[inline(never)]
fn steps(seed: u64) -> u64 {
    (0..100).fold(seed, |number, _| black_box(number).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
}
