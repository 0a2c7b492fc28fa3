//! Mounting: `mount -o`'s words are flags for the kernel, or go on to the file system.

use std::fs;
use std::io;

use nix::mount::MsFlags;
use wire::steps::Mount;

const FLAGS: [(&str, MsFlags); 12] = [
    ("ro", MsFlags::MS_RDONLY),
    ("nosuid", MsFlags::MS_NOSUID),
    ("nodev", MsFlags::MS_NODEV),
    ("noexec", MsFlags::MS_NOEXEC),
    ("sync", MsFlags::MS_SYNCHRONOUS),
    ("dirsync", MsFlags::MS_DIRSYNC),
    ("remount", MsFlags::MS_REMOUNT),
    ("bind", MsFlags::MS_BIND),
    ("noatime", MsFlags::MS_NOATIME),
    ("nodiratime", MsFlags::MS_NODIRATIME),
    ("relatime", MsFlags::MS_RELATIME),
    ("strictatime", MsFlags::MS_STRICTATIME),
];
/// Said by habit; the kernel's own defaults.
const DEFAULTS: [&str; 2] = ["defaults", "rw"];

/// Make the mount point and mount.
pub fn mount(step: &Mount) -> io::Result<()> {
    fs::create_dir_all(&step.path)?;
    let (flags, data) = split(&step.options);
    let (source, fstype) = (Some(step.source.as_str()), Some(step.fstype.as_str()));
    Ok(nix::mount::mount(
        source,
        step.path.as_str(),
        fstype,
        flags,
        Some(data.as_str()),
    )?)
}

fn split(options: &str) -> (MsFlags, String) {
    let mut flags = MsFlags::empty();
    let mut data = Vec::new();
    for word in options
        .split(',')
        .filter(|word| !word.is_empty() && !DEFAULTS.contains(word))
    {
        match FLAGS.iter().find(|(name, _)| *name == word) {
            Some((_, flag)) => flags |= *flag,
            None => data.push(word),
        }
    }
    (flags, data.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_the_kernels_and_the_rest_is_the_file_systems() {
        let (flags, data) = split("rw,noatime,size=64m,nodev,huge=never");
        assert_eq!(flags, MsFlags::MS_NOATIME | MsFlags::MS_NODEV);
        assert_eq!(data, "size=64m,huge=never");
        assert_eq!(split(""), (MsFlags::empty(), String::new()));
    }
}
