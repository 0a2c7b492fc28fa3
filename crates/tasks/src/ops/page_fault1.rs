//! Page faults in anonymous memory.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::memory::{Mapping, PAGE};
use crate::workload::{EITHER, number};

pub const WORKLOAD: Workload = Workload {
    name: "page-fault1",
    summary: "page faults in anonymous memory",
    does: "Maps pages of anonymous private memory, writes a byte to each (a page fault each), reads the \
           bytes next to them, which must be zero, and unmaps them. As threads all tasks have one address \
           space, and its lock.",
    system_calls: &["mmap", "munmap"],
    metric: "map, fault, unmap",
    also: &[],
    parameters: &[number("pages", "pages of 4 KiB in one mapping", 64, 1, 65_536)],
    kinds: EITHER,
    source: "will-it-scale page_fault1",
    operations: 40,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let length = arguments.size("pages") * PAGE;
    let mapping = Mapping { length, flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, file: -1 };
    crew.measure(|_| Ok(move || mapping.touched()))?;
    Ok(())
}
