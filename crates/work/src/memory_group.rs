//! Less memory than the files need: a control group (version 2) of the workload's own, with the page cache of its files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::workload::{number, Parameter};

/// The parameter of the workloads that can be run with and without memory pressure.
pub const MEMORY: Parameter = number(
    "memory",
    "MiB for the workload and the page cache of its files, in a control group of its own; 0: no limit",
    0,
    0,
    1_048_576,
);

const ROOT: &str = "/sys/fs/cgroup";
/// The one who writes it.
const MYSELF: &str = "0";

/// The group that this process is in for as long as the value lives.
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Enter a group with the limit that the parameter `memory` says; none is made for 0.
    pub fn enter(arguments: &Arguments) -> Result<Option<Self>, Failure> {
        match arguments.size(MEMORY.name) {
            0 => Ok(None),
            limit => Self::limited(limit).map(Some),
        }
    }

    fn limited(mib: usize) -> Result<Self, Failure> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = unified(&groups).unwrap_or("none");
        if own != "/" {
            return Err(Failure::wrong(format!(
                "--memory {mib}: a group can be made in a guest without [machine.cgroup] only, and this program is in \
                 the group {own}; limit that one"
            )));
        }
        let root = Path::new(ROOT);
        let place = root.join(format!("ktrial-work-{:010}", std::process::id()));
        write(&root.join("cgroup.subtree_control"), "+memory")?;
        fs::create_dir(&place)
            .map_err(|error| Failure::io(&place.display().to_string(), &error))?;
        let group = Self(place);
        write(&group.0.join("memory.max"), &(mib << 20).to_string())?;
        write(&group.0.join("cgroup.procs"), MYSELF)?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group that cannot be removed now is in the way of nobody: its name is this process's own.
        let _ = write(&Path::new(ROOT).join("cgroup.procs"), MYSELF);
        let _ = fs::remove_dir(&self.0);
    }
}

/// The group of version 2 in a process's `cgroup` file (cgroups(7)).
fn unified(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::io(&path.display().to_string(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_that_of_version_2() {
        assert_eq!(
            unified("12:cpu:/old\n0::/user.slice\n"),
            Some("/user.slice")
        );
        assert_eq!(unified("0::/\n"), Some("/"));
        assert_eq!(unified("1:cpu:/\n"), None);
    }
}
