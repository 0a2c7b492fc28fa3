//! UnixBench's index tests.

use std::collections::HashMap;
use std::fs;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::Scratch;
use crate::meter::Meter;
use crate::unixbench::{in_copies, index, score, Pass, Test, TESTS};
use crate::workload::{Domain, Measure, Parameter, DIRECTORY};

const INDEX: &str = "index";
const OTHER_INDEX: &str = "index of other durations";

const fn measure(name: &'static str, unit: &'static str) -> Measure {
    Measure { name, unit, higher_is_better: true }
}

pub const WORKLOAD: Workload = Workload {
    name: "unixbench",
    summary: "UnixBench's twelve index tests, to its specification, in ktrial's own programs",
    does: "One operation is one whole run: of each test its passes, each in processes of its own, stopped by an \
           alarm. Of a test's passes the lowest third is dropped; its score is the geometric mean of the others; the \
           index is ten times the geometric mean of score over baseline. A full run takes 28 minutes. It is ktrial's \
           own index: other programs, other compilers and UnixBench's own versions have others, and none may be \
           compared with another. With other durations or passes than UnixBench's it is called so.",
    system_calls: &["dup", "read", "write", "fork", "execve", "wait4", "lseek", "pipe"],
    metric: "run",
    also: &[
        measure("dhry2reg", "lps"),
        measure("whetstone-double", "MWIPS"),
        measure("execl", "lps"),
        measure("fstime", "KBps"),
        measure("fsbuffer", "KBps"),
        measure("fsdisk", "KBps"),
        measure("pipe", "lps"),
        measure("context1", "lps"),
        measure("spawn", "lps"),
        measure("shell1", "lpm"),
        measure("shell8", "lpm"),
        measure("syscall", "lps"),
        measure(INDEX, ""),
        measure(OTHER_INDEX, ""),
    ],
    parameters: &[
        Parameter {
            name: "test",
            summary: "one test, or all (only then there is an index)",
            domain: Domain::Choice {
                default: "all",
                choices: &[
                    "all", "dhry2reg", "whetstone-double", "execl", "fstime", "fsbuffer", "fsdisk", "pipe",
                    "context1", "spawn", "shell1", "shell8", "syscall",
                ],
            },
        },
        number("milliseconds", "length of a pass; 0: UnixBench's own (10, 30 or 60 seconds)", 0, 0, 600_000),
        number("rounds", "passes of each test; 0: UnixBench's own (10 or 3)", 0, 0, 1_000),
        number("copies", "copies at once; 0: as many as there are CPUs", 1, 0, 1_024),
        DIRECTORY,
    ],
    source: "UnixBench 5.1.3; Dhrystone 2.1; Whetstone",
    operations: 1,
    passes: 1,
    discarded: 0,
    spreads: true,
    fixed_layout: false,
    run,
};

const fn number(name: &'static str, summary: &'static str, default: i64, minimum: i64, maximum: i64) -> Parameter {
    Parameter { name, summary, domain: Domain::Number { default, minimum, maximum } }
}

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let chosen = arguments.text("test");
    let tests: Vec<&'static Test> = TESTS.iter().filter(|test| chosen == "all" || chosen == test.name).collect();
    let mut runs = Vec::new();
    meter.repeat(|| {
        let scores: Result<Vec<f64>, Failure> = tests.iter().map(|test| scored(arguments, test)).collect();
        runs.push(scores?);
        Ok(())
    })?;
    for scores in runs {
        let of: HashMap<&str, f64> = tests.iter().zip(&scores).map(|(test, score)| (test.name, *score)).collect();
        of.iter().for_each(|(name, score)| meter.record(name, *score));
        if chosen == "all" {
            let specified = arguments.size("milliseconds") == 0 && arguments.size("rounds") == 0;
            let name = if specified { INDEX } else { OTHER_INDEX };
            meter.record(name, index(tests.iter().copied().zip(scores)));
        }
    }
    Ok(())
}

/// A test's score over all its passes.
fn scored(arguments: &Arguments, test: &'static Test) -> Result<f64, Failure> {
    let rounds = match arguments.size("rounds") {
        0 => test.passes,
        rounds => rounds,
    };
    let passes: Result<Vec<_>, Failure> = (0..rounds).map(|_| in_copies(copies(arguments), |_| {
        one(arguments, test).map_err(|failure| Failure::wrong(format!("{}: {failure}", test.name)))
    })).collect();
    Ok(score(test, &passes?))
}

fn one(arguments: &Arguments, test: &Test) -> Result<crate::unixbench::Passed, Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let directory = scratch.path("files");
    fs::create_dir(&directory).map_err(|error| Failure::io("mkdir", &error))?;
    let seconds = match arguments.size("milliseconds") {
        0 => test.seconds,
        milliseconds => milliseconds as f64 / 1e3,
    };
    (test.run)(&Pass { seconds, clock: arguments.clock, directory })
}

fn copies(arguments: &Arguments) -> usize {
    match arguments.size("copies") {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        copies => copies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_has_its_metric_and_can_be_chosen() {
        let metrics: Vec<_> = WORKLOAD.also.iter().map(|also| also.name).collect();
        let tests: Vec<_> = TESTS.iter().map(|test| test.name).collect();
        assert_eq!(metrics[..12], tests);
        let Domain::Choice { choices, .. } = WORKLOAD.parameters[0].domain else { panic!("a choice") };
        assert_eq!(choices[1..], tests);
    }
}
