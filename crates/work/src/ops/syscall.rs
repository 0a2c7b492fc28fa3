//! The null system call.

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::meter::Meter;

pub const WORKLOAD: Workload = Workload {
    name: "syscall",
    summary: "the null system call",
    does: "One operation enters the kernel and comes back: getppid, called directly. Its answer must be the parent's \
           process number each time.",
    system_calls: &["getppid"],
    metric: "call",
    also: &[],
    parameters: &[],
    source: "lmbench lat_syscall null; UnixBench syscall",
    operations: 501,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let parent = i64::from(std::os::unix::process::parent_id());
    meter.repeat(|| {
        // SAFETY: getppid takes no arguments and cannot fail.
        match unsafe { libc::syscall(libc::SYS_getppid) } == parent {
            true => Ok(()),
            false => Err(Failure::wrong("getppid names another parent")),
        }
    })
}
