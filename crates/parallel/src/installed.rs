//! What is set up before the guest runs, and then stays.

use crate::accelerator::Replaced;
use crate::arguments::Arguments;
use crate::c_library::give_up;
use crate::qemu::Qemu;
use alloc::boxed::Box;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// All of it.
pub struct Installed {
    /// QEMU's functions.
    pub qemu: Qemu,
    /// What was asked for.
    pub asked: Arguments,
    /// What stood in the accelerator's table.
    pub replaced: Replaced,
}

/// What the plugin was asked for, until the accelerator is there.
static WAITING: AtomicPtr<(Qemu, Arguments)> = AtomicPtr::new(null_mut());
static INSTALLED: AtomicPtr<Installed> = AtomicPtr::new(null_mut());

/// The plugin is loaded: keeps what it was asked for.
pub fn keep(waiting: (Qemu, Arguments)) -> &'static Qemu {
    let kept = Box::leak(Box::new(waiting));
    WAITING.store(kept, SeqCst);
    &kept.0
}

/// What `keep` kept, once; None where it did not, or it was taken.
pub fn taken() -> Option<(Qemu, Arguments)> {
    let waiting = WAITING.swap(null_mut(), SeqCst);
    match waiting.is_null() {
        true => None,
        // SAFETY: a box that was leaked, and is taken once: nothing has been translated yet, which would have lent it.
        false => Some(*unsafe { Box::from_raw(waiting) }),
    }
}

/// All is set up.
pub fn complete(installed: Installed) {
    INSTALLED.store(Box::leak(Box::new(installed)), SeqCst);
}

/// Whether the guest's clock is ours.
pub fn is_complete() -> bool {
    !INSTALLED.load(SeqCst).is_null()
}

/// What is set up. Ends QEMU where it is not: then the object was not preloaded.
pub fn get() -> &'static Installed {
    // SAFETY: null, or a box that was leaked.
    match unsafe { INSTALLED.load(SeqCst).as_ref() } {
        Some(installed) => installed,
        None => give_up(
            1,
            "the guest runs, and its clock is still the host's: preload this object as well (LD_PRELOAD)",
        ),
    }
}
