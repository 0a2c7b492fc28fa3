//! File systems that workloads and settings expect.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use probes::failure;
use wire::boot::BootFailure;

const NONE: MsFlags = MsFlags::empty();

/// Type, mount point, options; a parent before what lies in it. debugfs mounts tracefs below itself as well.
const FILE_SYSTEMS: [(&str, &str, &str); 9] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("devpts", "/dev/pts", "ptmxmode=666"),
    ("tmpfs", "/dev/shm", ""),
    ("tmpfs", "/tmp", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
    ("cgroup2", "/sys/fs/cgroup", ""),
];

/// Mount them all. What this kernel does not have is told, and is no reason to stop.
pub fn mount_all() -> Vec<BootFailure> {
    FILE_SYSTEMS
        .into_iter()
        .filter(|(fstype, path, _)| !(*fstype == "tmpfs" && holds_files(path)))
        .filter_map(|(fstype, path, options)| {
            let answer = mount_one(fstype, path, options).err()?;
            let what = format!("mount {path}");
            Some(BootFailure {
                failure: failure::of(&what, answer),
                what,
            })
        })
        .collect()
}

/// Files that a study carries to /tmp lie in the root file system, which is memory as well, and must not be hidden.
fn holds_files(path: &str) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

fn mount_one(fstype: &str, path: &str, options: &str) -> io::Result<()> {
    // Where the kernel lacks the file system it lacks the mount point too, and making one is forbidden in /sys.
    if !is_known(fstype) {
        return Err(Errno::ENODEV.into());
    }
    fs::create_dir_all(path)?;
    Ok(mount(
        Some(fstype),
        path,
        Some(fstype),
        NONE,
        Some(options),
    )?)
}

/// Whether this kernel has the file system. Before /proc is mounted nobody can tell.
fn is_known(fstype: &str) -> bool {
    let listed = |text: String| {
        text.lines()
            .any(|line| line.split('\t').next_back() == Some(fstype))
    };
    fs::read_to_string("/proc/filesystems").map_or(true, listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_known_by_their_whole_name() {
        assert_eq!(["proc", "pro", "nofs"].map(is_known), [true, false, false]);
    }
}
