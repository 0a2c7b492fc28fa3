//! Make and remove a file, each in a directory of its own.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{succeeded, Failure};
use crate::files::{close, open, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "unlink2",
    summary: "make and remove a file, each in a directory of its own",
    does: "Makes a file that must not be there yet, closes it and removes it: each task in a directory of \
           its own.",
    system_calls: &["open", "close", "unlink"],
    metric: "make, remove",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale unlink2",
    operations: 250,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    crew.measure(|task| {
        let path = scratch.path_below(task.index, "file")?;
        Ok(move || {
            close(open(&path, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY)?)?;
            // SAFETY: a C string that outlives the call.
            succeeded(unsafe { libc::unlink(path.as_ptr()) }, "unlink").map(|_| ())
        })
    })?;
    Ok(())
}
