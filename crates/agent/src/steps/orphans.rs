//! Processes whose parent is gone: PID 1 is their parent then, and must wait for them or they stay as zombies.

use std::fs;
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
    spared: Option<Pid>,
}

impl Orphans {
    /// From now on. The session `spared` is left alone.
    pub fn watch(spared: Option<Pid>) -> io::Result<Self> {
        if getpid() != INIT {
            return Ok(Self {
                signal: None,
                spared,
            });
        }
        let child_ended = SigSet::from(Signal::SIGCHLD);
        child_ended.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self {
            signal: Some(SignalFd::with_flags(&child_ended, flags)?),
            spared,
        })
    }

    /// What to poll.
    pub fn signal(&self) -> Option<BorrowedFd<'_>> {
        self.signal.as_ref().map(AsFd::as_fd)
    }

    /// Wait for those that have ended, except for `program`, whose use of resources is asked for later, and for the
    /// one that is spared, whose status is. Either may stand before others, which then wait for `end_all`.
    pub fn reap(&self, program: Pid) -> io::Result<()> {
        if let Some(signal) = &self.signal {
            while signal.read_signal()?.is_some() {}
        }
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::All, peek).map(|status| status.pid()) {
                Ok(Some(pid)) if pid != program && Some(pid) != self.spared => waitpid(pid, None)?,
                Ok(_) | Err(Errno::ECHILD) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            };
        }
    }

    /// Kill all that `program`, which has been waited for, left behind. In a guest that is everybody but PID 1: a
    /// process may leave its group and its session, but not the machine.
    pub fn end_all(&self, program: Pid) -> io::Result<()> {
        if let (Some(_), Some(spared)) = (&self.signal, self.spared) {
            return end_all_but(spared);
        }
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

/// Kill everybody outside the session `spared`, until nobody is left: a child becomes PID 1's when its parent ends.
fn end_all_but(spared: Pid) -> io::Result<()> {
    loop {
        let others = others(spared)?;
        for pid in &others {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        for pid in &others {
            let _ = waitpid(*pid, None);
        }
        if others.is_empty() {
            return Ok(());
        }
    }
}

/// Every process of user space that is neither PID 1 nor in the session.
fn others(spared: Pid) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let pid = Pid::from_raw(pid);
        if pid != INIT && session(pid).is_some_and(|session| session != spared) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// None for one that is gone, and for the kernel's threads, which have no session: proc(5), /proc/PID/stat.
fn session(pid: Pid) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(") ")?;
    let session = after_name.split(' ').nth(3)?.parse().ok()?;
    (session != 0).then(|| Pid::from_raw(session))
}

fn wait_for_one() -> io::Result<bool> {
    match waitpid(None, None) {
        Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => Ok(false),
        Ok(_) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}
