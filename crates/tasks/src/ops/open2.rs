//! Open and close one file.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::{close, open, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "open2",
    summary: "open and close one file",
    does: "Opens the file that all tasks open for reading by its absolute path, and closes it. Both calls \
           must succeed.",
    system_calls: &["open", "close"],
    metric: "open, close",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale open2",
    operations: 600,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let path = scratch.file("file", 0, b"content")?;
    crew.measure(|_| {
        let path = path.clone();
        Ok(move || close(open(&path, libc::O_RDONLY)?))
    })?;
    Ok(())
}
