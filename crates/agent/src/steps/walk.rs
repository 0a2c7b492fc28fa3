//! All small files below some directories: a kernel's settings, with their values.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use probes::failure;
use wire::steps::{Failure, StepResult, Walk};

const READABLE: u32 = 0o444;
/// Reading these waits for an event, or takes something away: the kernel's log, traces, and the number of wake-ups.
const NEVER_READ: [&str; 6] = [
    "kmsg",
    "trace_pipe",
    "trace_pipe_raw",
    "snapshot_raw",
    "wakeup_count",
    "clear_warn_once",
];

/// Why a file has no value here.
enum LeftOut {
    Answer(Errno),
    Because(&'static str),
}

/// Read what lies below the roots, in the order of the paths, and then once more: what differs is no setting.
pub fn walk(step: &Walk, result: &mut StepResult) -> Result<(), Failure> {
    let mut search = Search {
        step,
        deadline: Instant::now() + Duration::from_nanos(step.limit_ns),
        found: BTreeSet::new(),
    };
    let searched = step
        .roots
        .iter()
        .try_for_each(|root| search.root(root, result));
    let Search {
        deadline, found, ..
    } = search;
    let read = searched.and_then(|()| read_all(step, deadline, &found, result));
    read.map_err(|why| failure::plain(format!("walk: {why}")))
}

fn read_all(
    step: &Walk,
    deadline: Instant,
    found: &BTreeSet<PathBuf>,
    result: &mut StepResult,
) -> Result<(), String> {
    for path in found {
        in_time(step, deadline)?;
        let name = path.to_string_lossy().into_owned();
        match value(path, step.limit_bytes) {
            Ok(text) => result.files.insert(name, text),
            Err(why) => result.left_out.insert(name, word(why)),
        };
    }
    for path in found {
        in_time(step, deadline)?;
        let name = path.to_string_lossy().into_owned();
        let Some(first) = result.files.get(&name) else {
            continue;
        };
        if value(path, step.limit_bytes).ok().as_ref() != Some(first) {
            result.files.remove(&name);
            result.left_out.insert(name, "changing".into());
        }
    }
    Ok(())
}

fn in_time(step: &Walk, deadline: Instant) -> Result<(), String> {
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(format!("stopped after {} nanoseconds", step.limit_ns))
}

struct Search<'a> {
    step: &'a Walk,
    deadline: Instant,
    found: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// Everything below what the root stands for; symbolic links are followed in the root only.
    fn root(&mut self, root: &str, result: &mut StepResult) -> Result<(), String> {
        let places = places(root);
        if places.is_empty() {
            result.left_out.insert(root.into(), "ENOENT".into());
        }
        places
            .iter()
            .try_for_each(|place| self.below(place, result))
    }

    fn below(&mut self, path: &Path, result: &mut StepResult) -> Result<(), String> {
        in_time(self.step, self.deadline)?;
        if self.is_skipped(path) {
            return Ok(());
        }
        match entries(path) {
            Ok(inside) => inside
                .iter()
                .try_for_each(|entry| self.below(entry, result)),
            Err(error) => self.no_directory(path, error, result),
        }
    }

    fn no_directory(
        &mut self,
        path: &Path,
        error: io::Error,
        result: &mut StepResult,
    ) -> Result<(), String> {
        if error.raw_os_error() != Some(libc::ENOTDIR) {
            let why = LeftOut::Answer(errno(&error));
            result
                .left_out
                .insert(path.to_string_lossy().into_owned(), word(why));
        } else if self.found.len() as u64 >= self.step.limit_files {
            return Err(format!("stopped after {} files", self.step.limit_files));
        } else if fs::metadata(path).is_ok_and(|about| about.is_file()) {
            self.found.insert(path.into());
        }
        Ok(())
    }

    fn is_skipped(&self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return false;
        };
        NEVER_READ.contains(&name) || self.step.skip.iter().any(|skipped| skipped == name)
    }
}

/// The paths that a root stands for, sorted; none where nothing is there.
fn places(root: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for component in root.split('/').filter(|component| !component.is_empty()) {
        found = match component {
            "*" => found.iter().flat_map(|place| all_entries(place)).collect(),
            name => found
                .iter()
                .map(|place| place.join(name))
                .filter(|place| place.exists())
                .collect(),
        };
    }
    found
}

/// A directory's entries, sorted, without symbolic links: in /sys they lead round in circles.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_type()?.is_symlink() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The same with symbolic links; none where it cannot be read.
fn all_entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(inside) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = inside.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The text without its last newline. Nothing here waits: what would is answered with EAGAIN.
fn value(path: &Path, limit: u64) -> Result<String, LeftOut> {
    let answer = |error: io::Error| LeftOut::Answer(errno(&error));
    if fs::metadata(path).map_err(answer)?.permissions().mode() & READABLE == 0 {
        return Err(LeftOut::Because("unreadable"));
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)
        .map_err(answer)?;
    let text = head(file, limit).map_err(answer)?;
    text.ok_or(LeftOut::Because("long"))
}

/// The file's text; None where it is longer than the limit.
fn head(file: File, limit: u64) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(
        text.strip_suffix('\n').map(Into::into).unwrap_or(text),
    ))
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn word(why: LeftOut) -> String {
    match why {
        LeftOut::Answer(errno) => format!("{errno:?}"),
        LeftOut::Because(word) => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::perform;
    use std::os::unix::fs::symlink;
    use wire::steps::Step;

    fn settings(name: &str) -> PathBuf {
        let top =
            std::env::temp_dir().join(format!("ktrial-agent-walk-{}-{name}", std::process::id()));
        for (file, text) in [
            ("vm/swappiness", "60\n"),
            ("vm/empty", ""),
            ("kernel/long", "0123456789"),
            ("kernel/uuid", "1\n"),
            ("kernel/kmsg", "never\n"),
        ] {
            let path = top.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(top.join("vm/compact"), "1").unwrap();
        fs::set_permissions(top.join("vm/compact"), fs::Permissions::from_mode(0o200)).unwrap();
        symlink(&top, top.join("vm/round")).unwrap();
        top
    }

    fn a_walk(roots: Vec<String>) -> Walk {
        Walk {
            roots,
            skip: vec!["uuid".into()],
            limit_bytes: 9,
            limit_files: 100,
            limit_ns: 10_000_000_000,
        }
    }

    fn names(top: &Path, of: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
        let top = format!("{}/", top.display());
        of.into_iter()
            .map(|(path, value)| (path.replace(&top, ""), value))
            .collect()
    }

    fn pair(path: &str, value: &str) -> (String, String) {
        (path.into(), value.into())
    }

    #[test]
    fn small_readable_files_are_read_and_the_others_told() {
        let top = settings("all");
        let result = perform(4, Step::Walk(a_walk(vec![top.display().to_string()])));
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(
            (result.step, result.r#do.as_str(), result.failure),
            (4, "walk", None)
        );
        assert_eq!(
            names(&top, result.files),
            [pair("vm/empty", ""), pair("vm/swappiness", "60")]
        );
        assert_eq!(
            names(&top, result.left_out),
            [
                pair("kernel/long", "long"),
                pair("vm/compact", "unreadable")
            ]
        );
    }

    #[test]
    fn a_star_stands_for_every_name_and_what_is_not_there_is_told() {
        let top = settings("star");
        let roots = ["*/swappiness", "*/nothing"].map(|root| format!("{}/{root}", top.display()));
        let result = perform(0, Step::Walk(a_walk(roots.to_vec())));
        fs::remove_dir_all(&top).unwrap();
        // Through the link, too: it is part of the root.
        assert_eq!(names(&top, result.files), [pair("vm/swappiness", "60")]);
        assert_eq!(names(&top, result.left_out), [pair("*/nothing", "ENOENT")]);
    }

    #[test]
    fn what_changes_while_it_is_read_is_no_setting() {
        let roots = vec![
            "/proc/sys/kernel/random/uuid".into(),
            "/proc/sys/kernel/ostype".into(),
        ];
        let result = perform(
            0,
            Step::Walk(Walk {
                skip: vec![],
                limit_bytes: 100,
                ..a_walk(roots)
            }),
        );
        assert_eq!(
            result.left_out.into_iter().collect::<Vec<_>>(),
            [pair("/proc/sys/kernel/random/uuid", "changing")]
        );
        assert_eq!(result.files["/proc/sys/kernel/ostype"], "Linux");
    }

    #[test]
    fn more_files_or_time_than_allowed_are_a_failure() {
        let roots = vec!["/proc/sys/kernel".to_string()];
        let few = Walk {
            limit_files: 3,
            ..a_walk(roots.clone())
        };
        let failure = perform(0, Step::Walk(few)).failure.unwrap();
        assert_eq!(failure.text, "walk: stopped after 3 files");
        let brief = Walk {
            limit_ns: 0,
            ..a_walk(roots)
        };
        let failure = perform(0, Step::Walk(brief)).failure.unwrap();
        assert_eq!(failure.text, "walk: stopped after 0 nanoseconds");
    }
}
