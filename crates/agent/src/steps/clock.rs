//! The clock that runs are timed by.

use std::io;

use nix::time::{clock_gettime, ClockId};

/// By the monotonic clock.
pub fn now_ns() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
