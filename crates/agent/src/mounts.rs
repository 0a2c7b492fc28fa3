//! File systems that workloads and settings expect.

use std::fs;
use std::io;

use nix::mount::{mount, MsFlags};
use wire::boot::BootFailure;

use crate::failure;

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

fn mount_one(fstype: &str, path: &str, options: &str) -> io::Result<()> {
    fs::create_dir_all(path)?;
    // A kernel with CONFIG_DEVTMPFS_MOUNT does not mount /dev itself where there is an initial RAM disk.
    Ok(mount(
        Some(fstype),
        path,
        Some(fstype),
        NONE,
        Some(options),
    )?)
}
