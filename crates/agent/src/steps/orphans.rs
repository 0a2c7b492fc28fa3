//! Processes whose parent is gone: PID 1 is their parent then, and must wait for them or they stay as zombies.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::{kill, killpg, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitid, waitpid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::{getpid, Pid};

const INIT: Pid = Pid::from_raw(1);
const EVERYBODY_ELSE: Pid = Pid::from_raw(-1);

/// Tells when a child has ended. Outside a guest (in unit tests) it leaves everybody else's children alone.
#[derive(Debug)]
pub struct Orphans {
    signal: Option<SignalFd>,
}

impl Orphans {
    /// From now on.
    pub fn watch() -> io::Result<Self> {
        if getpid() != INIT {
            return Ok(Self { signal: None });
        }
        let child_ended = SigSet::from(Signal::SIGCHLD);
        child_ended.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self {
            signal: Some(SignalFd::with_flags(&child_ended, flags)?),
        })
    }

    /// What to poll.
    pub fn signal(&self) -> Option<BorrowedFd<'_>> {
        self.signal.as_ref().map(AsFd::as_fd)
    }

    /// Wait for those that have ended, except for `program`, whose use of resources is asked for later.
    pub fn reap(&self, program: Pid) -> io::Result<()> {
        if let Some(signal) = &self.signal {
            while signal.read_signal()?.is_some() {}
        }
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::All, peek).map(|status| status.pid()) {
                Ok(Some(pid)) if pid != program => waitpid(pid, None)?,
                Ok(_) | Err(Errno::ECHILD) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            };
        }
    }

    /// Kill all that `program`, which has been waited for, left behind. In a guest that is everybody but PID 1: a
    /// process may leave its group and its session, but not the machine.
    pub fn end_all(&self, program: Pid) -> io::Result<()> {
        let killed = match self.signal {
            Some(_) => kill(EVERYBODY_ELSE, Signal::SIGKILL),
            None => killpg(program, Signal::SIGKILL),
        };
        match killed {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
        while self.signal.is_some() && wait_for_one()? {}
        Ok(())
    }
}

fn wait_for_one() -> io::Result<bool> {
    match waitpid(None, None) {
        Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => Ok(false),
        Ok(_) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}
