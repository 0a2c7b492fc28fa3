//! A child by clone3, held by a process file descriptor.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::arguments::{Arguments, Workload};
use crate::children::{self, STATUS};
use crate::failure::Failure;
use crate::meter::Meter;

pub const WORKLOAD: Workload = Workload {
    name: "clone3",
    summary: "a child by clone3 with a pidfd, its exit, the wait on the pidfd",
    does: "One operation makes a child with clone3 and CLONE_PIDFD, which exits at once with status 42 and \
           touches no memory, waits for it through the pidfd, and closes that. The status must be that one. \
           Three in a row are timed together, after a pause in which the kernel finishes what it put off (in \
           exact mode); the time is that of one.",
    system_calls: &["clone3", "exit_group (child)", "waitid", "close"],
    metric: "clone3, exit, wait",
    also: &[],
    parameters: &[],
    source: "what service managers do since Linux 5.4",
    operations: 31,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: true,
    run,
};

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: an all-zero clone_args asks for nothing.
    let mut asked: libc::clone_args = unsafe { std::mem::zeroed() };
    asked.flags = libc::CLONE_PIDFD as u64;
    asked.pidfd = &raw mut pidfd as u64;
    asked.exit_signal = libc::SIGCHLD as u64;
    let asked = &raw const asked as usize;
    children::measure(meter, || {
        let pid = children::born(libc::SYS_clone3, asked, size_of::<libc::clone_args>())?;
        // SAFETY: the kernel has written the new descriptor, which nobody else owns.
        let held = unsafe { OwnedFd::from_raw_fd((&raw const pidfd).read_volatile()) };
        wait_on(&held, pid)
    })
}

#[inline(always)]
fn wait_on(held: &OwnedFd, pid: libc::pid_t) -> Result<(), Failure> {
    // SAFETY: an all-zero siginfo_t is valid, and outlives the call.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let answer = unsafe { libc::waitid(libc::P_PIDFD, held.as_raw_fd() as libc::id_t, &mut told, libc::WEXITED) };
    if answer != 0 {
        return Err(Failure::system("waitid"));
    }
    // SAFETY: after a successful waitid these fields are the ones that are set.
    let (ended, status) = unsafe { (told.si_pid(), told.si_status()) };
    match ended == pid && told.si_code == libc::CLD_EXITED && status == STATUS {
        true => Ok(()),
        false => Err(Failure::wrong(format!("child {pid}: waitid tells of {ended} and status {status}"))),
    }
}
