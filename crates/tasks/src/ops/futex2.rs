//! Wait on a futex that has changed, the same for all.

use std::sync::atomic::AtomicU32;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::futexes::wait;
use crate::shared::{Alone, Shared};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "futex2",
    summary: "wait on a futex that has changed, the same for all",
    does: "Asks the kernel to wait while the one word that all tasks share has a value that it has not; the \
           kernel must see that and come back at once. All take the lock of one bucket.",
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
    crew.measure(|_| {
        let word = &words[0].0;
        Ok(move || must(!wait(word, 1)?, "the kernel waited for a word that had changed"))
    })?;
    Ok(())
}
