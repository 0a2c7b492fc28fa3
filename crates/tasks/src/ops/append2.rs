//! Append to one file.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::files::{length, open, write, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "append2",
    summary: "append to one file",
    does: "Appends 64 bytes to one file, by a descriptor of the task's own. In the end the file must be as \
           long as what was written.",
    system_calls: &["write"],
    metric: "write",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale write1, with O_APPEND",
    operations: 1000,
    run,
};

const RECORD: usize = 64;

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let path = scratch.file("file", 0, b"")?;
    let done = crew.measure(|task| {
        let file = open(&path, libc::O_WRONLY | libc::O_APPEND)?;
        let record = [task.index as u8; RECORD];
        Ok(move || write(&file, &record))
    })?;
    must(length(&path)? == done * RECORD as u64, "the file has not the length of what was written")
}
