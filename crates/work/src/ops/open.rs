//! Opening a file.

use std::os::fd::AsRawFd;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::{descriptor, Scratch};
use crate::meter::Meter;
use crate::workload::{DIRECTORY};

pub const WORKLOAD: Workload = Workload {
    name: "open",
    summary: "open a file and close it",
    does: "One operation opens a file for reading by its absolute path, and closes it. The path's directories are in \
           the kernel's cache. Both calls must succeed, with the same descriptor each time.",
    system_calls: &["open", "close"],
    metric: "open, close",
    also: &[],
    parameters: &[DIRECTORY],
    source: "lmbench lat_syscall open",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let path = scratch.file("file", b"content")?;
    // SAFETY: a C string that outlives the call.
    let open = || unsafe { libc::syscall(libc::SYS_open, path.as_ptr(), libc::O_RDONLY) } as i32;
    let expected = descriptor(open(), "open")?.as_raw_fd();
    meter.repeat(|| {
        let file = open();
        if file != expected {
            return Err(wrong_descriptor(file, expected));
        }
        // SAFETY: the descriptor just opened, used no more.
        match unsafe { libc::close(file) } {
            0 => Ok(()),
            _ => Err(Failure::system("close")),
        }
    })
}

#[cold]
fn wrong_descriptor(file: i32, expected: i32) -> Failure {
    match file {
        -1 => Failure::system("open"),
        _ => Failure::wrong(format!("open gave descriptor {file}, not {expected}")),
    }
}
