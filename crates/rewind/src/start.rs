//! The way back to the snapshot, step by step.

use crate::c_library::{self, change_code, drop_pages, memory, opened, read_at, PAGE};
use crate::control::{Control, DONE, NO_FUNCTION, NO_PAGES, NO_STATE, OTHER_CODE, RUNS};
use crate::listener::anew;
use crate::pages::own;
use crate::qemu::{Qemu, Translated};
use core::ffi::{c_int, c_void, CStr};
use core::ptr::{copy_nonoverlapping, from_mut};

/// The guest's memory, as ktrial calls it.
const RAM: &CStr = c"ram";
const PAGEMAP: &CStr = c"/proc/self/pagemap";
/// How many of pagemap's words are looked at together: 2 MiB of memory.
const TOGETHER: usize = 512;
/// `ret`
const RETURN: u8 = 0xc3;

/// Back to the snapshot. The answer is one of `control`'s.
///
/// # Safety
/// In the main thread, which has no lock of QEMU's.
pub unsafe fn back_to_start(control: &Control) -> u32 {
    let (Some(qemu), Some(flush)) = (Qemu::find(), c_library::symbol(c"tb_flush")) else {
        return NO_FUNCTION;
    };
    // SAFETY: as required of the caller; the guest stands still, as long as the big lock is held.
    unsafe {
        (qemu.qemu_mutex_lock_iothread_impl)(c"rewind".as_ptr(), 0);
        let answer = if (qemu.runstate_is_running)() {
            RUNS
        } else {
            // QEMU throws away all translations when it has loaded a state, whose memory is another's. This is not.
            let was = change_code(flush.cast(), RETURN);
            let answer = all_steps(&qemu, control);
            change_code(flush.cast(), was);
            answer
        };
        (qemu.qemu_mutex_unlock_iothread)();
        answer
    }
}

/// # Safety
/// In the main thread, with the big lock, the guest stopped.
unsafe fn all_steps(qemu: &Qemu, control: &Control) -> u32 {
    // SAFETY: as required of the caller.
    unsafe {
        qemu.reset();
        if !drop_written(qemu) {
            return NO_PAGES;
        }
        let mut look = Look {
            control,
            forbidden: false,
        };
        (qemu.tcg_tb_foreach)(see, from_mut(&mut look).cast());
        if look.forbidden {
            return OTHER_CODE;
        }
        let Some(state) = opened(control.state.as_ptr()) else {
            return NO_STATE;
        };
        if !qemu.load(state) {
            return NO_STATE;
        }
        qemu.become_(c"paused");
    }
    anew()
}

/// The guest does this next.
///
/// # Safety
/// As `back_to_start`.
pub unsafe fn give_plan(control: &Control) -> u32 {
    let length = control.plan_length as usize;
    let (Some(qemu), Some(plan)) = (Qemu::find(), memory(length)) else {
        return NO_FUNCTION;
    };
    // SAFETY: ktrial has written so many bytes behind the page; QEMU keeps the copy, and what it had before is the C
    // library's memory.
    unsafe {
        copy_nonoverlapping(control.plan.as_ptr(), plan.cast(), length);
        (qemu.qemu_mutex_lock_iothread_impl)(c"rewind".as_ptr(), 0);
        let before = (qemu.fw_cfg_modify_file)(
            (qemu.fw_cfg_find)(),
            control.plan_name.as_ptr(),
            plan,
            length,
        );
        (qemu.g_free)(before);
        (qemu.qemu_mutex_unlock_iothread)();
    }
    DONE
}

/// Drops the pages that the guest has written to, and what was translated of them. False where they cannot be told.
///
/// # Safety
/// As `all_steps`.
unsafe fn drop_written(qemu: &Qemu) -> bool {
    // SAFETY: as required of the caller; the block is there, ktrial names it.
    unsafe {
        let block = (qemu.qemu_ram_block_by_name)(RAM.as_ptr());
        if block.is_null() {
            return false;
        }
        let start = (qemu.qemu_ram_get_host_addr)(block);
        let count = (qemu.qemu_ram_get_used_length)(block) / PAGE;
        let address = (qemu.qemu_ram_addr_from_host)(start);
        let mut words = [0; TOGETHER];
        for first in (0..count).step_by(TOGETHER) {
            let words = &mut words[..TOGETHER.min(count - first)];
            let place = (start as usize / PAGE + first) * size_of::<u64>();
            if !read_at(PAGEMAP, words, place as u64) {
                return false;
            }
            for run in own(words) {
                let (from, size) = ((first + run.start) * PAGE, run.len() * PAGE);
                let place = address + from as u64;
                (qemu.tb_invalidate_phys_range)(place, place + size as u64);
                drop_pages(start.add(from), size);
            }
        }
    }
    true
}

/// Whether code was translated that a process must not keep.
struct Look<'a> {
    control: &'a Control,
    forbidden: bool,
}

extern "C" fn see(_: *mut c_void, translated: *const Translated, look: *mut c_void) -> c_int {
    // SAFETY: one of QEMU's translations, and what `all_steps` gave.
    let (block, look) = unsafe { (&*translated, &mut *look.cast::<Look<'_>>()) };
    look.forbidden |= look.control.forbids(block.address);
    0
}
