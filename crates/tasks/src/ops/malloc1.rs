//! Allocate and free a large block.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "malloc1",
    summary: "allocate and free a large block",
    does: "Allocates 128 MiB, which the C library maps each time, writes to the first byte, reads it back and \
           frees it. The C library is the one that the program is linked with, glibc.",
    system_calls: &["mmap", "munmap"],
    metric: "allocate, free",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale malloc1",
    operations: 600,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let byte = task.index as u8;
        Ok(move || {
            // SAFETY: a block of that size, or null, which is looked at; freed once.
            unsafe {
                let block = libc::malloc(128 << 20).cast::<u8>();
                must(!block.is_null(), "there is no memory")?;
                block.write_volatile(byte);
                let read = block.read_volatile();
                libc::free(block.cast());
                must(read == byte, "memory lost a byte")
            }
        })
    })?;
    Ok(())
}
