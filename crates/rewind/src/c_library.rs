//! The C library's own functions. Nothing is linked: the names are resolved in QEMU's process.

use core::ffi::{c_char, c_int, c_long, c_void, CStr};
use core::ptr::null_mut;

extern "C" {
    fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn lseek(file: c_int, offset: i64, from: c_int) -> i64;
    fn pread(file: c_int, to: *mut c_void, size: usize, at: i64) -> isize;
    fn close(file: c_int) -> c_int;
    fn mmap(
        at: usize,
        size: usize,
        rights: c_int,
        kind: c_int,
        file: c_int,
        at: i64,
    ) -> *mut c_void;
    fn mprotect(at: usize, size: usize, rights: c_int) -> c_int;
    fn madvise(at: *mut c_void, size: usize, advice: c_int) -> c_int;
    fn malloc(size: usize) -> *mut c_void;
    fn syscall(number: c_long, ...) -> c_long;
    fn getpid() -> c_int;
    fn abort() -> !;
}

/// RTLD_NEXT and RTLD_DEFAULT.
const NEXT: *mut c_void = usize::MAX as *mut c_void;
const ANYWHERE: *mut c_void = null_mut();
const READ_ONLY: c_int = 0;
const READ_WRITE: c_int = 2;
const TO_END: c_int = 2;
const MAY_READ_WRITE: c_int = 3;
const MAY_READ_EXECUTE: c_int = 5;
const SHARED: c_int = 1;
const DONT_NEED: c_int = 4;
const GETTID: c_long = 186;
const FAILED: usize = usize::MAX;
/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Where something of this name is, in the program or in what it has loaded.
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the string ends in NUL.
    let found = unsafe { dlsym(ANYWHERE, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The next object's function of this name.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the string ends in NUL.
    let found = unsafe { dlsym(NEXT, name.as_ptr()) };
    if found.is_null() {
        // SAFETY: ends the process; without the C library's own function nothing can go on.
        unsafe { abort() }
    }
    found
}

/// What the environment has of this name.
pub fn variable(name: &CStr) -> Option<*const c_char> {
    // SAFETY: the string ends in NUL; nothing changes the environment yet.
    let found = unsafe { getenv(name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A file's content, shared with those who have mapped it too.
pub fn shared_file(path: *const c_char) -> Option<*mut c_void> {
    // SAFETY: the path ends in NUL, and the file is ours until it is closed; what is mapped is nobody else's memory.
    unsafe {
        let file = open(path, READ_WRITE);
        if file < 0 {
            return None;
        }
        let size = usize::try_from(lseek(file, 0, TO_END)).unwrap_or(0);
        let mapped = mmap(0, size, MAY_READ_WRITE, SHARED, file, 0);
        close(file);
        (mapped as usize != FAILED).then_some(mapped)
    }
}

/// A file, open for reading; the caller's.
pub fn opened(path: *const c_char) -> Option<c_int> {
    // SAFETY: the path ends in NUL.
    let file = unsafe { open(path, READ_ONLY) };
    (file >= 0).then_some(file)
}

/// Memory from the C library; QEMU may give it back. None where there is none.
pub fn memory(size: usize) -> Option<*mut c_void> {
    // SAFETY: malloc has no preconditions.
    let memory = unsafe { malloc(size) };
    (!memory.is_null()).then_some(memory)
}

/// Fill `to` with a file's bytes from `at` on; false where it has fewer.
pub fn read_at(path: &CStr, to: &mut [u64], at: u64) -> bool {
    let Some(file) = opened(path.as_ptr()) else {
        return false;
    };
    let size = size_of_val(to);
    let Ok(at) = i64::try_from(at) else {
        return false;
    };
    // SAFETY: so many bytes can be written, and any bytes are words.
    let got = unsafe { pread(file, to.as_mut_ptr().cast(), size, at) };
    // SAFETY: opened above.
    unsafe { close(file) };
    usize::try_from(got) == Ok(size)
}

/// Of a private mapping: from here on the pages are the file's.
///
/// # Safety
/// They are whole pages of such a mapping, and nobody uses what was in them.
pub unsafe fn drop_pages(at: *mut u8, size: usize) {
    // SAFETY: as required of the caller.
    unsafe { madvise(at.cast(), size, DONT_NEED) };
}

/// Write one byte of code; gives the byte that was there.
///
/// # Safety
/// Code it stays, and no other thread executes it or what is on its page.
pub unsafe fn change_code(at: *mut u8, byte: u8) -> u8 {
    let page = at as usize & !(PAGE - 1);
    // SAFETY: as required of the caller; the rights are put back.
    unsafe {
        if mprotect(page, PAGE, MAY_READ_WRITE) != 0 {
            abort();
        }
        let was = core::ptr::replace(at, byte);
        if mprotect(page, PAGE, MAY_READ_EXECUTE) != 0 {
            abort();
        }
        was
    }
}

/// Whether this is the process's first thread.
pub fn in_main_thread() -> bool {
    // SAFETY: neither call has preconditions.
    unsafe { syscall(GETTID) == c_long::from(getpid()) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { abort() }
}
