//! Reads and writes of some files, as sysbench's fileio does them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::arguments::{Arguments, Workload};
use crate::draws::Random;
use crate::failure::Failure;
use crate::files::Scratch;
use crate::io_meter::{self, MEASURES};
use crate::memory::{Pages, PAGE};
use crate::memory_group::{MemoryGroup, MEMORY};
use crate::meter::Meter;
use crate::stamped;
use crate::workload::{number, Domain, Parameter, DIRECTORY, SEED};

pub const WORKLOAD: Workload = Workload {
    name: "fileio",
    summary: "a mix of random reads and writes of some files, with fsync now and then",
    does: "One operation is `requests` requests of `record` KiB to random places of `count` files that have `size` MiB \
           together: by default three reads for two writes, and fsync of every file after each `sync` requests \
           (mode=write and mode=read: only those). A step is one request, or one round of fsync. What was written \
           last is remembered, and every page that is read must have it. Give it a disk: `path`.",
    system_calls: &["pread", "pwrite", "fsync"],
    metric: "requests",
    also: MEASURES,
    parameters: &[
        number("size", "MiB in all files together", 32, 1, 65_536),
        number("count", "files", 8, 1, 4_096),
        number("record", "KiB in a request", 16, 4, 1_024),
        number("requests", "requests in one operation", 500, 1, 10_000_000),
        number("sync", "requests between two rounds of fsync; 0: none", 100, 0, 10_000_000),
        Parameter {
            name: "mode",
            summary: "what the requests are",
            domain: Domain::Choice { default: "mixed", choices: &["mixed", "read", "write"] },
        },
        SEED,
        MEMORY,
        DIRECTORY,
    ],
    source: "sysbench fileio (rndrw, --file-rw-ratio=1.5, --file-fsync-freq=100)",
    operations: 1,
    passes: 2,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

/// The files, and which version of each record was written last.
struct Set {
    files: Vec<File>,
    record: usize,
    records: usize,
    versions: Vec<u64>,
}

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let _limit = MemoryGroup::enter(arguments)?;
    let scratch = Scratch::new(arguments.text("path"))?;
    let mut set = Set::new(&scratch, arguments)?;
    let mut random = Random::new(arguments.size("seed") as u64);
    let mut buffer = Pages::new(set.record)?;
    let (requests, sync) = (arguments.size("requests"), arguments.size("sync"));
    // Of five requests, three read.
    let reads_of_five = match arguments.text("mode") {
        "read" => 5,
        "write" => 0,
        _ => 3,
    };
    let prepare = || Ok(());
    io_meter::measure(meter, Path::new(arguments.text("path")), arguments.clock, prepare, |(), latencies| {
        for request in 1..=requests {
            let (place, bytes) = (random.below(set.versions.len()), &mut buffer[..set.record]);
            if random.below(5) < reads_of_five {
                latencies.step(|| set.read(place, bytes))?;
            } else {
                latencies.step(|| set.write(place, bytes))?;
            }
            if sync > 0 && request % sync == 0 {
                latencies.step(|| set.sync())?;
            }
        }
        Ok(())
    })
}

impl Set {
    fn new(scratch: &Scratch, arguments: &Arguments) -> Result<Self, Failure> {
        let (files, record) = (arguments.size("count"), (arguments.size("record") << 10).next_multiple_of(PAGE));
        let records = (arguments.size("size") << 20) / files / record;
        if records == 0 {
            return Err(Failure::wrong("a record is larger than its file: give a smaller --count or a larger --size"));
        }
        let made = |number| stamped::made(&scratch.path(&format!("file{number:04}")), number as u64, records * record);
        let files = (0..files).map(made).collect::<Result<Vec<_>, _>>()?;
        let versions = vec![0; files.len() * records];
        Ok(Self { files, record, records, versions })
    }

    fn read(&self, place: usize, bytes: &mut [u8]) -> Result<(), Failure> {
        let (file, offset) = self.at(place);
        self.files[file].read_exact_at(bytes, offset).map_err(|error| Failure::io("read", &error))?;
        stamped::check(bytes, file as u64, offset, self.versions[place])
    }

    fn write(&mut self, place: usize, bytes: &mut [u8]) -> Result<(), Failure> {
        let (file, offset) = self.at(place);
        self.versions[place] += 1;
        stamped::stamp(bytes, file as u64, offset, self.versions[place]);
        self.files[file].write_all_at(bytes, offset).map_err(|error| Failure::io("write", &error))
    }

    fn sync(&self) -> Result<(), Failure> {
        self.files.iter().try_for_each(|file| file.sync_all().map_err(|error| Failure::io("fsync", &error)))
    }

    fn at(&self, place: usize) -> (usize, u64) {
        (place / self.records, (place % self.records * self.record) as u64)
    }
}
