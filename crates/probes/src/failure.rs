//! From what the kernel answered to what the host is told.

use std::io;

use nix::errno::Errno;
use wire::steps::Failure;

/// The failure of `action` (`write /proc/sys/vm/swappiness`) with the kernel's answer.
pub fn of(action: &str, answer: impl Into<io::Error>) -> Failure {
    let answer = answer.into();
    match answer.raw_os_error().map(Errno::from_raw) {
        Some(errno) => Failure {
            errno: errno as i32,
            name: format!("{errno:?}"),
            text: format!("{action}: {}", errno.desc()),
        },
        None => plain(format!("{action}: {answer}")),
    }
}

/// What `action` gave, or the failure that the kernel's answer is.
pub fn told<T>(action: &str, answer: io::Result<T>) -> Result<T, Failure> {
    answer.map_err(|error| of(action, error))
}

/// A failure that is no answer of the kernel's.
pub fn plain(text: impl Into<String>) -> Failure {
    Failure {
        text: text.into(),
        ..Failure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_errno_and_what_was_tried() {
        let failure = of("write /proc/sys/vm/swappiness", Errno::EINVAL);
        assert_eq!((failure.errno, failure.name.as_str()), (22, "EINVAL"));
        assert_eq!(
            failure.text,
            "write /proc/sys/vm/swappiness: Invalid argument"
        );
    }

    #[test]
    fn an_error_without_an_errno_has_its_text_only() {
        let failure = of("push /a", io::Error::other("not base64"));
        assert_eq!(failure, plain("push /a: not base64"));
    }
}
