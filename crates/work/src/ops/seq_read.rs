//! Reading a file from its begin to its end.

use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::Scratch;
use crate::io_meter::{self, MEASURES};
use crate::memory::Pages;
use crate::memory_group::{MemoryGroup, MEMORY};
use crate::meter::Meter;
use crate::stamped;
use crate::workload::{number, CACHE, COLD, DIRECTORY};

pub const WORKLOAD: Workload = Workload {
    name: "seq-read",
    summary: "read a file from its begin to its end, on a cold page cache",
    does: "One operation reads a file of `size` MiB with read, `record` KiB at a time. Its pages are dropped from the \
           page cache before that (not with cache=kept). A step, whose latency is told, is one read. The kernel's \
           read-ahead decides how many requests reach the disk: see `average read size`. Every page must be the one \
           that was written there. Give it a disk: `path`.",
    system_calls: &["pread"],
    metric: "file",
    also: MEASURES,
    parameters: &[
        number("size", "MiB in the file", 32, 1, 65_536),
        number("record", "KiB in a read", 64, 4, 1_024),
        CACHE,
        MEMORY,
        DIRECTORY,
    ],
    source: "fio rw=read; sysbench fileio seqrd",
    operations: 1,
    passes: 2,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let _limit = MemoryGroup::enter(arguments)?;
    let (size, record) = (arguments.size("size") << 20, (arguments.size("record") << 10).next_multiple_of(4096));
    let scratch = Scratch::new(arguments.text("path"))?;
    let file = stamped::made(&scratch.path("file"), 0, size)?;
    let mut buffer = Pages::new(record)?;
    let cold = arguments.text("cache") == COLD;
    let prepare = || if cold { stamped::dropped(&file) } else { Ok(()) };
    io_meter::measure(meter, Path::new(arguments.text("path")), arguments.clock, prepare, |(), latencies| {
        for offset in (0..size).step_by(record) {
            let bytes = &mut buffer[..record.min(size - offset)];
            latencies.step(|| file.read_exact_at(bytes, offset as u64).map_err(|error| Failure::io("read", &error)))?;
            stamped::check(bytes, 0, offset as u64, 0)?;
        }
        Ok(())
    })
}
