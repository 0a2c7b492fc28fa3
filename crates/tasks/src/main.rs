//! `tasks`: workloads of one to many tasks, on several CPUs, in one static program.
//!
//! `tasks NAME [--parameter value …]` runs one and prints its report as JSON; `tasks --list` describes all. Exit status
//! 1: a task failed, or its work was wrong; 2: the command line is wrong.

mod arguments;
mod catalogue;
mod clock;
mod cpus;
mod crew;
mod failure;
mod files;
mod futexes;
mod memory;
mod partners;
mod processes;
mod report;
mod shared;
mod workload;

use std::process::ExitCode;

use arguments::{Arguments, Request};
use crew::Crew;
use failure::Failure;

const HELP: &str = "\
tasks NAME [--PARAMETER VALUE …] [--tasks N] [--kind processes|threads] [--pinned yes|no] [--clock tsc|monotonic]
tasks --list    every workload, as JSON
The report goes to standard output, as JSON.";

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1), catalogue::ALL) {
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
