//! Give a page back, which all CPUs have to forget.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, succeeded, Failure};
use crate::memory::{Mapping, PAGE};
use crate::workload::THREADS_FIRST;

pub const WORKLOAD: Workload = Workload {
    name: "tlb-flush1",
    summary: "give a page back, which all CPUs have to forget",
    does: "Writes to a page of the task's own and gives it back (MADV_DONTNEED). As threads all tasks have \
           one address space, and every CPU on which one runs must forget the page: an interrupt each. What \
           is read from the page afterwards must be zero.",
    system_calls: &["madvise"],
    metric: "touch, give back",
    also: &[],
    parameters: &[],
    kinds: THREADS_FIRST,
    source: "will-it-scale tlb_flush1 to tlb_flush3",
    operations: 300,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mapping = Mapping { length: PAGE, flags, file: -1 };
    crew.measure(|_| {
        let page = mapping.map()?;
        Ok(move || {
            // SAFETY: a mapped page of the task's own.
            unsafe {
                let fresh = page.add(1).read_volatile();
                page.add(1).write_volatile(1);
                succeeded(libc::madvise(page.cast(), PAGE, libc::MADV_DONTNEED), "madvise")?;
                must(fresh == 0, "the page was not given back")
            }
        })
    })?;
    Ok(())
}
