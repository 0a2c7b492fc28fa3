//! Kernel files that hold settings: written, and read back.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;

use probes::failure;
use wire::steps::{Failure, Read, StepResult, Write};

const READ_LIMIT: u64 = 1 << 20;
const READABLE: u32 = 0o444;

/// Write the value in one system call, as the kernel wants it, and read it back.
pub fn write(step: &Write, result: &mut StepResult) -> Result<(), Failure> {
    let path = step.path.as_str();
    // What cannot be read before it is written says so when it is read back.
    result.before = value(path).unwrap_or_default();
    let written = failure::told(&format!("write {path}"), put(path, &step.value))?;
    if written < step.value.len() {
        return Err(failure::plain(format!(
            "write {path}: it took {written} of {} bytes",
            step.value.len()
        )));
    }
    result.after = failure::told(&format!("read {path} back"), value(path))?;
    Ok(())
}

fn put(path: &str, value: &str) -> io::Result<usize> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write(value.as_bytes())
}

/// The value without its last newline; empty where nobody may read the file (drop_caches and other triggers).
fn value(path: &str) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & READABLE == 0 {
        return Ok(String::new());
    }
    let (mut text, _) = head(file)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Read a file whole; more than 1 MiB is a failure, with the first MiB in the result.
pub fn read(step: &Read, result: &mut StepResult) -> Result<(), Failure> {
    let action = format!("read {}", step.path);
    let (text, whole) = failure::told(&action, File::open(&step.path).and_then(head))?;
    result.content = text;
    if whole {
        Ok(())
    } else {
        Err(failure::plain(format!(
            "{action}: longer than {READ_LIMIT} bytes; the rest was left out"
        )))
    }
}

/// The first MiB, and whether that is all. What is not UTF-8 is replaced.
fn head(file: File) -> io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    file.take(READ_LIMIT + 1).read_to_end(&mut bytes)?;
    let whole = bytes.len() as u64 <= READ_LIMIT;
    bytes.truncate(READ_LIMIT as usize);
    Ok((String::from_utf8_lossy(&bytes).into_owned(), whole))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::steps::perform;
    use wire::steps::Step;

    fn scratch(name: &str, content: &str) -> String {
        let path = std::env::temp_dir().join(format!("ktrial-agent-{}-{name}", std::process::id()));
        fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    }

    #[test]
    fn a_setting_is_read_before_and_after() {
        let path = scratch("setting", "60\n");
        let result = perform(
            3,
            Step::Write(Write {
                path: path.clone(),
                value: "99\n".into(),
            }),
        );
        fs::remove_file(path).unwrap();
        assert_eq!(
            (result.before.as_str(), result.after.as_str()),
            ("60", "99")
        );
        assert_eq!(
            (result.step, result.r#do.as_str(), result.failure),
            (3, "write", None)
        );
    }

    #[test]
    fn a_setting_that_is_absent_is_not_made() {
        let path = std::env::temp_dir().join("ktrial-agent-absent");
        let step = Write {
            path: path.to_string_lossy().into_owned(),
            value: "1".into(),
        };
        let failure = perform(0, Step::Write(step)).failure.unwrap();
        assert_eq!((failure.name.as_str(), path.exists()), ("ENOENT", false));
    }

    #[test]
    fn a_setting_that_cannot_be_read_back_is_a_failure() {
        let step = Write {
            path: "/proc/self/clear_refs".into(),
            value: "1".into(),
        };
        let result = perform(0, Step::Write(step));
        let failure = result.failure.map(|failure| failure.name);
        // To root, which the agent is, the kernel says that the file has nothing to read.
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        assert_eq!(failure.as_deref(), (!is_root).then_some("EACCES"));
        assert_eq!(result.after, "", "write-only files have no value");
    }

    #[test]
    fn a_long_file_is_cut_and_said_to_be() {
        let path = scratch("long", &"a".repeat(READ_LIMIT as usize + 1));
        let result = perform(0, Step::Read(Read { path: path.clone() }));
        fs::remove_file(path).unwrap();
        assert_eq!(result.content.len(), READ_LIMIT as usize);
        assert!(result
            .failure
            .unwrap()
            .text
            .contains("longer than 1048576 bytes"));
    }
}
