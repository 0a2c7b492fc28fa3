//! Read one file, by descriptors of the tasks' own.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::files::{open, whole, Scratch};
use crate::memory::PAGE;
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "read2",
    summary: "read one file, by descriptors of the tasks' own",
    does: "Reads 4096 bytes from the page cache (pread): all tasks the same page of one file, each by a \
           descriptor of its own. What was read must be the file's content.",
    system_calls: &["pread"],
    metric: "read",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale read1, read2, pread1, pread2, write1, pwrite1",
    operations: 500,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let path = scratch.file("file", 0, &[7; PAGE])?;
    crew.measure(|_| {
        let file = open(&path, libc::O_RDONLY)?;
        let mut page = [0_u8; PAGE];
        Ok(move || {
            page[PAGE - 1] = 0;
            // SAFETY: the buffer is as long as is told.
            let got = unsafe { libc::pread(file.as_raw_fd(), page.as_mut_ptr().cast(), PAGE, 0) };
            whole(got, PAGE, "pread")?;
            must(page[0] == 7 && page[PAGE - 1] == 7, "the file gave other bytes")
        })
    })?;
    Ok(())
}
