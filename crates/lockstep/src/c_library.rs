//! The C library's own functions, and the kernel's futex. Nothing is linked: the names are resolved in QEMU's process.

use crate::turns::{Condition, Mutex};
use core::ffi::{c_char, c_int, c_long, c_void, CStr};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// How long the main loop sleeps before it looks at what the CPU has used meanwhile (`turns::Patience`).
const A_LOOK: Timespec = Timespec {
    seconds: 1,
    nanoseconds: 0,
};

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn dlvsym(from: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void;
    fn syscall(number: c_long, ...) -> c_long;
    fn dl_iterate_phdr(each: Each, with: *mut c_void) -> c_int;
    fn memmem(from: *const u8, length: usize, what: *const u8, size: usize) -> *mut u8;
    fn mmap(at: usize, size: usize, rights: c_int, kind: c_int, file: c_int, offset: i64) -> usize;
    fn mprotect(at: usize, size: usize, rights: c_int) -> c_int;
    fn write(file: c_int, from: *const u8, size: usize) -> isize;
    fn getpid() -> c_int;
    fn _exit(status: c_int) -> !;
    fn abort() -> !;
}

/// RTLD_NEXT: the next object that has the name, the C library's. RTLD_DEFAULT: any object.
const NEXT: *mut c_void = usize::MAX as *mut c_void;
const ANYWHERE: *mut c_void = null_mut();
/// What is called with each object that is loaded, from the program on, until it gives something else than 0.
type Each = unsafe extern "C" fn(*const c_void, usize, *mut c_void) -> c_int;
const STDERR: c_int = 2;
const READ_WRITE: c_int = 3;
const READ_EXECUTE: c_int = 5;
/// MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE.
const NEW_PAGE_HERE: c_int = 0x10_0022;
const FAILED: usize = usize::MAX;
const PAGE: usize = 4096;
/// How far apart places are that are tried for a page, and how many.
const APART: usize = 1 << 20;
const PLACES: usize = 512;
#[cfg(target_arch = "x86_64")]
mod system {
    pub const GETTID: super::c_long = 186;
    pub const CLOCK_GETTIME: super::c_long = 228;
    pub const FUTEX: super::c_long = 202;
    /// Since this version of glibc conditions have their present layout; dlsym would find the older one.
    pub const CONDITIONS: &core::ffi::CStr = c"GLIBC_2.3.2";
}
#[cfg(target_arch = "aarch64")]
mod system {
    pub const GETTID: super::c_long = 178;
    pub const CLOCK_GETTIME: super::c_long = 113;
    pub const FUTEX: super::c_long = 98;
    pub const CONDITIONS: &core::ffi::CStr = c"GLIBC_2.17";
}
const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;

type Wait = unsafe extern "C" fn(*mut Condition, *mut Mutex) -> c_int;
type Broadcast = unsafe extern "C" fn(*mut Condition) -> c_int;
type Poll = unsafe extern "C" fn(*mut c_void, u64, *const c_void, *const c_void) -> c_int;

/// `pthread_cond_wait`.
pub fn wait() -> Wait {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let address = lookup(&FOUND, c"pthread_cond_wait", system::CONDITIONS);
    // SAFETY: this is the function of that name, with this signature.
    unsafe { core::mem::transmute::<*mut c_void, Wait>(address) }
}

/// `pthread_cond_broadcast`.
pub fn broadcast() -> Broadcast {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let address = lookup(&FOUND, c"pthread_cond_broadcast", system::CONDITIONS);
    // SAFETY: as above.
    unsafe { core::mem::transmute::<*mut c_void, Broadcast>(address) }
}

/// `ppoll`.
pub fn poll() -> Poll {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let address = lookup(&FOUND, c"ppoll", c"GLIBC_2.4");
    // SAFETY: as above.
    unsafe { core::mem::transmute::<*mut c_void, Poll>(address) }
}

/// The C library's function of this name, looked up once.
fn lookup(kept: &AtomicPtr<c_void>, name: &CStr, version: &CStr) -> *mut c_void {
    let known = kept.load(SeqCst);
    if !known.is_null() {
        return known;
    }
    // SAFETY: both strings end in NUL.
    let mut address = unsafe { dlvsym(NEXT, name.as_ptr(), version.as_ptr()) };
    if address.is_null() {
        // SAFETY: the string ends in NUL.
        address = unsafe { dlsym(NEXT, name.as_ptr()) };
    }
    if address.is_null() {
        // SAFETY: ends the process; without the C library's own function nothing can go on.
        unsafe { abort() }
    }
    kept.store(address, SeqCst);
    address
}

/// Where something of this name is, in the program or in what it has loaded.
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the string ends in NUL.
    let found = unsafe { dlsym(ANYWHERE, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Have `each` called with the objects that are loaded.
///
/// # Safety
/// `each` takes `with`.
pub unsafe fn objects(each: Each, with: *mut c_void) {
    // SAFETY: as required of the caller.
    unsafe { dl_iterate_phdr(each, with) };
}

/// Where `what` stands first in so many bytes; null where it does not.
///
/// # Safety
/// The bytes can be read.
pub unsafe fn found(from: *const u8, length: usize, what: &[u8]) -> *mut u8 {
    // SAFETY: as required of the caller.
    unsafe { memmem(from, length, what.as_ptr(), what.len()) }
}

/// A new page below an address, so near that code there can call it.
pub fn page_below(address: usize) -> Option<usize> {
    (1..=PLACES).find_map(|place| {
        let wanted = (address & !(PAGE - 1)).checked_sub(place * APART)?;
        // SAFETY: a new page, and only where there is nothing yet.
        let found = unsafe { mmap(wanted, PAGE, READ_WRITE, NEW_PAGE_HERE, -1, 0) };
        // A kernel before 4.17 takes the address for a wish.
        (found != FAILED && found == wanted).then_some(found)
    })
}

/// The page can be executed from here on, and not written to.
///
/// # Safety
/// It is a page of ours.
pub unsafe fn make_code(page: usize) -> bool {
    // SAFETY: as required of the caller.
    unsafe { mprotect(page, PAGE, READ_EXECUTE) == 0 }
}

/// Write into code.
///
/// # Safety
/// It is code, and stays such with these bytes; no other thread executes it.
pub unsafe fn change_code(at: usize, bytes: &[u8; 4]) -> bool {
    let page = at & !(PAGE - 1);
    let size = (at + bytes.len() - page).next_multiple_of(PAGE);
    // SAFETY: as required of the caller; the rights are put back, and what executes here is on other pages.
    unsafe {
        if mprotect(page, size, READ_WRITE) != 0 {
            return false;
        }
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len());
        mprotect(page, size, READ_EXECUTE) == 0
    }
}

/// Say something on standard error.
pub fn say(what: &[u8]) {
    // SAFETY: the bytes are readable.
    unsafe { write(STDERR, what.as_ptr(), what.len()) };
}

/// End the process, and say why: better no result than a wrong one.
pub fn give_up(why: &[u8]) -> ! {
    say(why);
    // SAFETY: ends the process.
    unsafe { _exit(1) }
}

/// Whether this is the process's first thread.
pub fn in_main_thread() -> bool {
    // SAFETY: the call has no preconditions.
    thread() == i64::from(unsafe { getpid() })
}

/// The kernel's number of this thread.
pub fn thread() -> i64 {
    // SAFETY: the call has no preconditions.
    unsafe { syscall(system::GETTID) }
}

/// Wake whoever sleeps on the word.
///
/// # Safety
/// The word lives as long as the process.
pub unsafe fn wake(word: *mut u32) {
    // SAFETY: as required of the caller.
    unsafe { syscall(system::FUTEX, word, FUTEX_WAKE_PRIVATE, c_int::MAX) };
}

/// Nanoseconds of CPU that the process has used, all threads together; 0 where the kernel does not say.
pub fn cpu_time() -> u64 {
    let mut used = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the kernel writes to a value of our own.
    let answer = unsafe {
        syscall(
            system::CLOCK_GETTIME,
            CLOCK_PROCESS_CPUTIME_ID,
            &mut used as *mut Timespec,
        )
    };
    if answer == 0 {
        used.seconds.unsigned_abs() * 1_000_000_000 + used.nanoseconds.unsigned_abs()
    } else {
        0
    }
}

/// Sleep until somebody wakes those who sleep on the word, if it is 0; false where it was not, or a second has passed.
///
/// # Safety
/// The word lives as long as the process.
pub unsafe fn sleep_while_zero(word: *mut u32) -> bool {
    // SAFETY: as required of the caller, and the time is a static.
    let answer = unsafe {
        syscall(
            system::FUTEX,
            word,
            FUTEX_WAIT_PRIVATE,
            0 as c_int,
            &A_LOOK as *const Timespec,
            null::<c_void>(),
            0 as c_int,
        )
    };
    answer == 0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { abort() }
}
