//! Lock and unlock a file of the task's own.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{succeeded, Failure};
use crate::files::{open, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "lock1",
    summary: "lock and unlock a file of the task's own",
    does: "Takes a write lock on the first byte of a file of the task's own by fcntl, and gives it back. \
           Both calls must succeed at once.",
    system_calls: &["fcntl (lock)", "fcntl (unlock)"],
    metric: "lock, unlock",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: EITHER,
    source: "will-it-scale lock1, lock2",
    operations: 800,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    crew.measure(|task| {
        let file = open(&scratch.file("file", task.index, b"content")?, libc::O_RDWR)?;
        Ok(move || {
            set(&file, libc::F_WRLCK)?;
            set(&file, libc::F_UNLCK)
        })
    })?;
    Ok(())
}

#[inline(always)]
fn set(file: &OwnedFd, kind: i32) -> Result<(), Failure> {
    let lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the structure outlives the call.
    succeeded(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) }, "fcntl").map(|_| ())
}
