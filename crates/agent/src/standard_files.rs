//! Standard input, output and error: a kernel without a console starts /init without them.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, IntoRawFd};

/// Open /dev/null for those of the three that are not open, so that no other file ever gets their numbers.
pub fn ensure() {
    while let Ok(file) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        if file.as_raw_fd() > libc::STDERR_FILENO {
            break;
        }
        // Kept open for good: the lowest free number is what it was given.
        let _ = file.into_raw_fd();
    }
}
