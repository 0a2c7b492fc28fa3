//! What the plugin needs of the C library, which QEMU has loaded already: memory and files.
//!
//! Nothing is linked: the names are resolved in QEMU's process, so that one build runs with every glibc.

use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int, c_void};

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn abort() -> !;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn read(file: c_int, to: *mut c_void, size: usize) -> isize;
    fn write(file: c_int, from: *const c_void, size: usize) -> isize;
    fn close(file: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// malloc's alignment on x86-64 and arm64.
const ALIGNMENT: usize = 16;
const O_WRONLY_CREAT_TRUNC: c_int = 0o1101;
const STDERR: c_int = 2;

struct Malloc;

// SAFETY: the C library's allocator keeps GlobalAlloc's contract; larger alignments go through posix_memalign.
unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            // SAFETY: malloc has no preconditions.
            return unsafe { malloc(layout.size()) }.cast();
        }
        let mut memory = core::ptr::null_mut();
        // SAFETY: an alignment beyond malloc's is a power of two and a multiple of the size of a pointer.
        match unsafe { posix_memalign(&mut memory, layout.align(), layout.size()) } {
            0 => memory.cast(),
            _ => core::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            // SAFETY: calloc has no preconditions.
            return unsafe { calloc(1, layout.size()) }.cast();
        }
        // SAFETY: same layout, as required of the caller.
        let memory = unsafe { self.alloc(layout) };
        if !memory.is_null() {
            // SAFETY: just allocated with this size.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: allocated by `alloc`, as required of the caller.
        unsafe { free(memory.cast()) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            // SAFETY: allocated by `alloc`; malloc's alignment is enough.
            return unsafe { realloc(memory.cast(), size) }.cast();
        }
        // SAFETY: `layout` is valid, and `size` is what the caller vouches for.
        let larger = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !larger.is_null() {
            // SAFETY: both blocks are at least this long, and apart.
            unsafe {
                core::ptr::copy_nonoverlapping(memory, larger, layout.size().min(size));
                free(memory.cast());
            }
        }
        larger
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

/// Says on QEMU's standard error what is wrong.
pub fn complain(what: &str) {
    let line = alloc::format!("insn: {what}\n");
    File {
        descriptor: STDERR,
        open: false,
    }
    .write(line.as_bytes());
}

/// Ends QEMU at once, with its reason on standard error: better no result than a part of one that looks like the whole.
pub fn give_up(reason: &str) -> ! {
    complain(reason);
    // SAFETY: _exit has no preconditions.
    unsafe { _exit(1) }
}

/// Reads a whole file; None where it cannot be read.
pub fn read_file(path: &str) -> Option<Vec<u8>> {
    let path = c_string(path);
    // SAFETY: `path` ends with a zero byte.
    let descriptor = unsafe { open(path.as_ptr().cast(), 0) };
    if descriptor < 0 {
        return None;
    }
    let file = File {
        descriptor,
        open: true,
    };
    let mut content = Vec::new();
    loop {
        content.reserve(1 << 20);
        let spare = content.spare_capacity_mut();
        // SAFETY: `spare` is writable for its length.
        let got = unsafe { read(file.descriptor, spare.as_mut_ptr().cast(), spare.len()) };
        match usize::try_from(got) {
            Ok(0) => return Some(content),
            // SAFETY: read() has filled this many bytes of the spare capacity.
            Ok(got) => unsafe { content.set_len(content.len() + got) },
            Err(_) => return None,
        }
    }
}

/// An open file.
pub struct File {
    descriptor: c_int,
    open: bool,
}

impl File {
    /// Makes the file, or empties it; None where that is not possible.
    pub fn create(path: &str) -> Option<Self> {
        let path = c_string(path);
        // SAFETY: `path` ends with a zero byte; the mode goes with O_CREAT.
        let descriptor =
            unsafe { open(path.as_ptr().cast(), O_WRONLY_CREAT_TRUNC, 0o644 as c_int) };
        (descriptor >= 0).then_some(Self {
            descriptor,
            open: true,
        })
    }

    /// Appends; false where not all of it could be written.
    pub fn write(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            // SAFETY: `bytes` is readable for its length.
            let written = unsafe { write(self.descriptor, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => bytes = &bytes[written..],
                _ => return false,
            }
        }
        true
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.open {
            // SAFETY: opened by us, and closed once.
            unsafe { close(self.descriptor) };
        }
    }
}

fn c_string(text: &str) -> Vec<u8> {
    let mut bytes = String::from(text).into_bytes();
    bytes.push(0);
    bytes
}
