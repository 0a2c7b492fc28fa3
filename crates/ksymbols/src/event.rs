//! An event that counts nothing, on every CPU, for the records that come with it.

use std::io;
use std::ptr;
use std::sync::atomic::{fence, Ordering};

/// From linux/perf_event.h.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// Bit of `ksymbol` among the attribute's flags.
const KSYMBOL: u64 = 1 << 29;
/// PERF_ATTR_SIZE_VER0: none of the fields after it is used.
const SIZE: u32 = 64;
const PAGE: usize = 4096;
/// Of the page before the ring: where the kernel writes next.
const HEAD: usize = 1024;
/// Pages of a ring, a power of two: room for some thousand records.
const PAGES: usize = 64;

/// The beginning of struct perf_event_attr.
#[repr(C)]
struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    unused: [u64; 3],
    flags: u64,
    unused_too: [u64; 2],
}

/// One CPU's records, from now on.
pub struct Ring {
    start: *const u8,
}

impl Ring {
    /// One for each CPU.
    pub fn of_all() -> io::Result<Vec<Self>> {
        // SAFETY: sysconf(3) has no requirements.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        (0..cpus as libc::c_int).map(Self::of).collect()
    }

    fn of(cpu: libc::c_int) -> io::Result<Self> {
        let attribute = Attribute {
            kind: SOFTWARE,
            size: SIZE,
            config: DUMMY,
            unused: [0; 3],
            flags: KSYMBOL,
            unused_too: [0; 2],
        };
        let everybody: libc::pid_t = -1;
        let (no_group, cloexec) = (-1, 1 << 3);
        // SAFETY: the attribute is as long as it says, and outlives the call.
        let fd = unsafe {
            let attribute = ptr::from_ref(&attribute);
            libc::syscall(
                libc::SYS_perf_event_open,
                attribute,
                everybody,
                cpu,
                no_group,
                cloexec,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let (length, access) = ((1 + PAGES) * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping, which stays until the process ends, as the descriptor does.
        let start = unsafe {
            let fd = fd as libc::c_int;
            libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
        })
    }

    /// All that was written so far: nobody reads in between, and what has no room is told as lost.
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: within the mapping's first page, and aligned.
        let head = unsafe { self.start.add(HEAD).cast::<u64>().read_volatile() } as usize;
        fence(Ordering::Acquire);
        // SAFETY: the kernel does not write beyond what has been read, which is nothing: `head` is within the ring.
        unsafe { std::slice::from_raw_parts(self.start.add(PAGE), head.min(PAGES * PAGE)).to_vec() }
    }
}
