//! The kernel's system calls that are needed here, without a C library.

use core::arch::asm;

/// Why a call failed: the kernel's number.
pub type Errno = i32;

const WRITE: usize = 1;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const PREAD: usize = 17;
const ALL_PORTS: usize = 0x1_0000;
const ALL_PORTS_LEVEL: usize = 3;
const EXECVE: usize = 59;
const CHDIR: usize = 80;
const RENAME: usize = 82;
const MKDIR: usize = 83;
const RMDIR: usize = 84;
const UNLINK: usize = 87;
const SYMLINK: usize = 88;
const CHMOD: usize = 90;
const FCHMOD: usize = 91;
const UMASK: usize = 95;
const MLOCK: usize = 149;
const MOUNT: usize = 165;
const UMOUNT: usize = 166;
const IOPL: usize = 172;
const IOPERM: usize = 173;
const EXIT_GROUP: usize = 231;
const UTIMENSAT: usize = 280;

const READ_ONLY: usize = 0;
const WRITE_ONLY: usize = 1;
const CREATE: usize = 0o100;
const EXCLUSIVE: usize = 0o200;
const NO_FOLLOW: usize = 0o400_000;
const CURRENT_DIRECTORY: usize = -100_isize as usize;
const NOT_FOLLOWED: usize = 0x100;

/// The file is there already.
pub const EEXIST: Errno = 17;
/// It is a directory.
pub const EISDIR: Errno = 21;
/// It is not there.
pub const ENOENT: Errno = 2;

fn call(number: usize, arguments: [usize; 4]) -> Result<usize, Errno> {
    let answer: isize;
    // SAFETY: the kernel keeps all registers but these; what the arguments point to is each caller's affair. The
    // fifth, which mount(2) alone has, is none.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") arguments[0], in("rsi") arguments[1],
             in("rdx") arguments[2], in("r10") arguments[3], in("r8") 0, lateout("rcx") _, lateout("r11") _,
             options(nostack))
    };
    if answer < 0 {
        Err(-answer as Errno)
    } else {
        Ok(answer as usize)
    }
}

/// A path: bytes that end with a zero byte.
pub struct Path<'a>(&'a [u8]);

impl<'a> Path<'a> {
    /// None where no zero byte ends the bytes, or where one stands before their end.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.iter().position(|&byte| byte == 0)?;
        (end + 1 == bytes.len()).then_some(Self(bytes))
    }

    fn at(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

/// An open file.
pub struct File(usize);

impl File {
    /// Open it for reading.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        call(OPEN, [path.at(), READ_ONLY, 0, 0]).map(Self)
    }

    /// Make a file that is not there yet.
    pub fn create(path: &Path) -> Result<Self, Errno> {
        call(
            OPEN,
            [
                path.at(),
                WRITE_ONLY | CREATE | EXCLUSIVE | NO_FOLLOW,
                0o600,
                0,
            ],
        )
        .map(Self)
    }

    /// Read up to so many bytes at a place.
    pub fn read_at(&self, buffer: &mut [u8], place: usize) -> Result<usize, Errno> {
        call(
            PREAD,
            [self.0, buffer.as_mut_ptr() as usize, buffer.len(), place],
        )
    }

    /// Write all of it.
    pub fn write(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let written = call(WRITE, [self.0, bytes.as_ptr() as usize, bytes.len(), 0])?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Give it permissions.
    pub fn set_permissions(&self, permissions: u32) -> Result<(), Errno> {
        call(FCHMOD, [self.0, permissions as usize, 0, 0]).map(drop)
    }

    /// Put its times to 1970.
    pub fn set_times(&self) -> Result<(), Errno> {
        call(UTIMENSAT, [self.0, 0, EPOCH.as_ptr() as usize, 0]).map(drop)
    }

    /// Close it.
    pub fn close(self) -> Result<(), Errno> {
        call(CLOSE, [self.0, 0, 0, 0]).map(drop)
    }
}

/// Seconds and nanoseconds, of the last access and the last change.
static EPOCH: [u64; 4] = [0; 4];

/// Put the times of what is at the path, itself if it is a link, to 1970.
pub fn set_times(path: &Path) -> Result<(), Errno> {
    let arguments = [
        CURRENT_DIRECTORY,
        path.at(),
        EPOCH.as_ptr() as usize,
        NOT_FOLLOWED,
    ];
    call(UTIMENSAT, arguments).map(drop)
}

/// chmod(2).
pub fn set_permissions(path: &Path, permissions: u32) -> Result<(), Errno> {
    call(CHMOD, [path.at(), permissions as usize, 0, 0]).map(drop)
}

/// mkdir(2).
pub fn make_directory(path: &Path) -> Result<(), Errno> {
    call(MKDIR, [path.at(), 0o755, 0, 0]).map(drop)
}

/// symlink(2).
pub fn make_link(target: &Path, path: &Path) -> Result<(), Errno> {
    call(SYMLINK, [target.at(), path.at(), 0, 0]).map(drop)
}

/// unlink(2), or rmdir(2) of a directory.
pub fn remove(path: &Path) -> Result<(), Errno> {
    match call(UNLINK, [path.at(), 0, 0, 0]) {
        Err(EISDIR) => call(RMDIR, [path.at(), 0, 0, 0]).map(drop),
        Err(ENOENT) => Ok(()),
        other => other.map(drop),
    }
}

/// chdir(2).
pub fn change_directory(path: &Path) -> Result<(), Errno> {
    call(CHDIR, [path.at(), 0, 0, 0]).map(drop)
}

/// umask(2): the mask that there was.
pub fn set_umask(mask: usize) -> Result<usize, Errno> {
    call(UMASK, [mask, 0, 0, 0])
}

/// Keep the buffer's pages in memory.
pub fn lock(buffer: &[u8]) -> Result<(), Errno> {
    call(MLOCK, [buffer.as_ptr() as usize, buffer.len(), 0, 0]).map(drop)
}

/// Use the ports.
pub fn allow_ports() -> Result<(), Errno> {
    call(IOPL, [ALL_PORTS_LEVEL, 0, 0, 0])
        .or_else(|_| call(IOPERM, [0, ALL_PORTS, 1, 0]))
        .map(drop)
}

/// Use them no more: exec keeps what was asked for, and each system call of who has it takes longer.
pub fn give_up_ports() {
    let _ = call(IOPL, [0, 0, 0, 0]);
    let _ = call(IOPERM, [0, ALL_PORTS, 0, 0]);
}

/// mount(2) of a file system that has neither source nor options.
pub fn mount(kind: &Path, place: &Path) -> Result<(), Errno> {
    call(MOUNT, [kind.at(), place.at(), kind.at(), 0]).map(drop)
}

/// umount(2).
pub fn unmount(place: &Path) -> Result<(), Errno> {
    call(UMOUNT, [place.at(), 0, 0, 0]).map(drop)
}

/// rename(2).
pub fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    call(RENAME, [from.at(), to.at(), 0, 0]).map(drop)
}

/// execve(2), with the arguments and the environment that the kernel laid on this program's stack.
///
/// # Safety
/// `stack` is what the stack pointer was when the program began.
pub unsafe fn replace_by(program: &Path, stack: *const usize) -> Errno {
    // SAFETY: the count of arguments stands there, then the arguments and a null, then the environment.
    let (arguments, environment) = unsafe { (stack.add(1), stack.add(*stack + 2)) };
    match call(
        EXECVE,
        [program.at(), arguments as usize, environment as usize, 0],
    ) {
        Err(errno) => errno,
        Ok(_) => 0,
    }
}

/// End the program.
pub fn exit(status: u8) -> ! {
    let _ = call(EXIT_GROUP, [status.into(), 0, 0, 0]);
    loop {
        core::hint::spin_loop();
    }
}
