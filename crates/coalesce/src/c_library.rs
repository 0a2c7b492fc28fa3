//! The C library's own functions. Nothing is linked: the names are resolved in QEMU's process.

use core::ffi::{c_char, c_int, c_void, CStr};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::SeqCst};

extern "C" {
    fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void;
    fn write(file: c_int, from: *const c_void, size: usize) -> isize;
    fn sched_yield() -> c_int;
    fn __errno_location() -> *mut c_int;
    fn abort() -> !;
}

/// RTLD_NEXT: the next object that has the name, the C library's or another preloaded one's.
const NEXT: *mut c_void = usize::MAX as *mut c_void;
const EINTR: c_int = 4;
const ENOSPC: c_int = 28;

/// `struct iovec`.
#[repr(C)]
pub struct Piece {
    /// Where it begins.
    pub bytes: *const u8,
    /// Bytes.
    pub length: usize,
}

/// `struct timespec`, as a length of time.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    seconds: i64,
    nanoseconds: i64,
}

impl Pause {
    /// No time at all.
    pub const NONE: Self = Self {
        seconds: 0,
        nanoseconds: 0,
    };
    /// The longest time that a byte is kept.
    const LONGEST: Self = Self {
        seconds: 0,
        nanoseconds: 100_000_000,
    };

    /// The part of a time that is waited for first, and what is left then. No time given: there is always more.
    pub fn first_of(time: Option<Self>) -> (Self, Option<Self>) {
        match time {
            None => (Self::LONGEST, None),
            Some(time) if time.seconds == 0 && time.nanoseconds <= Self::LONGEST.nanoseconds => {
                (time, Some(Self::NONE))
            }
            Some(time) => (Self::LONGEST, Some(time.less(Self::LONGEST.nanoseconds))),
        }
    }

    fn less(self, nanoseconds: i64) -> Self {
        let borrowed = i64::from(self.nanoseconds < nanoseconds);
        Self {
            seconds: self.seconds - borrowed,
            nanoseconds: self.nanoseconds - nanoseconds + borrowed * 1_000_000_000,
        }
    }
}

type Writev = unsafe extern "C" fn(c_int, *const Piece, c_int) -> isize;
type Sendmsg = unsafe extern "C" fn(c_int, *const c_void, c_int) -> isize;
type Ppoll = unsafe extern "C" fn(*mut c_void, u64, *const Pause, *const c_void) -> c_int;

/// `writev`.
pub fn writev() -> Writev {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let address = lookup(&FOUND, c"writev");
    // SAFETY: this is the function of that name, with this signature.
    unsafe { core::mem::transmute::<*mut c_void, Writev>(address) }
}

/// `sendmsg`.
pub fn sendmsg() -> Sendmsg {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let address = lookup(&FOUND, c"sendmsg");
    // SAFETY: as above.
    unsafe { core::mem::transmute::<*mut c_void, Sendmsg>(address) }
}

/// `ppoll`.
pub fn ppoll() -> Ppoll {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let address = lookup(&FOUND, c"ppoll");
    // SAFETY: as above.
    unsafe { core::mem::transmute::<*mut c_void, Ppoll>(address) }
}

fn lookup(kept: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = kept.load(SeqCst);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the string ends in NUL.
    let address = unsafe { dlsym(NEXT, name.as_ptr()) };
    if address.is_null() {
        // SAFETY: ends the process; without the C library's own function nothing can go on.
        unsafe { abort() }
    }
    kept.store(address, SeqCst);
    address
}

/// Writes all of the bytes; false where that is not possible.
pub fn written(file: c_int, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: `bytes` is readable for its length.
        let answer = unsafe { write(file, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(answer) {
            Ok(count) if count > 0 => bytes = &bytes[count..],
            _ if answer < 0 && error() == EINTR => {}
            _ => return false,
        }
    }
    true
}

fn error() -> c_int {
    // SAFETY: each thread has one.
    unsafe { *__errno_location() }
}

/// What `writev` gives where a disk is full.
pub fn no_space() -> isize {
    // SAFETY: each thread has one.
    unsafe { *__errno_location() = ENOSPC };
    -1
}

/// Let another thread have the CPU.
pub fn let_others_run() {
    // SAFETY: it has no preconditions.
    unsafe { sched_yield() };
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { abort() }
}
