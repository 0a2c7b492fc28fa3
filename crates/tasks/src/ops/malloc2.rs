//! Allocate and free a small block.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "malloc2",
    summary: "allocate and free a small block",
    does: "Allocates 1000 bytes, which the C library has at hand, writes to the first byte, reads it back and \
           frees it. The C library is the one that the program is linked with, glibc.",
    system_calls: &[],
    metric: "allocate, free",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale malloc2",
    operations: 20000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let byte = task.index as u8;
        Ok(move || {
            // SAFETY: a block of that size, or null, which is looked at; freed once.
            unsafe {
                let block = libc::malloc(1000).cast::<u8>();
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
