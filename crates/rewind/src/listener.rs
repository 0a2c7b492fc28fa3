//! What counts in this process (crates/insn) begins anew with the guest.

use crate::control::{DONE, DOUBTFUL, NO_FUNCTION, NO_ROOM};
use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Begins anew. 0: it may count another trial; 1: it may not; 2: nor is what it counted last to be believed.
type Listener = extern "C" fn() -> c_int;

static LISTENER: AtomicUsize = AtomicUsize::new(0);

/// The plugin says, as QEMU loads it, how it is told.
#[no_mangle]
pub extern "C" fn rewind_listen(listener: Listener) {
    LISTENER.store(listener as usize, SeqCst);
}

/// Tells it. The answer is one of `control`'s.
pub fn anew() -> u32 {
    let listener = LISTENER.load(SeqCst);
    if listener == 0 {
        return NO_FUNCTION;
    }
    // SAFETY: stored by `rewind_listen`.
    let listener = unsafe { transmute::<usize, Listener>(listener) };
    match listener() {
        0 => DONE,
        1 => NO_ROOM,
        _ => DOUBTFUL,
    }
}
