//! How a program starts: in a child that first sleeps, so that the agent has nothing left to do once it goes.
//!
//! A child that starts at once shares the CPU with what the agent still does about it, which then stands in the
//! program's own marked region, at a place that hangs on the scheduler (6.12 lets the child go first, 6.1 does not).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::unistd::{fork, pipe2, ForkResult, Pid};
use wire::marks;

use super::capture::Capture;
use super::clock::now_ns;

/// A hundred times what the agent needs until it sleeps; no CPU runs meanwhile, so that it costs nothing.
const UNTIL_THE_AGENT_SLEEPS: Duration = Duration::from_millis(1);
const NOT_STARTED: libc::c_int = 127;
const TIME_BYTES: usize = size_of::<u64>();

/// A program on its way, and the ends of its pipes.
#[derive(Debug)]
pub struct Departed {
    /// Of the program, its group and its session.
    pub pid: Pid,
    /// What it writes to its standard output.
    pub stdout: Capture,
    /// What it writes to its standard error.
    pub stderr: Capture,
    /// What its child tells before it is the program. Nobody waits for it: that would wake the agent.
    pub note: Note,
}

/// When a child started its program, and why it could not.
#[derive(Debug)]
pub struct Note(File);

impl Note {
    /// The time by the monotonic clock; None where the child was killed before. The child has ended already.
    pub fn started_ns(mut self) -> io::Result<Option<u64>> {
        let mut told = Vec::new();
        self.0.read_to_end(&mut told)?;
        let Some((time, refusal)) = told.split_first_chunk::<TIME_BYTES>() else {
            return Ok(None);
        };
        match refused(refusal) {
            Some(error) => Err(error),
            None => Ok(Some(u64::from_le_bytes(*time))),
        }
    }
}

/// Fork. One region and one operation go from just before the program's exec to after the wait for it; where it marks
/// regions of its own, these count instead.
pub fn depart(mut command: Command) -> io::Result<Departed> {
    let (note, told) = pipe2(OFlag::O_CLOEXEC)?;
    let (stdout, output) = pipe2(OFlag::O_CLOEXEC)?;
    let (stderr, errors) = pipe2(OFlag::O_CLOEXEC)?;
    // SAFETY: the agent has one thread, so that the child may do whatever its parent may.
    let pid = match unsafe { fork() }? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            command
                .stdout(Stdio::from(output))
                .stderr(Stdio::from(errors));
            go(command, File::from(told))
        }
    };
    Ok(Departed {
        pid,
        stdout: Capture::of(stdout),
        stderr: Capture::of(stderr),
        note: Note(File::from(note)),
    })
}

/// The child's way. What it cannot tell its parent, nobody can be told.
fn go(mut command: Command, mut note: File) -> ! {
    std::thread::sleep(UNTIL_THE_AGENT_SLEEPS);
    let _ = note.write_all(&now_ns().unwrap_or(0).to_le_bytes());
    marks::run_begin();
    let error = command.exec();
    let _ = note.write_all(&error.raw_os_error().unwrap_or(0).to_le_bytes());
    let _ = note.write_all(error.to_string().as_bytes());
    // SAFETY: ends this process, which has nothing to clean up.
    unsafe { libc::_exit(NOT_STARTED) }
}

fn refused(refusal: &[u8]) -> Option<io::Error> {
    let (errno, text) = refusal.split_first_chunk()?;
    Some(match i32::from_le_bytes(*errno) {
        0 => io::Error::other(String::from_utf8_lossy(text).into_owned()),
        errno => io::Error::from_raw_os_error(errno),
    })
}
