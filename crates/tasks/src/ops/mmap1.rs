//! Map and unmap anonymous memory.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::memory::Mapping;
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "mmap1",
    summary: "map and unmap anonymous memory",
    does: "Maps 128 MiB of anonymous memory and unmaps it without touching it. Both calls must succeed.",
    system_calls: &["mmap", "munmap"],
    metric: "map, unmap",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale mmap1",
    operations: 1000,
    run,
};

const LENGTH: usize = 128 << 20;

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mapping = Mapping { length: LENGTH, flags, file: -1 };
    crew.measure(|_| {
        Ok(move || {
            let start = mapping.map()?;
            // SAFETY: just mapped, used no more.
            unsafe { mapping.unmap(start) }
        })
    })?;
    Ok(())
}
