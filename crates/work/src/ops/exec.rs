//! A child that executes a program.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::ptr;

use crate::arguments::{Arguments, Workload};
use crate::children;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::processes::wait;

pub const WORKLOAD: Workload = Workload {
    name: "exec",
    summary: "a child that executes a static program, its exit, the wait for it",
    does: "One operation forks a child, which executes this program again (static, from the page cache, with \
           an empty environment); that exits at once. Then the parent waits for it. The exit status must be \
           0. Before each there is a pause, untimed, in which the kernel finishes what it put off (in exact \
           mode).",
    system_calls: &["fork", "execve (child)", "exit_group (child)", "wait4"],
    metric: "fork, execve, exit, wait",
    also: &[],
    parameters: &[],
    source: "UnixBench execl; lmbench lat_proc exec",
    operations: 31,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: true,
    run,
};

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::io("/proc/self/exe", &error))?;
    let program = CString::new(program.into_os_string().into_vec()).map_err(|_| Failure::wrong("a NUL in the path"))?;
    let argv = [c"work".as_ptr(), c"--noop".as_ptr(), ptr::null()];
    let environment = [ptr::null()];
    meter.repeat_settled(|| {
        // SAFETY: C strings, and arrays that end with a null pointer; they outlive the loop.
        let child = unsafe { children::executed(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) }?;
        wait(child, 0)
    })
}
