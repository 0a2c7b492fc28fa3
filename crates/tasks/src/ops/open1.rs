//! Open and close a file of the task's own.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{close, open, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "open1",
    summary: "open and close a file of the task's own",
    does: "Opens a file of the task's own for reading by its absolute path, and closes it. Both calls must \
           succeed.",
    system_calls: &["open", "close"],
    metric: "open, close",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale open1",
    operations: 600,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;

    crew.measure(|task| {
        let path = scratch.file("file", task.index, b"content")?;
        Ok(move || close(open(&path, libc::O_RDONLY)?))
    })?;
    Ok(())
}
