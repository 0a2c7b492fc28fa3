//! The functions that QEMU calls in place of the C library's.

use crate::c_library::{self, written, Pause, Piece};
use crate::pieces::{Pieces, Taken};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

/// What is kept, and whether a thread is at it.
struct Kept {
    busy: AtomicBool,
    pieces: UnsafeCell<Pieces>,
}

// SAFETY: `with` lets one thread at a time to the pieces.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept {
    busy: AtomicBool::new(false),
    pieces: UnsafeCell::new(Pieces::new()),
};

impl Kept {
    fn with<Answer>(&self, work: impl FnOnce(&mut Pieces) -> Answer) -> Answer {
        while self.busy.swap(true, Ordering::Acquire) {
            c_library::let_others_run();
        }
        // SAFETY: `busy` was false, and is true until the work is done.
        let answer = work(unsafe { &mut *self.pieces.get() });
        self.busy.store(false, Ordering::Release);
        answer
    }
}

fn write_all() {
    KEPT.with(|pieces| pieces.write(written));
}

/// Writes as the C library does; a single byte is kept, and written with those that follow.
///
/// # Safety
/// As writev.
#[no_mangle]
pub unsafe extern "C" fn writev(file: c_int, pieces: *const Piece, count: c_int) -> isize {
    if count == 1 {
        // SAFETY: as required of the caller, there is one.
        let only = unsafe { &*pieces };
        if only.length == 1 {
            // SAFETY: as required of the caller, so many bytes are readable.
            let byte = unsafe { *only.bytes };
            match KEPT.with(|kept| kept.take(file, byte, written)) {
                Taken::Yes => return 1,
                Taken::Broken => return c_library::no_space(),
                Taken::NoPlace => {}
            }
        }
    }
    write_all();
    // SAFETY: as required of the caller.
    unsafe { c_library::writev()(file, pieces, count) }
}

/// Sends as the C library does, after all that is kept was written.
///
/// # Safety
/// As sendmsg.
#[no_mangle]
pub unsafe extern "C" fn sendmsg(socket: c_int, message: *const c_void, flags: c_int) -> isize {
    write_all();
    // SAFETY: as required of the caller.
    unsafe { c_library::sendmsg()(socket, message, flags) }
}

/// Polls as the C library does; what is kept meanwhile is written ten times a second.
///
/// # Safety
/// As ppoll.
#[no_mangle]
pub unsafe extern "C" fn ppoll(
    files: *mut c_void,
    count: u64,
    time: *const Pause,
    signals: *const c_void,
) -> c_int {
    // SAFETY: as required of the caller, a time or null.
    let mut left = unsafe { time.as_ref() }.copied();
    loop {
        write_all();
        let (pause, later) = Pause::first_of(left);
        // SAFETY: as required of the caller, with a time of our own.
        let answer = unsafe { c_library::ppoll()(files, count, &pause, signals) };
        if answer != 0 || later == Some(Pause::NONE) {
            write_all();
            return answer;
        }
        left = later;
    }
}

extern "C" fn at_the_end() {
    write_all();
}

/// Called by the dynamic linker when QEMU exits.
#[used]
#[link_section = ".fini_array"]
static AT_THE_END: extern "C" fn() = at_the_end;
