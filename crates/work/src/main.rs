//! `work`: ktrial's built-in workloads in one static program.
//!
//! `work NAME [--parameter value …]` runs one and prints its report as JSON; `work --list` describes all. Exit status
//! 1: the workload failed, or its own work was wrong; 2: the command line is wrong.
//!
//! There is no Rust runtime around `main`: `exec` executes this program, and each system call before its end counts.
#![cfg_attr(not(test), no_main)]

mod aio;
mod arguments;
mod block_device;
mod catalogue;
mod children;
mod clean_room;
mod clock;
mod draws;
mod echo;
mod failure;
mod file_server;
mod files;
mod hackbench;
mod io_counts;
mod io_meter;
mod latency;
mod memory;
mod memory_group;
mod meter;
mod page_cache_copy;
mod processes;
mod stamped;
mod statistics;
mod unixbench;
mod workload;

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

use arguments::{Arguments, Request};
use failure::Failure;
use meter::Meter;

const HELP: &str = "\
work NAME [--PARAMETER VALUE …] [--operations N] [--passes N] [--clock tsc|monotonic] [--vector]
work --list     every workload, as JSON
The report goes to standard output, as JSON. --clock tsc counts guest instructions in ktrial's exact mode.";

/// The C library's entry.
///
/// # Safety
/// Called once, by the C library, with the process's own arguments.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn main(
    count: libc::c_int,
    values: *const *const libc::c_char,
) -> libc::c_int {
    let words: Vec<&CStr> = (0..count as usize)
        // SAFETY: the C library hands over `count` C strings that live as long as the process.
        .map(|at| unsafe { CStr::from_ptr(*values.add(at)) })
        .collect();
    // A partner that is gone is an error to report, not a signal to die from.
    // SAFETY: ignoring a signal installs no handler.
    let ignore = || unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let given = words
        .iter()
        .skip(1)
        .map(|word| OsStr::from_bytes(word.to_bytes()).to_owned());
    match arguments::parse(given, catalogue::ALL) {
        Ok(Request::Nothing) => 0,
        Ok(Request::UnixBench(words)) => match unixbench::executed(&words) {
            Ok(()) => 0,
            Err(failure) => complain(1, &failure.to_string()),
        },
        Ok(Request::Help) => print(HELP),
        Ok(Request::List) => print(&format!("{:#}", catalogue::list())),
        Ok(Request::Run(arguments)) => {
            ignore();
            match run(&arguments, &words) {
                Ok(report) => print(&report),
                Err(failure) => complain(1, &format!("{}: {failure}", arguments.workload.name)),
            }
        }
        Err(misuse) => complain(2, &misuse.to_string()),
    }
}

fn run(arguments: &Arguments, words: &[&CStr]) -> Result<String, Failure> {
    if arguments.workload.fixed_layout {
        clean_room::enter(words)?;
    }
    if !arguments.workload.spreads {
        processes::pin()?;
    }
    let mut meter = Meter::new(arguments)?;
    (arguments.workload.run)(arguments, &mut meter)?;
    Ok(meter.report(arguments).to_string())
}

fn print(text: &str) -> libc::c_int {
    use std::io::Write as _;
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => 0,
        Err(error) => complain(1, &format!("standard output: {error}")),
    }
}

fn complain(status: libc::c_int, text: &str) -> libc::c_int {
    eprintln!("work: {text}");
    status
}
