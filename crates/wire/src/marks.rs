//! Marks in a workload's instruction stream, which the QEMU plugin sees when it translates them.
//!
//! A mark is the 7-byte `nopl imm32(%rax)`, `0f 1f 80` and the constant: a NOP on any x86-64 CPU and under any
//! emulator, and one that no compiler emits (they pad with an offset of zero). Each counts as one instruction.

use core::arch::asm;

/// The bytes that come before a mark's constant (little-endian).
pub const PREFIX: [u8; 3] = [0x0f, 0x1f, 0x80];
/// The measured region begins after this instruction.
pub const REGION_BEGIN: u32 = 0x4b54_0001;
/// The measured region ends before this instruction.
pub const REGION_END: u32 = 0x4b54_0002;
/// One operation of the workload is complete.
pub const OPERATION: u32 = 0x4b54_0003;
/// The agent's: what follows belongs to another run of a program.
pub const NEXT_RUN: u32 = 0x4b54_0004;
/// The agent's: the program is about to start.
pub const RUN_BEGIN: u32 = 0x4b54_0005;
/// The agent's: the program has ended.
pub const RUN_END: u32 = 0x4b54_0006;

macro_rules! mark {
    ($constant:ident) => {
        // SAFETY: a NOP: it reads and writes neither registers, flags nor memory. `nomem` is left out on purpose, so
        // that the compiler moves no memory access across the mark.
        unsafe {
            asm!(
                ".byte 0x0f, 0x1f, 0x80",
                ".long {constant}",
                constant = const $constant,
                options(nostack, preserves_flags)
            )
        }
    };
}

/// Mark the beginning of the measured region.
#[inline(always)]
pub fn region_begin() {
    mark!(REGION_BEGIN);
}

/// Mark the end of the measured region.
#[inline(always)]
pub fn region_end() {
    mark!(REGION_END);
}

/// Mark that what follows belongs to another run. The agent's.
#[inline(always)]
pub fn next_run() {
    mark!(NEXT_RUN);
}

/// Mark that the program is about to start. The agent's.
#[inline(always)]
pub fn run_begin() {
    mark!(RUN_BEGIN);
}

/// Mark that the program has ended. The agent's.
#[inline(always)]
pub fn run_end() {
    mark!(RUN_END);
}

/// Mark that one operation is complete.
#[inline(always)]
pub fn operation() {
    mark!(OPERATION);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn marked() {
        region_begin();
        operation();
        region_end();
    }

    #[test]
    fn the_marks_are_in_the_code_in_order() {
        marked();
        // SAFETY: the code of this program is readable, and longer than 64 bytes from here on.
        let code = unsafe { core::slice::from_raw_parts(marked as *const u8, 64) };
        let found: Vec<u32> = code
            .windows(7)
            .filter(|window| window[..3] == PREFIX)
            .map(|window| u32::from_le_bytes([window[3], window[4], window[5], window[6]]))
            .collect();
        assert_eq!(found[..3], [REGION_BEGIN, OPERATION, REGION_END]);
    }
}
