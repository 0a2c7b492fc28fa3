//! Wait on a futex that has changed, of the task's own.

use std::sync::atomic::AtomicU32;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::futexes::wait;
use crate::shared::{Alone, Shared};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "futex1",
    summary: "wait on a futex that has changed, of the task's own",
    does: "Asks the kernel to wait while a word of the task's own has a value that it has not; the kernel \
           must see that and come back at once. The words lie in buckets of their own, mostly.",
    system_calls: &["futex (wait)"],
    metric: "call",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale futex1 to futex4, in other words",
    operations: 1500,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let words = Shared::<Alone<AtomicU32>>::new(crew.tasks)?;
    crew.measure(|task| {
        let word = &words[task.index].0;
        Ok(move || must(!wait(word, 1)?, "the kernel waited for a word that had changed"))
    })?;
    Ok(())
}
