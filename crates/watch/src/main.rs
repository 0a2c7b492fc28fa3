//! `watch WHAT -- PROGRAM ARGUMENT…`: runs a program, and marks when something first happens (README.md).

mod beginning;
mod calls;
mod failures;
mod order;
mod tracer;

use std::ffi::OsString;
use std::fs;
use std::io;

use beginning::Beginning;
use failures::Failures;
use libc::{c_int, pid_t};
use order::{Order, What};
use tracer::Event;
use wire::marks;

const USAGE: &str = "usage: watch --text TEXT | --outputs N | --call NUMBER N | --signal NUMBER N | --failures FILE \
                     -- PROGRAM [ARGUMENT...]";

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(order) = Order::read(&words) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let ended = match order.what {
        What::Failures(file) => with_failures(&order.argv, &file),
        what => with_beginning(&order.argv, what),
    };
    match ended {
        Ok(status) => end_as(status),
        Err(error) => {
            eprintln!("watch: ptrace: {error}");
            std::process::exit(2);
        }
    }
}

fn with_beginning(argv: &[OsString], what: What) -> io::Result<c_int> {
    let outputs: Vec<String> = [1, 2]
        .into_iter()
        .filter_map(|number| calls::descriptor(own(), number))
        .collect();
    let mut beginning = Beginning::of(what, outputs.len());
    let mut has_begun = false;
    let status = tracer::run(argv, |task, event| {
        has_begun = match event {
            Event::Signalled(signal) => beginning.signalled(signal),
            Event::Returned(call, value) => {
                let written = (value > 0 && beginning.reads_outputs())
                    .then(|| call.written(task, value as u64, &outputs))
                    .flatten();
                beginning.returned(call.number)
                    || written.is_some_and(|(output, data)| beginning.wrote(output, &data))
            }
        };
        if has_begun {
            marks::region_begin();
        }
        has_begun
    });
    if has_begun {
        marks::region_end();
    }
    status
}

fn with_failures(argv: &[OsString], file: &OsString) -> io::Result<c_int> {
    let mut failures = Failures::default();
    let status = tracer::run(argv, |task, event| {
        if let Event::Returned(call, value @ ..0) = event {
            if value > -4096 {
                failures.add(call.number, value, &call.told(task));
            }
        }
        false
    })?;
    fs::write(file, failures.text())?;
    Ok(status)
}

fn own() -> pid_t {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { libc::getpid() }
}

/// End as the program has ended: by its signal, or with its status.
fn end_as(status: c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // SAFETY: this process ends, by a signal that it sends to itself.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        std::process::exit(128 + signal);
    }
    std::process::exit(libc::WEXITSTATUS(status));
}
