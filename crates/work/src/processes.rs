//! Children: partners that answer, and children that exit at once.

use std::ptr;

use crate::failure::Failure;

/// A forked process that works with this one. It dies with it, and is killed when the partner is dropped.
pub struct Partner {
    pid: libc::pid_t,
}

impl Partner {
    /// Fork, and run `work` in the child.
    pub fn start(work: impl FnOnce() -> Result<(), Failure>) -> Result<Self, Failure> {
        fork_worker(work).map(|pid| Self { pid })
    }

    /// Wait for its end, which must be a success.
    pub fn finish(self) -> Result<(), Failure> {
        let pid = self.pid;
        std::mem::forget(self);
        wait(pid, 0)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), 0);
        }
    }
}

/// Fork, and run `work` in the child; the caller waits for it. The child dies with this process.
pub fn fork_worker(work: impl FnOnce() -> Result<(), Failure>) -> Result<libc::pid_t, Failure> {
    // SAFETY: this process has one thread whenever it forks workers, so that the child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::system("fork")),
        0 => child(work),
        pid => Ok(pid),
    }
}

/// Wait for any child to end, which must be a success.
pub fn reap_any() -> Result<libc::pid_t, Failure> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(-1, &mut status, 0) } {
        pid if pid > 0 && status == 0 => Ok(pid),
        pid => Err(wrong_end(pid, status, 0)),
    }
}

fn child(work: impl FnOnce() -> Result<(), Failure>) -> ! {
    // SAFETY: plain system calls; `_exit` skips the parent's destructors and buffers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let status = match work() {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("work: partner: {failure}");
            1
        }
    };
    // SAFETY: as above.
    unsafe { libc::_exit(status) }
}

/// Wait for a child, which must exit with `expected`.
#[inline(always)]
pub fn wait(pid: libc::pid_t, expected: i32) -> Result<(), Failure> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let ended = unsafe { libc::waitpid(pid, &mut status, 0) };
    if ended == pid && status == expected << 8 {
        return Ok(());
    }
    Err(wrong_end(ended, status, expected))
}

#[cold]
fn wrong_end(ended: libc::pid_t, status: i32, expected: i32) -> Failure {
    match ended {
        -1 => Failure::system("waitpid"),
        _ if libc::WIFSIGNALED(status) => Failure::wrong(format!(
            "a child was killed by signal {}",
            libc::WTERMSIG(status)
        )),
        _ => Failure::wrong(format!(
            "a child exited with {}, not {expected}",
            libc::WEXITSTATUS(status)
        )),
    }
}

/// From now on a process or thread of ours that is woken does not preempt the one that runs (SCHED_BATCH).
///
/// By the default policy it does or does not by some nanoseconds of virtual run time, and keeps to that for thousands
/// of round trips: the same operation then costs 20 % more or less.
pub fn never_preempt_on_waking() -> Result<(), Failure> {
    // SAFETY: the parameter outlives the call; all zero is what this policy takes.
    let answer = unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameter)
    };
    match answer {
        0 => Ok(()),
        _ => Err(Failure::system("sched_setscheduler")),
    }
}

/// Hold this process and its children on the first CPU that it may use.
pub fn pin() -> Result<(), Failure> {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: an all-zero set is valid; the calls stay within its size; the CPU numbers are below CPU_SETSIZE.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size, &mut allowed) != 0 {
            return Err(Failure::system("sched_getaffinity"));
        }
        let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first.unwrap_or(0), &mut one);
        match libc::sched_setaffinity(0, size, &one) {
            0 => Ok(()),
            _ => Err(Failure::system("sched_setaffinity")),
        }
    }
}
