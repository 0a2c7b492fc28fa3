//! From the archive that the host hands over to files in the guest.

use crate::archive::{Header, Kind, HEADER, TRAILER};
use crate::frames;
use crate::fw_cfg::{Buffer, Source, Unreadable};
use crate::places;
use crate::system_calls::{change_directory, mount, remove, set_umask, unmount, Errno, Path};

const NAME: &[u8] = b"opt/ktrial/files";
const ROOT: &[u8] = b"/\0";
const PROC: &[u8] = b"/proc\0";
const PROC_FILES: &[u8] = b"proc\0";
const LONGEST_PATH: usize = 4096;

static mut BUFFER: Buffer = Buffer::empty();

/// Unpack the archive; where that fails the host is told, and the guest ends.
pub fn put_in_place() {
    let mut name = [0; LONGEST_PATH];
    // SAFETY: this is the only place that takes it, and it runs once, in the only thread.
    let buffer = unsafe { &mut *core::ptr::addr_of_mut!(BUFFER) };
    let Err(problem) = unpacked(buffer, &mut name) else {
        return;
    };
    let mut reason = frames::reason();
    reason.add(b"files ");
    match problem {
        Problem::Source(text) => reason.add(b"0 ").add(text.as_bytes()),
        // The host has the kernel's names of errors.
        Problem::Place(size, errno) => reason
            .add_number(errno as u64)
            .add(b" ")
            .add_plain(&name[..size]),
    };
    frames::fail(&mut reason);
}

/// Why it goes no further.
enum Problem {
    /// What is wrong with the archive.
    Source(&'static str),
    /// Bytes of the path at which the kernel refused something, and its answer.
    Place(usize, Errno),
}

impl From<Unreadable> for Problem {
    fn from(Unreadable(text): Unreadable) -> Self {
        Self::Source(text)
    }
}

fn unpacked(buffer: &mut Buffer, name: &mut [u8; LONGEST_PATH]) -> Result<(), Problem> {
    let at = |path: &'static [u8]| Path::new(path).ok_or(Problem::Source("a path is none"));
    let refused = |errno| Problem::Place(0, errno);
    let proc = at(PROC)?;
    let is_mounted = mount(&at(PROC_FILES)?, &proc).is_ok();
    let umask = set_umask(0).map_err(refused)?;
    change_directory(&at(ROOT)?).map_err(refused)?;
    let mut source = Source::open(buffer, NAME)?;
    loop {
        let mut bytes = [0; HEADER];
        exactly(&mut source, &mut bytes)?;
        let header =
            Header::read(&bytes).ok_or(Problem::Source("the archive holds no entry here"))?;
        if header.name_size == 0 || header.name_size > name.len() {
            return Err(Problem::Source("the archive holds a name that is too long"));
        }
        exactly(&mut source, &mut name[..header.name_size])?;
        skip(&mut source, header.after_name())?;
        if name[..header.name_size].strip_suffix(b"\0") == Some(TRAILER) {
            break;
        }
        match entry(&mut source, &header, &name[..header.name_size]) {
            Ok(()) => skip(&mut source, header.after_content())?,
            Err(Failed::Reading(text)) => return Err(Problem::Source(text)),
            Err(Failed::Writing(errno)) => return Err(Problem::Place(header.name_size - 1, errno)),
        }
    }
    source.close();
    set_umask(umask).map_err(refused)?;
    if is_mounted {
        unmount(&proc).map_err(refused)?;
    }
    Ok(())
}

enum Failed {
    Reading(&'static str),
    Writing(Errno),
}

impl From<Unreadable> for Failed {
    fn from(Unreadable(text): Unreadable) -> Self {
        Self::Reading(text)
    }
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self::Writing(errno)
    }
}

fn entry(source: &mut Source, header: &Header, name: &[u8]) -> Result<(), Failed> {
    let path = Path::new(name).ok_or(Failed::Reading("the archive holds a name without an end"))?;
    match header.kind {
        Kind::Nothing => remove(&path)?,
        Kind::Directory => places::directory(&path, header.permissions)?,
        Kind::Link => {
            let mut target = [0; LONGEST_PATH];
            let size = usize::try_from(header.size).unwrap_or(usize::MAX);
            if size >= target.len() {
                return Err(Failed::Reading("the archive holds a link that is too long"));
            }
            exactly(source, &mut target[..size])?;
            let target = Path::new(&target[..=size])
                .ok_or(Failed::Reading("the archive holds a damaged link"))?;
            places::link(&target, &path)?;
        }
        Kind::Regular => {
            let file = places::file(&path)?;
            let mut left = header.size as usize;
            while left > 0 {
                let piece = source.next(left)?;
                if piece.is_empty() {
                    return Err(Failed::Reading("the archive ends too early"));
                }
                file.write(piece)?;
                left -= piece.len();
            }
            places::complete(file, header.permissions)?;
        }
    }
    Ok(())
}

fn exactly(source: &mut Source, mut into: &mut [u8]) -> Result<(), Unreadable> {
    while !into.is_empty() {
        let piece = source.next(into.len())?;
        if piece.is_empty() {
            return Err(Unreadable("the archive ends too early"));
        }
        let (filled, rest) = into.split_at_mut(piece.len());
        filled.copy_from_slice(piece);
        into = rest;
    }
    Ok(())
}

fn skip(source: &mut Source, count: usize) -> Result<(), Unreadable> {
    exactly(source, &mut [0; 3][..count])
}
