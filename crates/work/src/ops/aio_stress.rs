//! Asynchronous I/O on files, as aio-stress does it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::thread;

use crate::aio::{Answer, Command, Context, Request};
use crate::arguments::{Arguments, Workload};
use crate::clock::ClockKind;
use crate::failure::Failure;
use crate::files::Scratch;
use crate::memory::Pages;
use crate::meter::Meter;
use crate::workload::{Domain, Measure, Parameter, DIRECTORY};

const BEFORE: &str = "rate before fsync";
const WITH: &str = "rate with fsync";

pub const WORKLOAD: Workload = Workload {
    name: "aio-stress",
    summary: "asynchronous reads or writes of whole files, with Linux's own aio",
    does: "One operation makes fresh files, submits reads or writes for as many records as the files have, 8 at a \
           time and at most `depth` under way, waits for all, then calls fsync on each file. Random places are drawn \
           with replacement, always the same ones. A file belongs to one thread: more threads than files do nothing \
           (`-t 3` with one file is one thread, in the original too). The rate before fsync is what the original \
           and the Phoronix Test Suite print: for buffered writes it is that of dirtying the page cache. Every answer \
           must be a whole record, and the last record of each file must be in it.",
    system_calls: &["io_setup", "io_submit", "io_getevents", "fsync", "io_destroy"],
    metric: "stage",
    also: &[
        Measure { name: BEFORE, unit: "MB/s", higher_is_better: true },
        Measure { name: WITH, unit: "MB/s", higher_is_better: true },
    ],
    parameters: &[
        number("size", "MiB in each file (-s)", 64, 1, 65_536),
        number("record", "KiB in a record (-r)", 64, 4, 1_024),
        number("depth", "requests of a thread under way at most (-d)", 64, 1, 4_096),
        number("files", "files", 1, 1, 64),
        number("threads", "threads, which share the files (-t)", 1, 1, 64),
        Parameter {
            name: "stage",
            summary: "what is done (-o 0, 1, 2, 3)",
            domain: Domain::Choice {
                default: "random-write",
                choices: &["write", "read", "random-write", "random-read"],
            },
        },
        Parameter {
            name: "direct",
            summary: "whether the page cache is gone around (O_DIRECT, -O)",
            domain: Domain::Choice { default: "no", choices: &["no", "yes"] },
        },
        DIRECTORY,
    ],
    source: "aio-stress by Chris Mason; the Phoronix Test Suite runs it with -s 2g -r 64k -t 3 -o 2",
    operations: 1,
    passes: 3,
    discarded: 1,
    spreads: true,
    fixed_layout: false,
    run,
};

const fn number(name: &'static str, summary: &'static str, default: i64, minimum: i64, maximum: i64) -> Parameter {
    Parameter { name, summary, domain: Domain::Number { default, minimum, maximum } }
}

/// Requests that are submitted together, as in the original.
const BATCH: usize = 8;

/// What is done to each file.
#[derive(Clone, Copy)]
struct Stage {
    command: Command,
    random: bool,
    direct: bool,
    records: usize,
    record: usize,
    depth: usize,
}

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let stage = stage(arguments)?;
    let (files, threads) = (arguments.size("files"), arguments.size("threads"));
    let scratch = Scratch::new(arguments.text("path"))?;
    let clock = arguments.clock;
    let mut rates = Vec::new();
    let megabytes = (files * stage.records * stage.record) as f64 / 1e6;
    let fresh = || made(&scratch, files, &stage);
    meter.repeat_prepared(fresh, |files| {
        let start = Meter::now(clock);
        shared_out(&stage, &files, threads)?;
        let before = seconds(clock, start);
        for file in &files {
            file.sync_all().map_err(|error| Failure::io("fsync", &error))?;
        }
        rates.push((megabytes / before, megabytes / seconds(clock, start)));
        Ok(())
    })?;
    for (before, with) in rates {
        meter.record(BEFORE, before);
        meter.record(WITH, with);
    }
    Ok(())
}

fn stage(arguments: &Arguments) -> Result<Stage, Failure> {
    let (kind, record) = (arguments.text("stage"), arguments.size("record") << 10);
    let records = (arguments.size("size") << 20) / record;
    if records == 0 {
        return Err(Failure::wrong("a record is larger than its file: give a smaller --record or a larger --size"));
    }
    Ok(Stage {
        command: if kind.ends_with("read") { Command::Read } else { Command::Write },
        random: kind.starts_with("random"),
        direct: arguments.text("direct") == "yes",
        records,
        record,
        depth: arguments.size("depth"),
    })
}

fn seconds(clock: ClockKind, start: u64) -> f64 {
    (Meter::now(clock) - start) as f64 / 1e9
}

/// Fresh files: empty where they will be written, written and on disk where they will be read.
fn made(scratch: &Scratch, files: usize, stage: &Stage) -> Result<Vec<File>, Failure> {
    (0..files).map(|number| made_one(scratch, number, stage)).collect()
}

fn made_one(scratch: &Scratch, number: usize, stage: &Stage) -> Result<File, Failure> {
    let path = scratch.path(&format!("file{number}"));
    let failed = |error: std::io::Error| Failure::io(&path.display().to_string(), &error);
    let _ = std::fs::remove_file(&path); // The last operation's; the first has none.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    if stage.command == Command::Read {
        let file = options.open(&path).map_err(failed)?;
        let mut record = Pages::new(stage.record)?;
        for place in 0..stage.records {
            stamp(&mut record[..stage.record], place);
            file.write_all_at(&record[..stage.record], (place * stage.record) as u64).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        options.create_new(false);
    }
    if stage.direct {
        options.custom_flags(libc::O_DIRECT);
    }
    options.open(&path).map_err(failed)
}

/// A record says where it belongs.
fn stamp(record: &mut [u8], place: usize) {
    record[..8].copy_from_slice(&(place as u64 ^ 0x5bd1_e995).to_le_bytes());
}

/// Each thread does its files one after the other; with one thread there is none but this.
fn shared_out(stage: &Stage, files: &[File], threads: usize) -> Result<(), Failure> {
    if threads == 1 || files.len() == 1 {
        return files.iter().try_for_each(|file| whole(stage, file));
    }
    let share = files.len().div_ceil(threads);
    thread::scope(|scope| {
        let workers: Vec<_> =
            files.chunks(share).map(|own| scope.spawn(|| own.iter().try_for_each(|file| whole(stage, file)))).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(Failure::wrong("a thread panicked")))
        })
    })
}

/// Every record of one file.
fn whole(stage: &Stage, file: &File) -> Result<(), Failure> {
    let depth = stage.depth.min(stage.records);
    let context = Context::new(depth)?;
    let mut buffers = Pages::new(depth * stage.record)?;
    let mut slots: Vec<&mut [u8]> = buffers[..depth * stage.record].chunks_mut(stage.record).collect();
    let mut requests = vec![Request::default(); depth];
    let mut free: Vec<usize> = (0..depth).rev().collect();
    let mut places = Places::new(stage);
    let (mut begun, mut answers) = (0, vec![Answer::default(); depth]);
    let mut last = 0;
    while begun < stage.records || free.len() < depth {
        let mut batch: Vec<*mut Request> = Vec::with_capacity(BATCH);
        while begun < stage.records && batch.len() < BATCH {
            let Some(slot) = free.pop() else { break };
            last = places.next();
            if stage.command == Command::Write {
                stamp(slots[slot], last);
            }
            let offset = last * stage.record;
            requests[slot] = Request::new(stage.command, file.as_raw_fd(), slots[slot], offset, slot as u64);
            batch.push(&mut requests[slot]);
            begun += 1;
        }
        let mut rest = batch.as_mut_slice();
        while !rest.is_empty() {
            let taken = context.submit(rest)?;
            rest = &mut rest[taken..];
        }
        if free.is_empty() || begun == stage.records {
            let got = context.answers(1, &mut answers)?;
            for answer in &answers[..got] {
                check(answer, stage.record)?;
                free.push(answer.data as usize);
            }
        }
    }
    check_content(stage, file, last)
}

#[inline]
fn check(answer: &Answer, record: usize) -> Result<(), Failure> {
    match answer.result {
        bytes if bytes == record as i64 => Ok(()),
        error if error < 0 => {
            Err(Failure::io("aio", &std::io::Error::from_raw_os_error(-error as i32)))
        }
        bytes => Err(Failure::wrong(format!("aio moved {bytes} bytes of {record}"))),
    }
}

/// The record that was asked for last is where it belongs.
fn check_content(stage: &Stage, file: &File, place: usize) -> Result<(), Failure> {
    let (mut found, mut wanted) = (Pages::new(stage.record)?, [0; 8]);
    file.read_exact_at(&mut found[..stage.record], (place * stage.record) as u64)
        .map_err(|error| Failure::io("reading back", &error))?;
    stamp(&mut wanted, place);
    match found[..8] == wanted {
        true => Ok(()),
        false => Err(Failure::wrong(format!("record {place} is not what was written"))),
    }
}

/// Where the records go: one after the other, or drawn with replacement (xorshift64, Marsaglia 2003, always one seed).
struct Places {
    random: bool,
    records: usize,
    state: u64,
    next: usize,
}

impl Places {
    fn new(stage: &Stage) -> Self {
        Self { random: stage.random, records: stage.records, state: 0x2545_f491_4f6c_dd1d, next: 0 }
    }

    fn next(&mut self) -> usize {
        if !self.random {
            self.next += 1;
            return self.next - 1;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % self.records as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(random: bool) -> Vec<usize> {
        let stage =
            Stage { command: Command::Write, random, direct: false, records: 1000, record: 4096, depth: 1 };
        let mut places = Places::new(&stage);
        (0..1000).map(|_| places.next()).collect()
    }

    #[test]
    fn records_in_order_are_each_there_once() {
        assert_eq!(places(false), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn random_records_are_spread_over_the_file_and_the_same_each_time() {
        let drawn = places(true);
        assert_eq!(drawn, places(true));
        assert!(drawn.iter().all(|place| *place < 1000));
        let different: std::collections::HashSet<_> = drawn.iter().collect();
        // 1000 draws with replacement leave 1 in e places out.
        assert!((580..690).contains(&different.len()), "{}", different.len());
    }
}
