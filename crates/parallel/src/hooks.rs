//! What QEMU calls while the guest runs. All of it comes from the CPUs' thread.

use crate::clocks::{self, in_cpus_thread, START};
use crate::engine::{interrupted, Engine};
use crate::installed;
use crate::instructions::{recognised, Instruction};
use crate::lines::is_locked;
use crate::qemu::{Cpu, Id, OnExecution, Qemu, LOADS_AND_STORES};
use crate::tally::Block;
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

struct OfCpusThread(UnsafeCell<Option<alloc::boxed::Box<Engine>>>);

// SAFETY: only the CPUs' thread reaches into it (`engine`).
unsafe impl Sync for OfCpusThread {}

static ENGINE: OfCpusThread = OfCpusThread(UnsafeCell::new(None));

/// The engine, once the guest has run.
///
/// # Safety
/// In the CPUs' thread, and not while it is borrowed.
unsafe fn engine() -> Option<&'static mut Engine> {
    // SAFETY: as required of the caller.
    unsafe { (*ENGINE.0.get()).as_deref_mut() }
}

// The place in the translated code that a block's hook returns to: the hook's third argument.
global_asm!(
    "ktrial_block_starts:",
    "mov rdx, [rsp]",
    "jmp {starts}",
    starts = sym starts,
);

extern "C" {
    fn ktrial_block_starts(vcpu: u32, data: usize);
    fn ktrial_counted_block_starts(vcpu: u32, data: usize);
}

// The same, where functions are counted: another hook, so that the usual one has nothing to ask.
global_asm!(
    "ktrial_counted_block_starts:",
    "mov rdx, [rsp]",
    "jmp {starts}",
    starts = sym counted_starts,
);

// The same for one instruction that must be the first of its block.
global_asm!(
    "ktrial_is_not_first:",
    "mov rdx, [rsp]",
    "jmp {is_not_first}",
    is_not_first = sym is_not_first,
);

extern "C" {
    fn ktrial_is_not_first(vcpu: u32, left: usize);
}

unsafe extern "C" fn is_not_first(_: u32, left: usize, back: usize) {
    // SAFETY: as in `starts`.
    if let Some(engine) = unsafe { engine() } {
        engine.is_not_first(left, back);
    }
}

unsafe extern "C" fn begins_again(_: u32, _: u32, _: u64, _: usize) {
    // SAFETY: as in `starts`.
    if let Some(engine) = unsafe { engine() } {
        engine.begins_again();
    }
}

unsafe extern "C" fn starts(_: u32, length: usize, back: usize) {
    // SAFETY: QEMU calls this in the CPUs' thread, where nothing else borrows the engine.
    if let Some(engine) = unsafe { engine() } {
        engine.block(length, back);
    }
}

unsafe extern "C" fn counted_starts(_: u32, block: usize, back: usize) {
    // SAFETY: as in `starts`.
    if let Some(engine) = unsafe { engine() } {
        engine.counted_block(Block::of(block), back);
    }
}

/// The engine, made as the guest's first block is translated.
///
/// # Safety
/// As `engine`.
unsafe fn engine_from_now_on() -> &'static mut Engine {
    // SAFETY: as required of the caller.
    let place = unsafe { &mut *ENGINE.0.get() };
    let installed = installed::get();
    place.get_or_insert_with(|| Engine::new(&installed.qemu, &installed.asked))
}

unsafe extern "C" fn halts(_: u32, _: usize) {
    // SAFETY: as in `starts`.
    if let Some(engine) = unsafe { engine() } {
        engine.halts();
    }
}

unsafe extern "C" fn pauses(_: u32, _: usize) {
    // SAFETY: as in `starts`.
    if let Some(engine) = unsafe { engine() } {
        engine.pauses();
    }
}

unsafe extern "C" fn locks(_: u32, access: u32, address: u64, _: usize) {
    let qemu = &installed::get().qemu;
    // SAFETY: what QEMU says of this access, while it is done.
    unsafe {
        if !(qemu.is_store)(access) {
            return;
        }
        let place = (qemu.place)(access, address);
        if place.is_null() || (qemu.is_device)(place) {
            return;
        }
        if let Some(engine) = engine() {
            engine.locks((qemu.physical)(place));
        }
    }
}

unsafe extern "C" fn marks(_: u32, mark: usize) {
    // SAFETY: as in `starts`.
    if let Some(engine) = unsafe { engine() } {
        engine.marks(mark as u32, (mark >> 32) as u64);
    }
}

/// Whether time was moved on, instead of the wait of the CPUs' thread: all CPUs are idle.
///
/// # Safety
/// In the CPUs' thread.
pub unsafe fn skips_idle_time(qemu: &Qemu) -> bool {
    // SAFETY: both only read.
    if !unsafe { (qemu.machine_runs)() && (qemu.all_idle)() } {
        return false;
    }
    // SAFETY: as in `starts`: QEMU waits outside of the translated code.
    unsafe { engine() }.is_some_and(|engine| engine.all_are_idle())
}

/// QEMU hands an interrupt to a CPU.
///
/// # Safety
/// As QEMU calls it.
pub unsafe extern "C" fn interrupt(cpu: *mut Cpu, mask: c_int) {
    let time = match in_cpus_thread() {
        true => clocks::own(),
        false => START.load(Relaxed),
    };
    interrupted(cpu, time);
    // SAFETY: as required of the caller.
    unsafe { (installed::get().replaced.interrupt)(cpu, mask) }
}

/// A block is being translated.
///
/// # Safety
/// As QEMU calls it.
pub unsafe extern "C" fn translated(_: Id, block: *mut c_void) {
    let qemu = &installed::get().qemu;
    // SAFETY: QEMU's block, during translation; the hooks live as long as the process.
    unsafe {
        let length = (qemu.length)(block);
        let engine = engine_from_now_on();
        match &mut engine.counting {
            None => (qemu.on_block)(block, ktrial_block_starts, 0, length),
            Some(counting) => {
                let first = (qemu.instruction)(block, 0);
                let address = (qemu.address)(block);
                let counted = counting.translated(address, page(qemu, first, address), length);
                (qemu.on_block)(block, ktrial_counted_block_starts, 0, counted.word());
            }
        }
        let has_lines = engine.lines.is_some();
        for index in 0..length {
            let instruction = (qemu.instruction)(block, index);
            hook(qemu, instruction, (index, length - index), has_lines);
        }
    }
}

/// The page of the guest's memory that holds the instruction at this address; None where that is no RAM.
///
/// # Safety
/// QEMU's instruction, during translation.
unsafe fn page(qemu: &Qemu, instruction: *mut c_void, address: u64) -> Option<&'static [u8; 4096]> {
    // SAFETY: as required of the caller.
    let host = unsafe { (qemu.host_address)(instruction) };
    let within = address as usize & 0xfff;
    if host.is_null() || host as usize & 0xfff != within {
        return None;
    }
    // SAFETY: guest RAM is mapped in whole pages, and as long as QEMU runs. The one thread that could change it is the
    // one that is translating.
    Some(unsafe { &*host.sub(within).cast() })
}

/// # Safety
/// QEMU's instruction, during translation. `place`: instructions of the block before this one, and from it on. `has_lines`:
/// cache lines are held by CPUs.
unsafe fn hook(qemu: &Qemu, instruction: *mut c_void, place: (usize, usize), has_lines: bool) {
    let (before, left) = place;
    let mut bytes = [0; 16];
    // SAFETY: as required of the caller.
    let bytes = unsafe { qemu.bytes(instruction, &mut bytes) };
    if has_lines && is_locked(bytes) {
        // SAFETY: as required of the caller; the hook lives as long as the process.
        unsafe { (qemu.on_access)(instruction, locks, 0, LOADS_AND_STORES, 0) };
    }
    let (hook, data): (OnExecution, usize) = match recognised(bytes) {
        Instruction::Halt => (halts, 0),
        Instruction::Pause => (pauses, 0),
        Instruction::Mark(number) => (marks, number as usize | left << 32),
        Instruction::ExchangePair if before > 0 && qemu.mistakes_flags() => {
            // SAFETY: as above.
            unsafe { (qemu.on_access)(instruction, begins_again, 0, LOADS_AND_STORES, 0) };
            (ktrial_is_not_first, left)
        }
        Instruction::ExchangePair | Instruction::Other => return,
    };
    // SAFETY: as required of the caller; the hook lives as long as the process.
    unsafe { (qemu.on_instruction)(instruction, hook, 0, data) };
}
