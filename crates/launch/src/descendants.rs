//! What a program leaves behind: it may leave its process group and its session, but not its ancestors.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{kill, killpg, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getpid, Pid};

/// From now on processes whose parent ends become children of this one (PR_SET_CHILD_SUBREAPER).
pub fn adopt() -> io::Result<()> {
    // SAFETY: a system call without pointers.
    let answer = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    Ok(Errno::result(answer).map(drop)?)
}

/// Kill all that `leader`, which has been waited for, left behind, and wait for it.
pub fn end_all(leader: Pid) -> io::Result<()> {
    match killpg(leader, Signal::SIGKILL) {
        // ESRCH, mostly: the group is empty. EPERM: what is left in it is another user's now, and is met again below.
        Ok(()) | Err(Errno::ESRCH | Errno::EPERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Err(errno) => return Err(errno.into()),
            Ok(WaitStatus::StillAlive) => kill_children()?,
            Ok(_) => {}
        }
    }
}

/// Those of the children become ours when they are dead. One that cannot be killed (a set-user-ID program's) is an error:
/// it would disturb what runs next.
fn kill_children() -> io::Result<()> {
    for child in children()? {
        match kill(child, Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // They die in their own time: wait for one, instead of asking again and again.
    match waitpid(None, None) {
        Ok(_) | Err(Errno::ECHILD) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn children() -> io::Result<Vec<Pid>> {
    let own = getpid().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end while it is looked at.
        let Ok(status) = fs::read_to_string(format!("/proc/{number}/stat")) else {
            continue;
        };
        if parent_in(&status) == Some(own.as_str()) {
            found.push(Pid::from_raw(number));
        }
    }
    Ok(found)
}

/// `123 (a name (with) brackets) S PARENT …`, as proc_pid_stat(5) has it.
fn parent_in(status: &str) -> Option<&str> {
    status.rsplit_once(')')?.1.split_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("12 (a) b) S 77 12 12 0"), Some("77"));
        assert_eq!(parent_in(""), None);
    }
}
