//! `tasks delays COMMAND`: how long each task waited for a CPU, of those that ended while a program ran.
//!
//! The kernel tells it of every task that ends (Documentation/accounting/taskstats.rst): what /proc/PID/schedstat has, run
//! delay and how often it ran, which is gone with the task. Nobody reads while the program runs, so that nothing is woken.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use serde_json::json;

use crate::failure::Failure;
use crate::netlink::{attributes, Netlink};
use crate::percentiles::percentile;

/// The command line begins with it.
pub const DELAYS: &str = "delays";

// include/uapi/linux/taskstats.h
const FAMILY: &str = "TASKSTATS";
const GET: u8 = 1;
const REGISTER_CPUMASK: u16 = 3;
const STATS: u16 = 3;
const OF_A_TASK: u16 = 4;
/// Where `cpu_count` and `cpu_delay_total` are in the structure, in each of its versions.
const RAN: usize = 16;
const WAITED: usize = 24;

struct Task {
    waited: u64,
    ran: u64,
}

/// Run the program; its exit status. What its tasks waited goes to standard error, as the last line.
pub fn watch(words: &[OsString]) -> Result<ExitCode, Failure> {
    let [_, program, arguments @ ..] = words else {
        return Err(Failure::wrong("delays: give a program"));
    };
    let cpus = "/sys/devices/system/cpu/possible";
    let cpus =
        fs::read_to_string(cpus).map_err(|error| Failure::wrong(format!("{cpus}: {error}")))?;
    let kernel = Netlink::new(FAMILY)?;
    kernel.ask(
        GET,
        REGISTER_CPUMASK,
        format!("{}\0", cpus.trim()).as_bytes(),
    )?;
    let status = Command::new(program).args(arguments).status();
    let status = status
        .map_err(|error| Failure::wrong(format!("{}: {error}", program.to_string_lossy())))?;
    let tasks = ended(&kernel)?;
    eprintln!("{}", told(&tasks)?);
    match status.signal() {
        Some(signal) => Err(Failure::wrong(format!(
            "the program was killed by signal {signal}"
        ))),
        None => Ok(ExitCode::from(status.code().unwrap_or(1) as u8)),
    }
}

fn ended(kernel: &Netlink) -> Result<Vec<Task>, Failure> {
    let mut tasks = Vec::new();
    while let Some(message) = kernel.next()? {
        let of_tasks = attributes(&message).filter(|(kind, _)| *kind == OF_A_TASK);
        for (_, task) in of_tasks {
            let found = attributes(task).find(|(kind, _)| *kind == STATS);
            let (_, stats) =
                found.ok_or_else(|| Failure::wrong("taskstats: a task without its statistics"))?;
            tasks.push(Task {
                waited: number(stats, WAITED)?,
                ran: number(stats, RAN)?,
            });
        }
    }
    Ok(tasks)
}

fn number(stats: &[u8], at: usize) -> Result<u64, Failure> {
    let bytes = stats.get(at..).and_then(|bytes| bytes.first_chunk::<8>());
    bytes
        .map(|bytes| u64::from_ne_bytes(*bytes))
        .ok_or_else(|| Failure::wrong("taskstats: a structure that is too short"))
}

/// In nanoseconds of the kernel's clock.
fn told(tasks: &[Task]) -> Result<serde_json::Value, Failure> {
    let mut waited: Vec<u64> = tasks.iter().map(|task| task.waited).collect();
    waited.sort_unstable();
    let ran: u64 = tasks.iter().map(|task| task.ran).sum();
    if ran == 0 {
        return Err(Failure::wrong(
            "taskstats: of no task that ran (CONFIG_TASK_DELAY_ACCT)",
        ));
    }
    let of = |share| percentile(&waited, share);
    Ok(json!({
        "tasks": waited.len(),
        "ran": ran,
        "waited": waited.iter().sum::<u64>(),
        "median": of(0.5),
        "p99": of(0.99),
        "largest": of(1.0),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_p99_and_the_largest_are_over_tasks() {
        let tasks: Vec<Task> = (1..=200).map(|waited| Task { waited, ran: 2 }).collect();
        let told = told(&tasks).unwrap();
        assert_eq!(
            (told["median"].as_f64(), told["p99"].as_f64()),
            (Some(100.0), Some(198.0))
        );
        assert_eq!(
            (told["largest"].as_f64(), told["ran"].as_u64()),
            (Some(200.0), Some(400))
        );
    }

    #[test]
    fn statistics_of_nobody_are_an_error() {
        assert!(told(&[]).is_err());
        assert!(number(&[0; 20], WAITED).is_err());
    }
}
