//! The step `run`: a program to its end, and everything that is told about it.

use std::fs;
use std::io;
use std::time::Duration;

use nix::unistd::Pid;
use probes::counters::{Snapshot, VMSTAT};
use probes::failure;
use probes::sampler::Sampler;
use wire::marks;
use wire::steps::{Failure, Run, StepResult};

use super::capture;
use super::clock::now_ns;
use super::layout::Seeded;
use super::process::{Ended, Process};

/// Run it. A program that fails is no failure of the step: its status and its output tell.
pub fn run(step: &Run, spared: Option<Pid>, result: &mut StepResult) -> Result<(), Failure> {
    marks::next_run();
    let action = format!("run {}", program(step));
    failure::told(
        &format!("{action}: directory {}", step.directory),
        fs::metadata(&step.directory),
    )?;
    std::thread::sleep(Duration::from_nanos(step.start_offset_ns));
    if step.layout_seed == 0 {
        return measured(step, &action, spared, result);
    }
    let seeded = failure::told(
        &format!("{action}: seed the layout"),
        Seeded::with(step.layout_seed),
    )?;
    let answer = measured(step, &action, spared, result);
    failure::told(
        &format!("{action}: take the layout's seed back"),
        seeded.end(),
    )?;
    answer
}

fn oom_kills() -> u64 {
    counters_now(&[VMSTAT.into()]).oom_kills()
}

fn counters_now(paths: &[String]) -> Snapshot {
    let read = |path: &String| Some((path.clone(), fs::read_to_string(path).ok()?));
    Snapshot::of(paths.iter().filter_map(read))
}

fn program(step: &Run) -> &str {
    step.argv.first().map_or("", String::as_str)
}

fn measured(
    step: &Run,
    action: &str,
    spared: Option<Pid>,
    result: &mut StepResult,
) -> Result<(), Failure> {
    let mut sampler = failure::told(action, begin_sampling(step))?;
    let (before, kills_before) = (counters_now(&step.watch), oom_kills());
    let mut process = failure::told(action, Process::start(step, spared))?;
    let ended = failure::told(action, process.wait(step.limit_ns, &mut sampler))?;
    result.watched = counters_now(&step.watch).since(&before);
    result.oom_kills = oom_kills() - kills_before;
    result.sampled = match sampler {
        Some(sampler) => Some(sampler.end(failure::told(action, now_ns())?)),
        None => None,
    };
    tell_end(ended, result);
    let ((stdout, stderr), cut) = failure::told(action, process.clean_up())?;
    (result.stdout, result.stderr) = (stdout, stderr);
    if cut {
        let limit = capture::LIMIT;
        return Err(failure::plain(format!(
            "{action}: wrote more than {limit} bytes; the rest was left out"
        )));
    }
    Ok(())
}

fn begin_sampling(step: &Run) -> io::Result<Option<Sampler>> {
    let begin = |order| Ok(Sampler::begin(order, now_ns()?));
    step.sample.as_ref().map(begin).transpose()
}

fn tell_end(ended: Ended, result: &mut StepResult) {
    result.exit = libc::WIFEXITED(ended.status).then(|| libc::WEXITSTATUS(ended.status));
    result.signal = libc::WIFSIGNALED(ended.status).then(|| libc::WTERMSIG(ended.status));
    result.timed_out = ended.timed_out;
    result.wall_ns = ended.wall_ns;
    result.rusage = ended.rusage;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::steps::perform;
    use wire::steps::Step;

    const UNSEEDED: u64 = 1;

    fn shell(script: &str) -> Run {
        Run {
            argv: ["/bin/sh", "-c", script].map(String::from).into(),
            environment: BTreeMap::new(),
            directory: "/".into(),
            limit_ns: 0,
            layout_seed: UNSEEDED,
            start_offset_ns: 0,
            watch: Vec::new(),
            sample: None,
        }
    }

    /// Without a seed for the layout: containers forbid personality(ADDR_NO_RANDOMIZE), and a seed is the whole
    /// system's. tests/guest/machines/test_agent.py has both.
    fn ran(step: Run) -> StepResult {
        let mut result = StepResult::default();
        result.failure =
            measured(&step, &format!("run {}", program(&step)), None, &mut result).err();
        result
    }

    #[test]
    fn the_environment_and_the_directory_are_exactly_what_was_asked_for() {
        let mut step =
            shell("pwd; /usr/bin/env -0 | tr '\\0' '\\n' | grep -v '^PWD=\\|^_=\\|^SHLVL='");
        step.directory = "/usr".into();
        step.environment = BTreeMap::from([("LANG".into(), "C".into())]);
        let result = ran(step);
        assert_eq!(
            (result.stdout.as_str(), result.exit),
            ("/usr\nLANG=C\n", Some(0))
        );
    }

    #[test]
    fn a_status_and_a_signal_are_told_and_are_no_failures() {
        let exited = ran(shell("echo bad >&2; exit 7"));
        assert_eq!(
            (exited.exit, exited.signal, exited.stderr.as_str()),
            (Some(7), None, "bad\n")
        );
        let killed = ran(shell("kill -SEGV $$"));
        assert_eq!((killed.exit, killed.signal), (None, Some(11)));
        assert_eq!((exited.failure, killed.failure), (None, None));
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure() {
        let mut step = shell("");
        step.argv = vec!["/nowhere/program".into()];
        let failure = ran(step).failure.unwrap();
        assert_eq!(
            failure.text,
            "run /nowhere/program: No such file or directory"
        );
        let mut step = shell("");
        step.directory = "/nowhere".into();
        let failure = perform(0, Step::Run(step)).failure.unwrap();
        assert!(failure.text.contains("directory /nowhere"));
        let mut step = shell("");
        step.argv.clear();
        assert!(ran(step).failure.unwrap().text.contains("argv is empty"));
    }

    #[test]
    fn a_program_is_killed_at_its_limit_with_its_children() {
        let mut step = shell("echo begun; sleep 60 & sleep 60");
        step.limit_ns = 200_000_000;
        let begun = std::time::Instant::now();
        let result = ran(step);
        let lasted = begun.elapsed();
        assert!(result.timed_out && result.signal == Some(9) && result.failure.is_none());
        assert_eq!(result.stdout, "begun\n");
        // The limit runs from the fork, the program's own time from its exec.
        assert!(lasted.as_nanos() >= 200_000_000, "{lasted:?}");
        assert!(result.wall_ns < 10_000_000_000, "{}", result.wall_ns);
    }

    #[test]
    fn the_longest_limit_is_no_limit() {
        let mut step = shell("echo done");
        step.limit_ns = u64::MAX;
        let result = ran(step);
        assert_eq!(
            (result.timed_out, result.stdout.as_str()),
            (false, "done\n")
        );
    }

    #[test]
    fn what_a_program_leaves_behind_neither_outlives_it_nor_holds_its_output() {
        let result = ran(shell("sleep 60 & echo $!"));
        let child = format!("/proc/{}/cmdline", result.stdout.trim());
        assert!(result.wall_ns < 10_000_000_000);
        assert!(
            fs::read_to_string(child).unwrap_or_default().is_empty(),
            "still running"
        );
    }

    #[test]
    fn both_outputs_may_be_long_at_once() {
        let script =
            "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero";
        let result = ran(shell(script));
        assert_eq!(
            (result.stdout.len(), result.stderr.len()),
            (6_000_000, 3_000_000)
        );
    }

    #[test]
    fn output_above_the_limit_is_cut_and_said_to_be() {
        let result = ran(shell("head -c 9000000 /dev/zero; exit 3"));
        assert_eq!(
            (result.stdout.len(), result.exit),
            (capture::LIMIT, Some(3))
        );
        assert!(result
            .failure
            .unwrap()
            .text
            .contains("wrote more than 8388608 bytes"));
    }

    #[test]
    fn resources_and_watched_files_are_told() {
        let mut step = shell("true");
        step.watch = vec!["/proc/self/io".into(), "/nowhere".into()];
        let result = ran(step);
        assert!(result.rusage["minflt"] > 0.0 && result.rusage["maxrss_kib"] > 0.0);
        assert_eq!(result.watched.keys().collect::<Vec<_>>(), ["/proc/self/io"]);
        assert!(result.watched["/proc/self/io"]["rchar"][0] > 0.0);
    }
}
