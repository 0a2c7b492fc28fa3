//! A row of runs of one program. Around each: everything is prepared, the clock is read, the program runs while we sleep,
//! the clock is read, and only then what came of it is looked at. Counters are read around the row.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{killpg, Signal};
use nix::time::{clock_gettime, ClockId};
use wire::steps::{Failure, Run, SampledFiles, StepResult};

use crate::child::{Child, Place, Prepared};
use crate::order::Row;
use crate::output::{Output, LIMIT};
use crate::watched::{Moment, Watched};
use crate::{cpu_time, descendants};
use probes::failure;
use probes::rusage::wait4;
use probes::sampler::{own_cpu_ns, Sampler};

/// A program that writes is read at most every so often: its pipe holds a mebibyte.
const BETWEEN_READS: u16 = 50;

/// Whether ktrial is gone, or wants no more: it has closed its end of our standard input.
pub fn is_told_to_stop() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO)?;
    Ok(polled[0].any().unwrap_or(false))
}

/// A row that has ended.
#[derive(Debug)]
pub struct EndedRow {
    results: Vec<StepResult>,
    watch: Vec<String>,
    before: Moment,
    after: Moment,
    sampled: Option<SampledFiles>,
}

impl EndedRow {
    /// All that is told of it. The last one's counters and readings are those of the whole row.
    pub fn told(mut self) -> Vec<StepResult> {
        let (before, after) = (self.before.counters(), self.after.counters());
        let mut watched = after.since(&before);
        watched.retain(|path, _| self.watch.contains(path));
        if let Some(last) = self.results.last_mut() {
            last.oom_kills = after.oom_kills() - before.oom_kills();
            last.watched = watched;
            last.sampled = self.sampled;
        }
        self.results
    }
}

/// Run it as often as it is to run, or until ktrial is gone. A program that fails is no failure of its step: its status
/// and its output tell.
pub fn run_row(
    row: &Row,
    place: &Place,
    parent: i32,
    watched: &mut Watched,
) -> io::Result<EndedRow> {
    let mut prepared = prepared(row);
    let sample = row.run.sample.as_ref();
    let mut sampler = sample.map(|order| Sampler::begin(order, now_ns()));
    let before = watched.before(&row.run.watch);
    let mut results = Vec::with_capacity(row.times as usize);
    for step in (row.step..).take(row.times as usize) {
        if !results.is_empty() && is_told_to_stop()? {
            break;
        }
        let mut result = StepResult {
            step,
            r#do: "run".into(),
            ..StepResult::default()
        };
        let run = match &mut prepared {
            Ok(prepared) => measured(&row.run, prepared, place, parent, &mut sampler, &mut result),
            Err(failure) => Err(failure.clone()),
        };
        result.failure = run.err();
        results.push(result);
    }
    let after = watched.after();
    Ok(EndedRow {
        results,
        watch: row.run.watch.clone(),
        before,
        after,
        sampled: sampler.map(|sampler| sampler.end(now_ns())),
    })
}

fn action(run: &Run) -> String {
    format!("run {}", run.argv.first().map_or("", String::as_str))
}

fn prepared(row: &Row) -> Result<Prepared<'_>, Failure> {
    let run = &row.run;
    let action = action(run);
    let prepared =
        Prepared::new(run, row.user.as_ref()).map_err(|error| failure::of(&action, error))?;
    fs::metadata(&run.directory)
        .map_err(|error| failure::of(&format!("{action}: directory {}", run.directory), error))?;
    Ok(prepared)
}

fn measured(
    run: &Run,
    prepared: &mut Prepared<'_>,
    place: &Place,
    parent: i32,
    sampler: &mut Option<Sampler>,
    result: &mut StepResult,
) -> Result<(), Failure> {
    let action = action(run);
    let told = |error: io::Error| failure::of(&action, error);
    let (mut stdout, mut stderr) = (Output::new().map_err(told)?, Output::new().map_err(told)?);
    std::thread::sleep(Duration::from_nanos(run.start_offset_ns));
    let tree_before = cpu_time::of_children();
    let started_ns = now_ns();
    let child = prepared
        .start(place, stdout.for_child(), stderr.for_child())
        .map_err(told)?;
    let ours_before = cpu_time::of_ktrial(parent);
    if let Some(sampler) = sampler {
        sampler.program_starts(started_ns);
    }
    let deadline = deadline(started_ns, run);
    let timed_out = wait(&child, &mut stdout, &mut stderr, deadline, sampler).map_err(told)?;
    let (status, mut rusage) = wait4(child.pid).map_err(told)?;
    result.wall_ns = now_ns() - started_ns;
    if let Some(sampler) = sampler {
        sampler.program_ended();
    }
    rusage.insert(
        "ktrial_ns".into(),
        (cpu_time::of_ktrial(parent) - ours_before) as f64,
    );
    result.rusage = rusage;
    result.timed_out = timed_out;
    result.exit = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    result.signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    descendants::end_all(child.pid).map_err(told)?;
    result.rusage.insert(
        "tree_cpu_ns".into(),
        (cpu_time::of_children() - tree_before) as f64,
    );
    stdout.close_for_child();
    stderr.close_for_child();
    take_output(stdout, stderr, &action, result)
}

fn take_output(
    mut stdout: Output,
    mut stderr: Output,
    action: &str,
    result: &mut StepResult,
) -> Result<(), Failure> {
    for output in [&mut stdout, &mut stderr] {
        output.drain().map_err(|error| failure::of(action, error))?;
    }
    let (out, out_cut) = stdout.into_text();
    let (err, err_cut) = stderr.into_text();
    (result.stdout, result.stderr) = (out, err);
    if out_cut || err_cut {
        return Err(failure::plain(format!(
            "{action}: wrote more than {LIMIT} bytes; the rest was left out"
        )));
    }
    Ok(())
}

fn deadline(started_ns: u64, run: &Run) -> Option<u64> {
    (run.limit_ns > 0).then(|| started_ns.saturating_add(run.limit_ns))
}

/// Sleep until the program has ended; kill it at its deadline, or when ktrial is gone. Whether it was late.
fn wait(
    child: &Child,
    stdout: &mut Output,
    stderr: &mut Output,
    deadline: Option<u64>,
    sampler: &mut Option<Sampler>,
) -> io::Result<bool> {
    let mut killed = false;
    let mut late = false;
    let mut resting = false;
    loop {
        let due = sampler.as_ref().and_then(Sampler::next_ns);
        let woken_at = due.map_or(0, |_| own_cpu_ns());
        let limit = deadline.filter(|_| !killed);
        let until = [limit, due].into_iter().flatten().min();
        let seen = look(child, stdout, stderr, until, resting, killed)?;
        if seen.ended {
            return Ok(late);
        }
        if let Some(sampler) = sampler {
            sampler.read_if_due(now_ns(), woken_at);
        }
        late |= !killed && deadline.is_some_and(|deadline| now_ns() >= deadline);
        if !killed && (late || seen.alone) {
            killed = true;
            killpg(child.pid, Signal::SIGKILL)?;
        }
        // Reading once wakes us; then the pipe may fill for a while.
        if resting {
            stdout.drain()?;
            stderr.drain()?;
        }
        resting = seen.written && !resting;
    }
}

struct Seen {
    ended: bool,
    /// ktrial has gone.
    alone: bool,
    written: bool,
}

fn look(
    child: &Child,
    stdout: &Output,
    stderr: &Output,
    deadline: Option<u64>,
    resting: bool,
    killed: bool,
) -> io::Result<Seen> {
    let stdin = io::stdin();
    let mut polled = vec![PollFd::new(child.end.as_fd(), PollFlags::POLLIN)];
    if !killed {
        polled.push(PollFd::new(stdin.as_fd(), PollFlags::empty()));
    }
    let control = polled.len() - 1;
    if !resting {
        let pipes = [stdout.pipe(), stderr.pipe()];
        polled.extend(
            pipes
                .into_iter()
                .flatten()
                .map(|pipe| PollFd::new(pipe, PollFlags::POLLIN)),
        );
    }
    match poll(&mut polled, patience(deadline, resting)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let any = |at: usize| polled[at].any().unwrap_or(true);
    Ok(Seen {
        ended: any(0),
        alone: !killed && any(control),
        written: (control + 1..polled.len()).any(any),
    })
}

/// Milliseconds, rounded up, until there is something to do.
fn patience(deadline: Option<u64>, resting: bool) -> PollTimeout {
    let left = deadline.map(|deadline| deadline.saturating_sub(now_ns()).div_ceil(1_000_000));
    let rest = resting.then_some(u64::from(BETWEEN_READS));
    match [left, rest].into_iter().flatten().min() {
        // Longer than poll can wait: it is asked again then.
        Some(milliseconds) => PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX),
        None => PollTimeout::NONE,
    }
}

/// CLOCK_MONOTONIC through the vDSO, which cannot fail.
fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
    })
}
