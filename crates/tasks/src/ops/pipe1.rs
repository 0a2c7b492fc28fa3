//! Write to a pipe and read from it.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::files::{pipe, read, write};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "pipe1",
    summary: "write to a pipe and read from it",
    does: "Writes 512 bytes to a pipe of the task's own and reads them back; what comes must be what was \
           sent.",
    system_calls: &["write", "read"],
    metric: "write, read",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale pipe1",
    operations: 800,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let (from, to) = pipe()?;
        let (sent, mut got) = ([task.index as u8 + 1; 512], [0; 512]);
        Ok(move || {
            write(&to, &sent)?;
            read(&from, &mut got)?;
            must(got == sent, "the pipe gave other bytes")
        })
    })?;
    Ok(())
}
