//! Lock and unlock one file, for reading.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{succeeded, Failure};
use crate::files::{open, Scratch};
use crate::workload::{DIRECTORY, EITHER};

pub const WORKLOAD: Workload = Workload {
    name: "lock2",
    summary: "lock and unlock one file, for reading",
    does: "Takes a read lock on the first byte of one file by fcntl, which all tasks may hold at once, and \
           gives it back. Both calls must succeed at once.",
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
    let path = scratch.file("file", 0, b"content")?;
    crew.measure(|_| {
        let file = open(&path, libc::O_RDWR)?;
        Ok(move || {
            set(&file, libc::F_RDLCK)?;
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
