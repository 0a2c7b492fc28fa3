//! One program from fork to wait, with its output, its limit and its use of resources.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::signal::{kill, killpg, SigSet, Signal};
use nix::sys::time::TimeSpec;
use nix::unistd::{setsid, Pid};
use probes::rusage::wait4;
use probes::sampler::{own_cpu_ns, Sampler};
use wire::marks;
use wire::steps::Run;

use super::capture::Capture;
use super::clock::now_ns;
use super::departure::{depart, Departed, Note};
use super::layout;
use super::orphans::Orphans;
use crate::ports;

/// A program that runs, in a session and a process group of its own.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    end: OwnedFd,
    started_ns: u64,
    orphans: Orphans,
    stdout: Capture,
    stderr: Capture,
    note: Option<Note>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// As waitpid gives it.
    pub status: libc::c_int,
    /// It was killed at its limit.
    pub timed_out: bool,
    /// From just before its exec to after the wait.
    pub wall_ns: u64,
    /// Of the program and the children it waited for.
    pub rusage: BTreeMap<String, f64>,
}

impl Process {
    /// Start it. The session `spared` outlives it.
    pub fn start(step: &Run, spared: Option<Pid>) -> io::Result<Self> {
        let mut command = command(&step.argv, &step.environment, &step.directory)?;
        let random_layout = step.layout_seed != 0;
        // SAFETY: the agent has one thread, so that the child may do between fork and exec whatever its parent may.
        unsafe { command.pre_exec(move || become_ordinary(random_layout)) };
        let orphans = Orphans::watch(spared)?;
        let started_ns = now_ns()?;
        let Departed {
            pid,
            stdout,
            stderr,
            note,
        } = depart(command)?;
        Ok(Self {
            pid,
            end: pidfd(pid)?,
            started_ns,
            orphans,
            stdout,
            stderr,
            note: Some(note),
        })
    }

    /// Wait for its end; after `limit_ns` (0: never) kill it with its process group. Meanwhile read what is due.
    pub fn wait(&mut self, limit_ns: u64, sampler: &mut Option<Sampler>) -> io::Result<Ended> {
        let mut timed_out = false;
        if let Some(sampler) = sampler {
            sampler.program_starts(self.started_ns);
        }
        while !self.has_ended(limit_ns, timed_out, sampler)? {
            if !timed_out && limit_ns > 0 && now_ns()? >= self.started_ns.saturating_add(limit_ns) {
                timed_out = true;
                // Before its exec it has no group of its own.
                killpg(self.pid, Signal::SIGKILL).or_else(|_| kill(self.pid, Signal::SIGKILL))?;
            }
        }
        if let Some(sampler) = sampler {
            sampler.program_ended();
        }
        let (status, rusage) = wait4(self.pid)?;
        marks::run_end();
        let ended_ns = now_ns()?;
        let started_ns = self
            .note
            .take()
            .map(Note::started_ns)
            .transpose()?
            .flatten();
        Ok(Ended {
            status,
            timed_out,
            wall_ns: ended_ns - started_ns.unwrap_or(self.started_ns),
            rusage,
        })
    }

    /// End what it left behind, and take what is left of its output: (stdout, stderr), and whether output was dropped.
    pub fn clean_up(mut self) -> io::Result<((String, String), bool)> {
        self.orphans.end_all(self.pid)?;
        self.stdout.read_rest()?;
        self.stderr.read_rest()?;
        let (stdout, stdout_cut) = self.stdout.into_text();
        let (stderr, stderr_cut) = self.stderr.into_text();
        Ok(((stdout, stderr), stdout_cut || stderr_cut))
    }

    /// Sleep until something happens, and deal with it, unless it is the program's end.
    fn has_ended(
        &mut self,
        limit_ns: u64,
        timed_out: bool,
        sampler: &mut Option<Sampler>,
    ) -> io::Result<bool> {
        let due = sampler.as_ref().and_then(Sampler::next_ns);
        let woken_at = due.map_or(0, |_| own_cpu_ns());
        let end = self.started_ns.saturating_add(limit_ns);
        let limit = (limit_ns > 0 && !timed_out).then_some(end);
        let readable = self.poll([limit, due].into_iter().flatten().min())?;
        if let (Some(sampler), false) = (sampler, readable.end) {
            sampler.read_if_due(now_ns()?, woken_at);
        }
        if readable.stdout {
            self.stdout.read_some()?;
        }
        if readable.stderr {
            self.stderr.read_some()?;
        }
        if readable.orphans {
            self.orphans.reap(self.pid)?;
        }
        Ok(readable.end)
    }

    fn poll(&self, until_ns: Option<u64>) -> io::Result<Readable> {
        let sources = [
            Some(self.end.as_fd()),
            self.stdout.pipe(),
            self.stderr.pipe(),
            self.orphans.signal(),
        ];
        let mut polled: Vec<PollFd<'_>> = sources
            .iter()
            .flatten()
            .map(|source| PollFd::new(*source, PollFlags::POLLIN))
            .collect();
        let left = match until_ns {
            None => None,
            Some(until) => Some(time_spec(until.saturating_sub(now_ns()?))),
        };
        ppoll(&mut polled, left, None)?;
        let mut ready = polled.iter().map(|source| source.any().unwrap_or(true));
        let mut is_ready = |source: Option<_>| source.is_some() && ready.next().unwrap_or(false);
        let [end, stdout, stderr, orphans] = sources.map(&mut is_ready);
        Ok(Readable {
            end,
            stdout,
            stderr,
            orphans,
        })
    }
}

struct Readable {
    end: bool,
    stdout: bool,
    stderr: bool,
    orphans: bool,
}

/// A program with exactly this environment, and nothing to read.
pub fn command(
    argv: &[String],
    environment: &BTreeMap<String, String>,
    directory: &str,
) -> io::Result<Command> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::other("its argv is empty"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir(directory)
        .stdin(Stdio::null());
    Ok(command)
}

/// In the child: not the agent's ports, signal mask, protection from the OOM killer, session and layout.
pub fn become_ordinary(random_layout: bool) -> io::Result<()> {
    ports::give_up();
    setsid()?;
    SigSet::empty().thread_set_mask()?;
    take_back_protection()?;
    layout::in_child(random_layout)
}

/// Only what the agent gave itself: without privilege (in unit tests) the score cannot be lowered.
fn take_back_protection() -> io::Result<()> {
    let path = "/proc/self/oom_score_adj";
    if fs::read_to_string(path)?.starts_with('-') {
        fs::write(path, "0")?;
    }
    Ok(())
}

fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers, and answers with a new file descriptor that nobody else owns.
    unsafe {
        let answer = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        Ok(OwnedFd::from_raw_fd(Errno::result(answer)? as i32))
    }
}

fn time_spec(nanoseconds: u64) -> TimeSpec {
    TimeSpec::new(
        (nanoseconds / 1_000_000_000) as i64,
        (nanoseconds % 1_000_000_000) as i64,
    )
}
