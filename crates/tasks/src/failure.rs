//! Why there is no number: a call that failed, or work that came out wrong.

use std::fmt;

/// A task that cannot go on. Never reported as a result.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// The work itself came out wrong.
    #[cold]
    pub fn wrong(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A system call failed, and left its reason in `errno`.
    #[cold]
    pub fn system(call: &str) -> Self {
        Self(format!("{call}: {}", std::io::Error::last_os_error()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The answer of a system call that is negative where it failed.
#[inline(always)]
pub fn succeeded<T: PartialOrd + Default>(answer: T, call: &str) -> Result<T, Failure> {
    if answer >= T::default() {
        return Ok(answer);
    }
    Err(Failure::system(call))
}

/// An error where what was done has not the result that it must have.
#[inline(always)]
pub fn must(holds: bool, otherwise: &str) -> Result<(), Failure> {
    if holds {
        return Ok(());
    }
    Err(Failure::wrong(otherwise))
}
