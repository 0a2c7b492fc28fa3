//! A fixed address-space layout and an empty environment, for the workloads whose work depends on them.
//!
//! Fork copies page tables and mappings, and how many there are depends on where the kernel happened to put stack, heap
//! and libraries, and on how many pages the environment fills: up to 4 % of an operation. Such a workload's layout is
//! a part of the workload, so it is the same in every run.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt;
use std::ptr;

use crate::failure::Failure;

/// `personality` with this asks for the persona in force.
const ASK: libc::c_ulong = 0xffff_ffff;

/// Execute this program again with the arguments that it has, unless it is in the clean room already. Where the
/// system forbids a fixed layout (a container's seccomp filter), the environment alone is emptied.
pub fn enter(arguments: &[&CStr]) -> Result<(), Failure> {
    let from_next_exec = fix_layout();
    if from_next_exec || std::env::vars_os().next().is_some() {
        return again(arguments);
    }
    Ok(())
}

/// Whether the layout changes with the next execve.
fn fix_layout() -> bool {
    // SAFETY: a system call without pointers.
    let current = unsafe { libc::personality(ASK) };
    if current >= 0 && current & libc::ADDR_NO_RANDOMIZE != 0 {
        return false;
    }
    let wanted = current as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: a system call without pointers; it takes effect at the next execve.
    unsafe { libc::personality(wanted) != -1 }
}

fn again(arguments: &[&CStr]) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::io("/proc/self/exe", &error))?;
    let program = CString::new(program.into_os_string().into_vec())
        .map_err(|_| Failure::wrong("a NUL in the path"))?;
    let argv: Vec<_> = arguments
        .iter()
        .map(|argument| argument.as_ptr())
        .chain([ptr::null()])
        .collect();
    // SAFETY: C strings, and arrays that end with a null pointer.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), [ptr::null()].as_ptr()) };
    Err(Failure::system("execve of /proc/self/exe"))
}
