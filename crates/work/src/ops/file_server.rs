//! A file server over loopback, with more files than memory holds: the workload of the paper that found three errors in
//! the page cache.

use std::net::TcpStream;
use std::path::Path;
use std::thread;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::file_server::{pair, serve, Clients, FileSet, Method, Taken, Told, CLASSES};
use crate::io_counts as counts;
use crate::io_meter;
use crate::latency;
use crate::memory::PAGE;
use crate::memory_group::{MemoryGroup, MEMORY};
use crate::meter::Meter;
use crate::workload::{number, Domain, Measure, Parameter, DIRECTORY, EXPONENT, SEED};

const MISSED: [&str; CLASSES.len()] = ["misses of 4 KiB files", "misses of 32 KiB files", "misses of 1 MiB files"];
const EVICTED: [&str; CLASSES.len()] =
    ["evictions of 4 KiB files", "evictions of 32 KiB files", "evictions of 1 MiB files"];
const READ_FOR: [&str; CLASSES.len()] = ["read for 4 KiB files", "read for 32 KiB files", "read for 1 MiB files"];

pub const WORKLOAD: Workload = Workload {
    name: "file-server",
    summary: "a file server over loopback: sendfile, read and write, splice or mmap, by popularity and size",
    does: "A server with a thread for each of `connections` connections, and as many clients, on one CPU. One operation \
           is `requests` requests: a client asks for a file, of 4 KiB (64 of 100), 32 KiB (30) or 1 MiB (6), the \
           popular ones of each size more often (Zipf's law), and the server opens it and sends it by `method`. A step \
           is one request. `misses of … files` are requests for which the disk was read, `evictions of … files` the \
           pages that left the page cache: a cache that evicts the small or the popular shows there. The clients \
           check every page. Files are made once, and all are looked at between operations, for what is in the page \
           cache. Give it a disk (`path`), and less `memory` than the files need (by default 60 MiB).",
    system_calls: &["read", "open", "sendfile", "close", "write (the client)", "read (the client)"],
    metric: "requests",
    also: &[
        counts::READ,
        counts::REQUESTS,
        counts::READ_SIZE,
        missed(MISSED[0]),
        missed(MISSED[1]),
        missed(MISSED[2]),
        read_for(READ_FOR[0]),
        read_for(READ_FOR[1]),
        read_for(READ_FOR[2]),
        evicted(EVICTED[0]),
        evicted(EVICTED[1]),
        evicted(EVICTED[2]),
        counts::REFAULTS,
        counts::ACTIVATIONS,
        counts::EVICTIONS,
        counts::WRITTEN,
        counts::SWITCHES,
        counts::ALLOCATIONS,
        counts::RATE,
        latency::P50,
        latency::P90,
        latency::P99,
        latency::P999,
        latency::MAX,
    ],
    parameters: &[
        Parameter {
            name: "method",
            summary: "how a file gets into the socket",
            domain: Domain::Choice { default: Method::NAMES[0], choices: Method::NAMES },
        },
        number("requests", "requests in one operation", 600, 1, 10_000_000),
        number("connections", "clients at once", 8, 1, 256),
        number("small", "files of 4 KiB", 1_024, 1, 999_999),
        number("medium", "files of 32 KiB", 512, 1, 999_999),
        number("large", "files of 1 MiB", 40, 1, 999_999),
        EXPONENT,
        SEED,
        MEMORY,
        DIRECTORY,
    ],
    source: "Harji, Buhr, Brecht: Our Troubles with Linux Kernel Upgrades and Why You Should Care",
    operations: 1,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

const fn missed(name: &'static str) -> Measure {
    Measure { name, unit: "requests", higher_is_better: false }
}

const fn evicted(name: &'static str) -> Measure {
    Measure { name, unit: "pages", higher_is_better: false }
}

const fn read_for(name: &'static str) -> Measure {
    Measure { name, unit: "KiB", higher_is_better: false }
}

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let _limit = MemoryGroup::enter(arguments)?;
    let numbers = ["small", "medium", "large"].map(|class| arguments.size(class));
    let exponent = arguments.size("exponent") as f64 / 100.0;
    let files = FileSet::new(arguments.text("path"), numbers, exponent)?;
    let pairs = (0..arguments.size("connections")).map(|_| pair()).collect::<Result<Vec<_>, _>>()?;
    let (clients, servers): (Vec<TcpStream>, Vec<TcpStream>) = pairs.into_iter().unzip();
    let mut clients = Clients::new(clients, arguments.size("seed") as u64, arguments.clock)?;
    let told = Told::default();
    thread::scope(|scope| {
        let (files, told) = (&files, &told);
        let serving = (servers.into_iter())
            .map(|socket| {
                let method = Method::new(arguments.text("method"))?;
                Ok(scope.spawn(move || serve(&socket, method, files, told)))
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let measured = measured(arguments, meter, &mut clients, files, told);
        drop(clients); // Closes the connections, which ends the server's threads.
        for server in serving {
            server.join().unwrap_or_else(|_| Err(Failure::wrong("a server's thread panicked")))?;
        }
        measured
    })
}

fn measured(
    arguments: &Arguments,
    meter: &mut Meter,
    clients: &mut Clients,
    files: &FileSet,
    told: &Told,
) -> Result<(), Failure> {
    let (requests, directory) = (arguments.size("requests"), Path::new(arguments.text("path")));
    let mut moments = Vec::new();
    // Counts of the operation before, which is none the first time.
    let prepare = || {
        moments.push((told.take(), files.resident()?));
        Ok(())
    };
    io_meter::measure(meter, directory, arguments.clock, prepare, |(), latencies| {
        clients.ask(requests, files, latencies)
    })?;
    for pair in moments.windows(2) {
        record(meter, &pair[1].0, pair[0].1, pair[1].1);
    }
    Ok(())
}

/// What one operation did to each class, of whose pages so many were in the page cache before it and after it.
fn record(meter: &mut Meter, taken: &Taken, before: [usize; CLASSES.len()], after: [usize; CLASSES.len()]) {
    for class in 0..CLASSES.len() {
        let bytes = taken.bytes[class];
        // What was there and what came, less what is there.
        let evicted = (before[class] + bytes as usize / PAGE).saturating_sub(after[class]);
        meter.record(MISSED[class], taken.missed[class] as f64);
        meter.record(READ_FOR[class], bytes as f64 / 1024.0);
        meter.record(EVICTED[class], evicted as f64);
    }
}
