//! Transactions: small random reads of a table, and a log that each of them appends to.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::arguments::{Arguments, Workload};
use crate::draws::{Random, Zipf};
use crate::failure::Failure;
use crate::files::Scratch;
use crate::io_meter::{self, MEASURES};
use crate::memory::{Pages, PAGE};
use crate::memory_group::{MemoryGroup, MEMORY};
use crate::meter::Meter;
use crate::stamped;
use crate::workload::{number, DIRECTORY, EXPONENT, SEED};

pub const WORKLOAD: Workload = Workload {
    name: "oltp",
    summary: "transactions: small random reads of a table, and a log append with fdatasync",
    does: "One operation is `transactions` transactions. Each reads `reads` pages of 8 KiB from a table of `size` MiB, \
           the popular ones more often (Zipf's law), appends a record of `record` bytes to the log and calls \
           fdatasync. A step is one transaction. The table stays in the page cache as far as memory allows. Every page \
           must be the one that was written there; afterwards the log is read, and must hold every record in order. \
           Give it a disk: `path`.",
    system_calls: &["pread", "pwrite", "fdatasync"],
    metric: "transactions",
    also: MEASURES,
    parameters: &[
        number("size", "MiB in the table", 32, 1, 65_536),
        number("transactions", "transactions in one operation", 300, 1, 1_000_000),
        number("reads", "pages read in a transaction", 4, 0, 1_000),
        number("record", "bytes appended to the log", 512, 16, 65_536),
        EXPONENT,
        SEED,
        MEMORY,
        DIRECTORY,
    ],
    source: "sysbench oltp_read_write; pgbench; SQLite's write-ahead log",
    operations: 1,
    passes: 2,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

const TABLE_PAGE: usize = 2 * PAGE;

struct Log {
    file: File,
    record: usize,
    records: u64,
    checked: u64,
}

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let _limit = MemoryGroup::enter(arguments)?;
    let size = arguments.size("size") << 20;
    let scratch = Scratch::new(arguments.text("path"))?;
    let table = stamped::made(&scratch.path("table"), 0, size)?;
    let log = RefCell::new(Log::new(&scratch.path("log"), arguments.size("record"))?);
    let pages = size / TABLE_PAGE;
    let law = Zipf::new(pages, arguments.size("exponent") as f64 / 100.0);
    let mut random = Random::new(arguments.size("seed") as u64);
    let mut buffer = Pages::new(TABLE_PAGE)?;
    let (transactions, reads) = (arguments.size("transactions"), arguments.size("reads"));
    let prepare = || log.borrow_mut().check();
    io_meter::measure(meter, Path::new(arguments.text("path")), arguments.clock, prepare, |(), latencies| {
        let mut log = log.borrow_mut();
        for _ in 0..transactions {
            latencies.step(|| {
                for _ in 0..reads {
                    // Popular pages lie anywhere in the table (a prime is no divisor of their number).
                    let page = law.draw(&mut random) * 7_919 % pages;
                    let bytes = &mut buffer[..TABLE_PAGE];
                    let offset = (page * TABLE_PAGE) as u64;
                    table.read_exact_at(bytes, offset).map_err(|error| Failure::io("read", &error))?;
                    stamped::check(bytes, 0, offset, 0)?;
                }
                log.append()
            })?;
        }
        Ok(())
    })
}

impl Log {
    fn new(path: &Path, record: usize) -> Result<Self, Failure> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|error| Failure::io(&path.display().to_string(), &error))?;
        Ok(Self { file, record, records: 0, checked: 0 })
    }

    fn append(&mut self) -> Result<(), Failure> {
        let record = self.content(self.records);
        let place = self.records * self.record as u64;
        self.file.write_all_at(&record, place).map_err(|error| Failure::io("write", &error))?;
        self.records += 1;
        self.file.sync_data().map_err(|error| Failure::io("fdatasync", &error))
    }

    fn content(&self, number: u64) -> Vec<u8> {
        let mut record = vec![(number % 251) as u8; self.record];
        record[..8].copy_from_slice(&number.to_le_bytes());
        record
    }

    /// All records since the last time are there.
    fn check(&mut self) -> Result<(), Failure> {
        let mut found = vec![0; self.record];
        while self.checked < self.records {
            let place = self.checked * self.record as u64;
            self.file.read_exact_at(&mut found, place).map_err(|error| Failure::io("reading the log", &error))?;
            if found != self.content(self.checked) {
                return Err(Failure::wrong(format!("record {} of the log is not what was written", self.checked)));
            }
            self.checked += 1;
        }
        Ok(())
    }
}
