//! Write one file, each its own page.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{open, whole, Scratch};
use crate::memory::PAGE;
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "write2",
    summary: "write one file, each its own page",
    does: "Writes 4096 bytes over one file (pwrite), each task over a page of its own; the file becomes no \
           longer, but has one lock. The call must take all of them.",
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
    let path = scratch.file("file", 0, &vec![0; PAGE * crew.tasks])?;
    crew.measure(|task| {
        let file = open(&path, libc::O_WRONLY)?;
        let (page, place) = ([task.index as u8; PAGE], (task.index * PAGE) as i64);
        Ok(move || {
            // SAFETY: the buffer is as long as is told.
            let put = unsafe { libc::pwrite(file.as_raw_fd(), page.as_ptr().cast(), PAGE, place) };
            whole(put, PAGE, "pwrite")
        })
    })?;
    Ok(())
}
