//! Append to a file of the task's own.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::files::{length, open, write, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "append1",
    summary: "append to a file of the task's own",
    does: "Appends 64 bytes to a file of the task's own. In the end the files must be as long as what was \
           written.",
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
    let done = crew.measure(|task| {
        let file = open(&scratch.file("file", task.index, b"")?, libc::O_WRONLY | libc::O_APPEND)?;
        let record = [task.index as u8; RECORD];
        Ok(move || write(&file, &record))
    })?;
    let lengths = (0..crew.tasks).map(|index| length(&scratch.path("file", index)));
    let all = lengths.sum::<Result<u64, Failure>>()?;
    must(all == done * RECORD as u64, "the files have not the length of what was written")
}
