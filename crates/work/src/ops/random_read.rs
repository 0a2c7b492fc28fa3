//! Reading a file in random places.

use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::arguments::{Arguments, Workload};
use crate::draws::Random;
use crate::failure::Failure;
use crate::files::Scratch;
use crate::io_meter::{self, MEASURES};
use crate::memory::Pages;
use crate::memory_group::{MemoryGroup, MEMORY};
use crate::meter::Meter;
use crate::stamped;
use crate::workload::{number, CACHE, COLD, DIRECTORY, SEED};

pub const WORKLOAD: Workload = Workload {
    name: "random-read",
    summary: "read a file in random places, on a cold page cache",
    does: "One operation reads `reads` records of `record` KiB from random places of a file of `size` MiB, drawn with \
           replacement from `seed`; each operation draws others. The file's pages are dropped from the page cache \
           before that (not with cache=kept). A step is one read. Every page must be the one that was written there. \
           Give it a disk: `path`.",
    system_calls: &["pread"],
    metric: "reads",
    also: MEASURES,
    parameters: &[
        number("size", "MiB in the file", 32, 1, 65_536),
        number("record", "KiB in a read", 4, 4, 1_024),
        number("reads", "reads in one operation", 2_000, 1, 10_000_000),
        CACHE,
        SEED,
        MEMORY,
        DIRECTORY,
    ],
    source: "fio rw=randread; sysbench fileio rndrd",
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
    let mut random = Random::new(arguments.size("seed") as u64);
    let mut buffer = Pages::new(record)?;
    let (cold, reads) = (arguments.text("cache") == COLD, arguments.size("reads"));
    let prepare = || if cold { stamped::dropped(&file) } else { Ok(()) };
    io_meter::measure(meter, Path::new(arguments.text("path")), arguments.clock, prepare, |(), latencies| {
        for _ in 0..reads {
            let offset = (random.below(size / record) * record) as u64;
            let bytes = &mut buffer[..record];
            latencies.step(|| file.read_exact_at(bytes, offset).map_err(|error| Failure::io("read", &error)))?;
            stamped::check(bytes, 0, offset, 0)?;
        }
        Ok(())
    })
}
