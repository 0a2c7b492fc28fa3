//! Files, directories and links, each in place of whatever stands there.

use crate::system_calls::{
    make_directory, make_link, remove, set_permissions, set_times, Errno, File, Path, EEXIST,
};

const USUAL: u32 = 0o755;

/// Make the directory. One that is there keeps its permissions, unless they are to be unusual ones.
pub fn directory(path: &Path, permissions: u32) -> Result<(), Errno> {
    match make_directory(path) {
        Ok(()) => set_permissions(path, permissions)?,
        Err(EEXIST) if permissions == USUAL => (),
        Err(EEXIST) => set_permissions(path, permissions)?,
        Err(errno) => return Err(errno),
    }
    set_times(path)
}

/// Make the link, in place of whatever file or link is there.
pub fn link(target: &Path, path: &Path) -> Result<(), Errno> {
    match make_link(target, path) {
        Err(EEXIST) => {
            remove(path)?;
            make_link(target, path)?;
        }
        other => other?,
    }
    set_times(path)
}

/// Make the file, in place of whatever file or link is there.
pub fn file(path: &Path) -> Result<File, Errno> {
    match File::create(path) {
        Err(EEXIST) => {
            remove(path)?;
            File::create(path)
        }
        other => other,
    }
}

/// All is written.
pub fn complete(file: File, permissions: u32) -> Result<(), Errno> {
    file.set_permissions(permissions)?;
    file.set_times()?;
    file.close()
}
