//! Files that go into the guest and come out of it.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderStringWriter;
use base64::Engine;
use probes::failure;
use wire::steps::{Collect, Failure, Push, StepResult};

const COLLECT_LIMIT: u64 = 64 << 20;

/// Write the file, and make the directories above it.
pub fn push(step: &Push) -> io::Result<()> {
    let content = STANDARD.decode(&step.base64).map_err(io::Error::other)?;
    let path = Path::new(&step.path);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(step.mode))
}

/// Bring the file into the result, encoded as it is read: in memory it is there once.
pub fn collect(step: &Collect, result: &mut StepResult) -> Result<(), Failure> {
    let action = format!("collect {}", step.path);
    let file = failure::told(&action, File::open(&step.path))?;
    let mut encoder = EncoderStringWriter::new(&STANDARD);
    let size = failure::told(
        &action,
        io::copy(&mut file.take(COLLECT_LIMIT + 1), &mut encoder),
    )?;
    if size > COLLECT_LIMIT {
        return Err(failure::plain(format!(
            "{action}: longer than {COLLECT_LIMIT} bytes"
        )));
    }
    result.content = encoder.into_inner();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::perform;
    use wire::steps::Step;

    #[test]
    fn a_file_that_is_pushed_is_collected_unchanged() {
        let directory =
            std::env::temp_dir().join(format!("ktrial-agent-push-{}", std::process::id()));
        let path = directory.join("deep/file").to_string_lossy().into_owned();
        let base64 = STANDARD.encode([0, 255, 10, 13, 128]);
        let push = Push {
            path: path.clone(),
            base64: base64.clone(),
            mode: 0o750,
        };
        assert_eq!(perform(0, Step::Push(push)).failure, None);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        let collected = perform(1, Step::Collect(Collect { path }));
        fs::remove_dir_all(directory).unwrap();
        assert_eq!((mode, collected.content), (0o750, base64));
    }

    #[test]
    fn what_is_not_base64_is_a_failure_and_no_file() {
        let path = std::env::temp_dir().join("ktrial-agent-not-base64");
        let push = Push {
            path: path.to_string_lossy().into_owned(),
            base64: "?".into(),
            mode: 0o644,
        };
        assert!(perform(0, Step::Push(push)).failure.is_some());
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_cannot_be_collected() {
        let failure = perform(0, Step::Collect(Collect { path: "/".into() }))
            .failure
            .unwrap();
        assert_eq!(failure.name, "EISDIR");
    }
}
