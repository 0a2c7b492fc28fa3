//! Why a workload cannot report a number.

use std::fmt;

/// A workload that failed, or that caught its own work being wrong. Never reported as a result.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// The work itself came out wrong: a short read, a wrong byte, a wrong exit status.
    #[cold]
    pub fn wrong(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A system call failed; the reason is this thread's `errno`.
    #[cold]
    pub fn system(call: &str) -> Self {
        Self(format!("{call}: {}", std::io::Error::last_os_error()))
    }

    /// A step of the standard library's failed.
    #[cold]
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
