//! `tasks`: workloads of one to many tasks, on several CPUs, in one static program.
//!
//! `tasks NAME [--parameter value …]` runs one and prints its report as JSON; `tasks --list` describes all; `tasks delays
//! COMMAND` tells how long a program's tasks waited for a CPU. Exit status 1: a task failed, or its work was wrong; 2: the
//! command line is wrong.

mod arguments;
mod catalogue;
mod clock;
mod compilation;
mod connections;
mod cpus;
mod crew;
mod delays;
mod failure;
mod file_set;
mod files;
mod futexes;
mod memory;
mod netlink;
mod partners;
mod percentiles;
mod processes;
mod report;
mod shared;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::{Arguments, Request};
use crew::Crew;
use failure::Failure;

const HELP: &str = "\
tasks NAME [--PARAMETER VALUE …] [--tasks N] [--kind processes|threads] [--pinned yes|no] [--clock tsc|monotonic]
tasks --list    every workload, as JSON
tasks delays COMMAND [ARGUMENT …]    run a program; how long its tasks waited for a CPU, as JSON on standard error
The report goes to standard output, as JSON.";

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.first().and_then(|word| word.to_str()) {
        Some(compilation::COMPILE) => ended(compilation::program(&words)),
        Some(delays::DELAYS) => delays::watch(&words).unwrap_or_else(|failure| ended(Err(failure))),
        _ => workload(words),
    }
}

fn ended(what: Result<(), Failure>) -> ExitCode {
    what.map_or_else(
        |failure| complain(1, &failure.to_string()),
        |()| ExitCode::SUCCESS,
    )
}

fn workload(words: Vec<OsString>) -> ExitCode {
    match arguments::parse(words, catalogue::ALL) {
        Ok(Request::Help) => print(HELP),
        Ok(Request::List) => print(&format!("{:#}", catalogue::list())),
        Ok(Request::Run(arguments)) => match run(&arguments) {
            Ok(report) => print(&report),
            Err(failure) => complain(1, &format!("{}: {failure}", arguments.workload.name)),
        },
        Err(misuse) => complain(2, &misuse),
    }
}

fn run(arguments: &Arguments) -> Result<String, Failure> {
    memory::no_huge_pages()?;
    let mut crew = Crew::new(&arguments.asked())?;
    (arguments.workload.run)(arguments, &mut crew)?;
    let checks = (crew.each() * crew.tasks) as u64;
    Ok(report::report(arguments, &crew, checks)?.to_string())
}

fn print(text: &str) -> ExitCode {
    use std::io::Write as _;
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(1, &format!("standard output: {error}")),
    }
}

fn complain(status: u8, text: &str) -> ExitCode {
    eprintln!("tasks: {text}");
    ExitCode::from(status)
}
