//! Writing a file from its begin to its end.

use std::fs::{self, File, OpenOptions};
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
use crate::workload::{number, Domain, Parameter, DIRECTORY};

pub const WORKLOAD: Workload = Workload {
    name: "stream-write",
    summary: "write a new file from its begin to its end, with or without fsync",
    does: "One operation writes a new file of `size` MiB, `record` KiB at a time, and calls fsync at the end (or after \
           each record, or never: then it dirties the page cache). A step is one write, with its fsync if each has \
           one; the fsync at the end is a step, too. Afterwards every page is read and must be the one that was \
           written. Give it a disk: `path`.",
    system_calls: &["pwrite", "fsync"],
    metric: "file",
    also: MEASURES,
    parameters: &[
        number("size", "MiB in the file", 32, 1, 65_536),
        number("record", "KiB in a write", 64, 4, 1_024),
        Parameter {
            name: "fsync",
            summary: "when fsync is called",
            domain: Domain::Choice { default: "end", choices: &["end", "each", "no"] },
        },
        MEMORY,
        DIRECTORY,
    ],
    source: "fio rw=write; lmbench lmdd; aio-stress without aio",
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
    let (each, end) = (arguments.text("fsync") == "each", arguments.text("fsync") == "end");
    let scratch = Scratch::new(arguments.text("path"))?;
    let path = scratch.path("file");
    let mut buffer = Pages::new(record)?;
    let prepare = || {
        if path.exists() {
            check(&path, size)?;
            fs::remove_file(&path).map_err(|error| Failure::io("unlink", &error))?;
        }
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| Failure::io("open", &error))
    };
    let directory = Path::new(arguments.text("path"));
    io_meter::measure(meter, directory, arguments.clock, prepare, |file, latencies| {
        for offset in (0..size).step_by(record) {
            let bytes = &mut buffer[..record.min(size - offset)];
            stamped::stamp(bytes, 0, offset as u64, 0);
            latencies.step(|| {
                file.write_all_at(bytes, offset as u64).map_err(|error| Failure::io("write", &error))?;
                if each { fsync(&file) } else { Ok(()) }
            })?;
        }
        if end { latencies.step(|| fsync(&file)) } else { Ok(()) }
    })
}

fn fsync(file: &File) -> Result<(), Failure> {
    file.sync_all().map_err(|error| Failure::io("fsync", &error))
}

fn check(path: &Path, size: usize) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| Failure::io("open", &error))?;
    let chunk = size.min(1 << 20);
    let mut buffer = Pages::new(chunk)?;
    for offset in (0..size).step_by(chunk) {
        file.read_exact_at(&mut buffer[..chunk], offset as u64).map_err(|error| Failure::io("reading back", &error))?;
        stamped::check(&buffer[..chunk], 0, offset as u64, 0)?;
    }
    Ok(())
}
