//! Map and unmap a file.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{open, Scratch};
use crate::memory::Mapping;
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "mmap2",
    summary: "map and unmap a file",
    does: "Maps 128 MiB of a file of the task's own, shared, and unmaps it without touching it. Both calls \
           must succeed.",
    system_calls: &["mmap", "munmap"],
    metric: "map, unmap",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale mmap2",
    operations: 1000,
    run,
};

const LENGTH: usize = 128 << 20;

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    crew.measure(|task| {
        let file = open(&scratch.file("file", task.index, b"")?, libc::O_RDWR)?;
        let mapping = Mapping { length: LENGTH, flags: libc::MAP_SHARED, file: file.as_raw_fd() };
        Ok(move || {
            let _open = &file;
            let start = mapping.map()?;
            // SAFETY: just mapped, used no more.
            unsafe { mapping.unmap(start) }
        })
    })?;
    Ok(())
}
