//! One counter that all tasks add to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::shared::Shared;
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "counter1",
    summary: "one counter that all tasks add to",
    does: "Adds one to a counter in memory that all tasks share, by one locked instruction. In the end it \
           must be as many as there were operations.",
    system_calls: &[],
    metric: "add",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "what a contended atomic costs",
    operations: 20000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let counter = Shared::<AtomicU64>::new(1)?;
    let done = crew.measure(|_| {
        Ok(|| {
            counter[0].fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    })?;
    must(counter[0].load(Ordering::SeqCst) == done, "additions were lost")
}
