//! Read one file, each task its own page.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::files::{open, whole, Scratch};
use crate::memory::PAGE;
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "pread2",
    summary: "read one file, each task its own page",
    does: "Reads 4096 bytes from the page cache (pread), of one file: each task a page of its own, by a \
           descriptor of its own. Tasks share the file, and no page of it. What was read must be the page's content.",
    system_calls: &["pread"],
    metric: "read",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale pread2, pread3",
    operations: 500,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let pages: Vec<u8> = (0..crew.tasks).flat_map(|task| [task as u8; PAGE]).collect();
    let path = scratch.file("file", 0, &pages)?;
    crew.measure(|task| {
        let file = open(&path, libc::O_RDONLY)?;
        let (mut page, content) = ([0_u8; PAGE], task.index as u8);
        let place = (task.index * PAGE) as i64;
        Ok(move || {
            page[PAGE - 1] = !content;
            // SAFETY: the buffer is as long as is told.
            let got = unsafe { libc::pread(file.as_raw_fd(), page.as_mut_ptr().cast(), PAGE, place) };
            whole(got, PAGE, "pread")?;
            must(page[0] == content && page[PAGE - 1] == content, "the file gave other bytes")
        })
    })?;
    Ok(())
}
