//! A file's attributes.

use std::mem::MaybeUninit;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::Scratch;
use crate::meter::Meter;
use crate::workload::{DIRECTORY};

pub const WORKLOAD: Workload = Workload {
    name: "stat",
    summary: "a file's attributes, by its path",
    does: "One operation calls stat on an absolute path whose directories are in the kernel's cache. The size in the \
           answer must be the file's.",
    system_calls: &["stat"],
    metric: "stat",
    also: &[],
    parameters: &[DIRECTORY],
    source: "lmbench lat_syscall stat",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

const CONTENT: &[u8] = b"content";

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let path = scratch.file("file", CONTENT)?;
    let mut attributes = MaybeUninit::<libc::stat>::zeroed();
    meter.repeat(|| {
        // SAFETY: a C string and a structure that outlive the call; it is the kernel's own on x86-64.
        let answer = unsafe { libc::syscall(libc::SYS_stat, path.as_ptr(), attributes.as_mut_ptr()) };
        // SAFETY: zeroed at the start, and filled in by the kernel.
        let size = unsafe { (&raw const (*attributes.as_ptr()).st_size).read_volatile() };
        match answer {
            0 if size == CONTENT.len() as i64 => Ok(()),
            0 => Err(Failure::wrong(format!("stat tells a size of {size}"))),
            _ => Err(Failure::system("stat")),
        }
    })
}
