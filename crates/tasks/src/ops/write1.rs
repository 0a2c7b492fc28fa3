//! Write a file of the task's own.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{open, whole, Scratch};
use crate::memory::PAGE;
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "write1",
    summary: "write a file of the task's own",
    does: "Writes 4096 bytes over a file of the task's own (pwrite), which becomes no longer. The call must \
           take all of them.",
    system_calls: &["pwrite"],
    metric: "write",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale read1, read2, pread1, pread2, write1, pwrite1",
    operations: 500,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;

    crew.measure(|task| {
        let file = open(&scratch.file("file", task.index, &[0; PAGE])?, libc::O_WRONLY)?;
        let (page, place) = ([task.index as u8; PAGE], 0);
        Ok(move || {
            // SAFETY: the buffer is as long as is told.
            let put = unsafe { libc::pwrite(file.as_raw_fd(), page.as_ptr().cast(), PAGE, place) };
            whole(put, PAGE, "pwrite")
        })
    })?;
    Ok(())
}
