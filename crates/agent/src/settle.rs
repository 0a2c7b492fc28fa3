//! Let the work that a kernel puts off at boot come to its end, so that it is not counted as a workload's.
//!
//! Measured on 6.12 and later, the first fork, exec and exit after boot cost two to three times what they cost later:
//! first use of code and caches, memory that is set up in the background, work queues that still drain.

use std::ffi::CStr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// The agent's file, whatever its name in the initial RAM disk.
const SELF: &str = "/proc/self/exe";
/// As its own name, it tells the agent to end at once.
const NOTHING: &CStr = c"ktrial-nothing";
const WARM_UP_PASSES: usize = 32;

/// Whether this process was started to do nothing ([`nothing`]).
pub fn is_asked_for_nothing(argc: libc::c_int, argv: *const *const libc::c_char) -> bool {
    // SAFETY: with argc > 0, argv[0] is a string of C that lives as long as the process.
    argc > 0 && unsafe { CStr::from_ptr(*argv) } == NOTHING
}

/// A program that ends at once: an exec to warm up with, and to use up random numbers.
pub fn nothing() -> Command {
    let mut command = Command::new(SELF);
    command.arg0(NOTHING.to_string_lossy().as_ref()).env_clear();
    command
}

/// Warm up, and wait `settle_ns` guest nanoseconds.
pub fn settle(settle_ns: u64) -> Result<(), String> {
    for _ in 0..WARM_UP_PASSES {
        nothing()
            .status()
            .map_err(|error| format!("cannot start a program: {error}"))?;
    }
    std::thread::sleep(Duration::from_nanos(settle_ns));
    Ok(())
}
