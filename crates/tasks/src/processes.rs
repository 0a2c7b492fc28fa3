//! Processes that work at the same time, and partners of a task.

use std::ptr;

use crate::failure::Failure;

/// Say why, and end this process with all its threads.
pub fn end(failure: &Failure) -> ! {
    eprintln!("tasks: {failure}");
    // SAFETY: no destructors and no exit handlers: what others share stays as it is.
    unsafe { libc::_exit(1) }
}

/// Run `work` in `count` processes and wait for all; each must end well. The first that does not ends the others.
pub fn all(count: usize, work: impl Fn(usize) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut running = Vec::with_capacity(count);
    for index in 0..count {
        running.push(Process::start(|| work(index))?);
    }
    while !running.is_empty() {
        let ended = wait()?;
        let place = running.iter().position(|process| process.pid == ended);
        let place =
            place.ok_or_else(|| Failure::wrong("a process ended that is none of the tasks"))?;
        running.swap_remove(place).forget();
    }
    Ok(())
}

/// A child process. It dies with this one, and is killed when this is dropped.
pub struct Process {
    pid: libc::pid_t,
}

impl Process {
    /// Fork, and run `work` in the child.
    pub fn start(work: impl FnOnce() -> Result<(), Failure>) -> Result<Self, Failure> {
        // SAFETY: no other thread of this process holds a lock that the child needs: where there are other threads,
        // `work` makes system calls alone.
        match unsafe { libc::fork() } {
            -1 => Err(Failure::system("fork")),
            0 => child(work),
            pid => Ok(Self { pid }),
        }
    }

    fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), 0);
        }
    }
}

fn child(work: impl FnOnce() -> Result<(), Failure>) -> ! {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if let Err(failure) = work() {
        end(&failure);
    }
    // SAFETY: `_exit` skips the parent's destructors and buffers.
    unsafe { libc::_exit(0) }
}

/// Wait for any child, which must end well.
fn wait() -> Result<libc::pid_t, Failure> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let ended = unsafe { libc::waitpid(-1, &mut status, 0) };
    match (ended, status) {
        (-1, _) => Err(Failure::system("waitpid")),
        (ended, 0) => Ok(ended),
        (_, status) if libc::WIFSIGNALED(status) => {
            let signal = libc::WTERMSIG(status);
            Err(Failure::wrong(format!(
                "a task was killed by signal {signal}"
            )))
        }
        _ => Err(Failure::wrong("a task failed")),
    }
}
