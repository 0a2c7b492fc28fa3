//! Page faults in a file of the task's own, shared.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{open, Scratch};
use crate::memory::{Mapping, PAGE};
use crate::workload::{DIRECTORY, EITHER, number};

pub const WORKLOAD: Workload = Workload {
    name: "page-fault3",
    summary: "page faults in a file of the task's own, shared",
    does: "Maps a file of the task's own, shared, writes a byte to each page (a fault each, and no copy), \
           reads the bytes next to them, which must be zero, and unmaps it.",
    system_calls: &["mmap", "munmap"],
    metric: "map, fault, unmap",
    also: &[],
    parameters: &[number("pages", "pages of 4 KiB in one mapping", 64, 1, 65_536), DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale page_fault3",
    operations: 40,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let length = arguments.size("pages") * PAGE;
    let scratch = Scratch::new(arguments.text("path"))?;
    crew.measure(|task| {
        let file = open(&scratch.file("file", task.index, &vec![0; length])?, libc::O_RDWR)?;
        let mapping = Mapping { length, flags: libc::MAP_SHARED, file: file.as_raw_fd() };
        Ok(move || {
            let _open = &file;
            mapping.touched()
        })
    })?;
    Ok(())
}
