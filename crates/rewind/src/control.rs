//! The page that ktrial shares: what it asks for, and the answer. `ktrial.machines.qemu.kept` writes it.

use crate::c_library;
use core::ffi::{c_char, CStr};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

/// The variable that names the file with the page.
const VARIABLE: &CStr = c"KTRIAL_REWIND";

/// Back to the snapshot.
pub const REWIND: u32 = 1;
/// Another plan.
pub const PLAN: u32 = 2;

/// Nothing is left to be done.
pub const DONE: u32 = 1;
/// The guest runs.
pub const RUNS: u32 = 2;
/// The kernel's own pages cannot be told.
pub const NO_PAGES: u32 = 3;
/// Code has run that a process must not keep.
pub const OTHER_CODE: u32 = 4;
/// QEMU does not load the state.
pub const NO_STATE: u32 = 5;
/// QEMU has a function less than is needed, or nobody counts.
pub const NO_FUNCTION: u32 = 6;
/// What counts has no room for another trial.
pub const NO_ROOM: u32 = 7;
/// What was counted last may be other than in a process of its own.
pub const DOUBTFUL: u32 = 8;

/// Most ranges of code after which a process is not kept.
const MOST_RANGES: usize = 8;

/// The page, and the plan behind it.
#[repr(C)]
pub struct Control {
    /// What is asked for; 0: nothing.
    pub command: AtomicU32,
    /// What became of it.
    pub answer: AtomicU32,
    /// Bytes of the plan.
    pub plan_length: u32,
    /// How many ranges there are.
    ranges: u32,
    /// Where code begins and ends that a process must not keep.
    code: [[u64; 2]; MOST_RANGES],
    /// Path of the file with the snapshot's state, and the name of the plan in fw_cfg; both end in NUL.
    pub state: [c_char; 64],
    /// See `state`.
    pub plan_name: [c_char; 64],
    /// The plan's beginning.
    pub plan: [u8; 0],
}

impl Control {
    /// Whether this code must not be kept.
    pub fn forbids(&self, address: u64) -> bool {
        let ranges = self.code.iter().take(self.ranges as usize);
        ranges
            .into_iter()
            .any(|range| (range[0]..range[1]).contains(&address))
    }
}

static SHARED: AtomicPtr<Control> = AtomicPtr::new(null_mut());

#[used]
#[link_section = ".init_array"]
static AT_START: extern "C" fn() = open;

/// Before the program begins, and before it gives up its rights.
extern "C" fn open() {
    if let Some(mapped) = c_library::variable(VARIABLE).and_then(c_library::shared_file) {
        SHARED.store(mapped.cast(), SeqCst);
    }
}

/// The page; None where this process is not to be kept.
pub fn shared() -> Option<&'static Control> {
    // SAFETY: mapped once, at least as long as the page, and never taken away; ktrial writes to it only while QEMU waits.
    unsafe { SHARED.load(SeqCst).as_ref() }
}
