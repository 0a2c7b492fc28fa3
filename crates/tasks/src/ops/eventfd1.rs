//! Write to an eventfd and read from it.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::files::{eventfd, read, write};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "eventfd1",
    summary: "write to an eventfd and read from it",
    does: "Adds a number to an eventfd of the task's own and reads it back; it must be that number.",
    system_calls: &["write", "read"],
    metric: "write, read",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale eventfd1",
    operations: 1000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let file = eventfd(0)?;
        let (sent, mut got) = ((task.index as u64 + 1).to_ne_bytes(), [0; 8]);
        Ok(move || {
            write(&file, &sent)?;
            read(&file, &mut got)?;
            must(got == sent, "the eventfd gave another number")
        })
    })?;
    Ok(())
}
