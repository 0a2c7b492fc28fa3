//! Duplicate and close a descriptor.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{close, open, owned, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "dup1",
    summary: "duplicate and close a descriptor",
    does: "Duplicates a descriptor of a file of the task's own, and closes it. As threads all tasks have \
           one table of descriptors, and its lock.",
    system_calls: &["dup", "close"],
    metric: "dup, close",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale dup1",
    operations: 1500,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    crew.measure(|task| {
        let file = open(&scratch.file("file", task.index, b"")?, libc::O_RDONLY)?;
        // SAFETY: a descriptor that is open.
        Ok(move || close(owned(unsafe { libc::dup(file.as_raw_fd()) }, "dup")?))
    })?;
    Ok(())
}
