//! The accelerator's operations, a table of functions in QEMU: two are put in, and one is put in front of another.
//!
//! Where in the table they stand differs between versions. The place is found by what is there, and tried.

use crate::c_library::is_function;
use crate::clocks;
use crate::qemu::{Cpu, Qemu};
use alloc::string::String;
use core::ffi::{c_int, c_void, CStr};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The table has its first functions behind QEMU's object header, and ends long before this many words.
const WORDS: usize = 32;
/// The clocks stand this close behind the interrupts.
const BEHIND: usize = 4;
/// What `tried` answers: no clock does.
const ODD: i64 = 0x6b74_7269_616c_0001;

type Interrupt = unsafe extern "C" fn(*mut Cpu, c_int);

/// What was there before.
pub struct Replaced {
    /// QEMU's own handling of an interrupt.
    pub interrupt: Interrupt,
}

static ANSWER: AtomicI64 = AtomicI64::new(0);

extern "C" fn tried() -> i64 {
    ANSWER.load(Relaxed)
}

/// Puts the guest's clocks in, and `interrupt` in front of QEMU's. An error says what is not as it should be.
///
/// # Safety
/// The accelerator is there, and the guest has not run.
pub unsafe fn take_over(qemu: &Qemu, interrupt: Interrupt) -> Result<Replaced, String> {
    // SAFETY: it only reads.
    let table = unsafe { (qemu.operations)() };
    // SAFETY: as required of the caller; the object header and the functions are longer than that.
    let words = unsafe { core::slice::from_raw_parts(table, WORDS) };
    for name in [c"rr_start_vcpu_thread", c"rr_kick_vcpu_thread"] {
        place(words, name).ok_or(
            "the CPUs do not take turns in one thread: -accel tcg,thread=single is needed",
        )?;
    }
    let at = place(words, c"tcg_handle_interrupt").ok_or(
        "QEMU handles interrupts otherwise than without -icount: it cannot be used beside parallel time",
    )?;
    // SAFETY: that is the function of this name.
    let replaced = unsafe { core::mem::transmute::<*mut c_void, Interrupt>(words[at]) };
    // SAFETY: `table` as above.
    unsafe {
        put_clock(table, at, qemu.clock)?;
        put_clock(table, at, qemu.ticks)?;
        table.add(at).write(interrupt as *mut c_void);
    }
    Ok(Replaced {
        interrupt: replaced,
    })
}

fn place(words: &[*mut c_void], name: &CStr) -> Option<usize> {
    words.iter().position(|&word| is_function(word, name))
}

/// Puts the guest's time where `reader` is seen to read it.
///
/// # Safety
/// The table is QEMU's, and `at` the place of its interrupts.
unsafe fn put_clock(
    table: *mut *mut c_void,
    at: usize,
    reader: unsafe extern "C" fn() -> i64,
) -> Result<(), &'static str> {
    for offset in 1..=BEHIND {
        // SAFETY: as required of the caller; the table is longer.
        let place = unsafe { table.add(at + offset) };
        // SAFETY: as above.
        if unsafe { *place }.is_null() {
            // SAFETY: an empty place, which holds a function or nothing; nobody but us runs.
            unsafe { place.write(tried as *mut c_void) };
            if answers(reader) {
                // SAFETY: as above: this is where the clock's function stands.
                unsafe { place.write(clocks::now as *mut c_void) };
                return Ok(());
            }
            // SAFETY: as above.
            unsafe { place.write(null_mut()) };
        }
    }
    Err("the guest's clock has no place of its own in this QEMU, or has one already (-icount)")
}

/// Whether the reader says what `tried` is told to say, twice.
fn answers(reader: unsafe extern "C" fn() -> i64) -> bool {
    [ODD, ODD + 1].into_iter().all(|number| {
        ANSWER.store(number, Relaxed);
        // SAFETY: it only reads the clock.
        unsafe { reader() == number }
    })
}
