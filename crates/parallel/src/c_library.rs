//! What is needed of the C library, which QEMU has loaded already: memory, symbols, threads, files.
//!
//! Nothing is linked: the names are resolved in QEMU's process, so that one build runs with every glibc.

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int, c_long, c_void, CStr};
use core::ptr::null_mut;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn abort() -> !;
    fn _exit(status: c_int) -> !;
    fn write(file: c_int, from: *const c_void, size: usize) -> isize;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn read(file: c_int, to: *mut c_void, size: usize) -> isize;
    fn close(file: c_int) -> c_int;
    fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(from: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, found: *mut Place) -> c_int;
    fn getpid() -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn pthread_self() -> usize;
    fn pthread_mutex_lock(mutex: *mut c_void) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut c_void) -> c_int;
    fn sched_yield() -> c_int;
}

/// `Dl_info`.
#[repr(C)]
struct Place {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

/// RTLD_DEFAULT: any object that has the name. RTLD_NEXT: the next one after this.
const ANYWHERE: *mut c_void = null_mut();
const NEXT: *mut c_void = usize::MAX as *mut c_void;
const GETTID: c_long = 186;
const STDERR: c_int = 2;
const O_RDONLY: c_int = 0;
const O_WRONLY_CREAT_APPEND: c_int = 0o2101;
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// malloc's alignment.
const ALIGNMENT: usize = 16;

struct Malloc;

// SAFETY: the C library's allocator keeps GlobalAlloc's contract up to its alignment; nothing here asks for more, and
// what did would get null, which ends the process.
unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGNMENT {
            return null_mut();
        }
        // SAFETY: malloc has no preconditions.
        unsafe { malloc(layout.size()) }.cast()
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: allocated by `alloc`, as required of the caller.
        unsafe { free(memory.cast()) }
    }
}

#[global_allocator]
static ALLOCATOR: Malloc = Malloc;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    complain(&alloc::format!("{info}"));
    // SAFETY: ends the process.
    unsafe { abort() }
}

/// The compiled core library names these two for unwinding, which `panic = "abort"` never does.
#[no_mangle]
extern "C" fn _Unwind_Resume() -> ! {
    // SAFETY: ends the process.
    unsafe { abort() }
}

#[no_mangle]
extern "C" fn rust_eh_personality() {}

/// Where something called `name` is, in QEMU or in what it has loaded; null where there is none.
pub fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the string ends in NUL.
    unsafe { dlsym(ANYWHERE, name.as_ptr()) }
}

/// The C library's own `pthread_cond_wait`, of its present layout.
pub fn own_wait() -> *mut c_void {
    // SAFETY: both strings end in NUL.
    let found = unsafe { dlvsym(NEXT, c"pthread_cond_wait".as_ptr(), c"GLIBC_2.3.2".as_ptr()) };
    match found.is_null() {
        // SAFETY: without the C library's own function nothing can go on.
        true => unsafe { abort() },
        false => found,
    }
}

/// Whether the address is that of the function called `name`, wherever it was loaded from.
pub fn is_function(address: *const c_void, name: &CStr) -> bool {
    let mut place = Place {
        file: core::ptr::null(),
        base: null_mut(),
        name: core::ptr::null(),
        address: null_mut(),
    };
    // SAFETY: dladdr takes any address, and fills the structure.
    let found = unsafe { dladdr(address, &mut place) } != 0;
    if !found || place.name.is_null() || !core::ptr::eq(place.address, address) {
        return false;
    }
    // SAFETY: a C string of the object's symbol table.
    unsafe { CStr::from_ptr(place.name) == name }
}

/// Whether this is the process's first thread.
pub fn in_main_thread() -> bool {
    // SAFETY: neither call has preconditions.
    unsafe { syscall(GETTID) == c_long::from(getpid()) }
}

/// Which thread this is; never 0.
pub fn this_thread() -> usize {
    // SAFETY: it has no preconditions.
    unsafe { pthread_self() }
}

/// Let another thread have the lock for a moment.
///
/// # Safety
/// This thread holds the lock.
pub unsafe fn let_others_in(mutex: *mut c_void) {
    // SAFETY: as required of the caller.
    unsafe {
        pthread_mutex_unlock(mutex);
        sched_yield();
        pthread_mutex_lock(mutex);
    }
}

/// Says on QEMU's standard error what is wrong.
pub fn complain(what: &str) {
    append(STDERR, alloc::format!("parallel: {what}\n").as_bytes());
}

/// Ends QEMU at once with this status, and says why.
pub fn give_up(status: c_int, reason: &str) -> ! {
    complain(reason);
    // SAFETY: it has no preconditions.
    unsafe { _exit(status) }
}

/// Opens a file to be appended to; None where that is not possible.
pub fn opened(path: &str) -> Option<c_int> {
    let mut named: Vec<u8> = path.into();
    named.push(0);
    // SAFETY: the path ends in NUL; the mode goes with O_CREAT.
    let file = unsafe { open(named.as_ptr().cast(), O_WRONLY_CREAT_APPEND, 0o644 as c_int) };
    (file >= 0).then_some(file)
}

/// All that a file has; None where it cannot be read.
pub fn read_file(path: &str) -> Option<Vec<u8>> {
    let mut named: Vec<u8> = path.into();
    named.push(0);
    // SAFETY: the path ends in NUL.
    let file = unsafe { open(named.as_ptr().cast(), O_RDONLY) };
    if file < 0 {
        return None;
    }
    let mut content = Vec::new();
    let whole = loop {
        let had = content.len();
        content.resize(had + PIECE, 0);
        // SAFETY: so many bytes are writable from there.
        let got = unsafe { read(file, content[had..].as_mut_ptr().cast(), PIECE) };
        content.truncate(had + usize::try_from(got).unwrap_or(0));
        if got <= 0 {
            break got == 0;
        }
    };
    // SAFETY: opened above.
    unsafe { close(file) };
    whole.then_some(content)
}

/// Appends to an open file; false where not all of it could be written.
pub fn append(file: c_int, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: `bytes` is readable for its length.
        let written = unsafe { write(file, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => bytes = &bytes[written..],
            _ => return false,
        }
    }
    true
}
