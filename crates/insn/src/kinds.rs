//! What an instruction is to the machine model: the class that it costs by, and how it branches.
//!
//! Opcodes are those of Intel's Software Developer's Manual, volume 2, appendix A (opcode maps).

use crate::decode::Prefixes;

/// Instructions that cost more than the others, by what makes them costly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// All others.
    Plain,
    /// `div`, `idiv`.
    Divide,
    /// With `lock`, or `xchg` with memory.
    Locked,
    /// `lfence`, `mfence`, `sfence`.
    Fence,
    /// `pause`.
    Pause,
    /// `rdtsc`, `rdtscp`.
    ReadClock,
    /// `cpuid`.
    Cpuid,
    /// `rdmsr`.
    ReadMsr,
    /// `wrmsr`.
    WriteMsr,
    /// `wrmsr` to IA32_SPEC_CTRL: IBRS, STIBP and SSBD are switched.
    SpeculationControl,
    /// `wrmsr` to IA32_PRED_CMD: IBPB, a barrier behind which no indirect branch is predicted by what was learned before.
    PredictionBarrier,
    /// `wrmsr` to IA32_FLUSH_CMD: the first level of data is emptied.
    FlushData,
    /// `invlpg`, `invpcid`.
    InvalidatePage,
    /// `mov` to `cr3`.
    SwitchTables,
    /// `mov` to another control register.
    ControlRegister,
    /// `swapgs`.
    SwapGs,
    /// `verw`: what it costs where it clears buffers.
    ClearBuffers,
    /// `in`, `out` and their string forms: an access to a device.
    Port,
    /// `syscall`.
    SystemCall,
    /// `sysret`, `sysexit`.
    SystemReturn,
    /// `iret`.
    InterruptReturn,
}

/// How many classes there are.
pub const CLASSES: usize = Class::InterruptReturn as usize + 1;

/// Where a block may go on after its last instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// Behind it, or where a direct jump leads: nothing is predicted.
    None,
    /// Behind it, or at the target.
    Conditional {
        /// Where it leads when it is taken.
        target: u64,
    },
    /// A direct call: its target is known.
    Call,
    /// A call by a register or from memory.
    IndirectCall,
    /// A jump by a register or from memory.
    IndirectJump,
    /// A near return.
    Return,
}

/// The class of the instruction in `bytes` (exactly one); `register`: what is known of ecx.
pub fn class(bytes: &[u8], register: Option<u32>) -> Class {
    let prefixes = Prefixes::read(bytes);
    if prefixes.lock {
        return Class::Locked;
    }
    match &bytes[prefixes.length.min(bytes.len())..] {
        [0x0f, 0x30, ..] => written(register),
        [0x0f, rest @ ..] => two_bytes(rest),
        [0x86 | 0x87, modrm, ..] if modrm < &0xc0 => Class::Locked,
        [0xf6 | 0xf7, modrm, ..] if extension(*modrm) >= 6 => Class::Divide,
        [0x90, ..] if prefixes.repeat => Class::Pause,
        [0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f, ..] => Class::Port,
        [0xcf, ..] => Class::InterruptReturn,
        _ => Class::Plain,
    }
}

/// What is known of the register that the next `wrmsr` writes, after the instruction in `bytes` (exactly one).
pub fn selected(bytes: &[u8], before: Option<u32>) -> Option<u32> {
    match bytes {
        [0xb9, a, b, c, d] => Some(u32::from_le_bytes([*a, *b, *c, *d])),
        [0x31 | 0x33, 0xc9] => Some(0),
        // Other moves to ecx: `mov ecx, r/m`, `mov r/m, r` with ecx as r/m, `pop rcx`; with a prefix, too.
        [0x8b, modrm, ..] | [0x40..=0x4f, 0x8b, modrm, ..] if extension(*modrm) == 1 => None,
        [0x89, modrm, ..] | [0x40..=0x4f, 0x89, modrm, ..] if modrm & 0xc7 == 0xc1 => None,
        [0x59] => None,
        _ => before,
    }
}

/// The class of a `wrmsr` to this register (Intel's manual, volume 4).
fn written(register: Option<u32>) -> Class {
    match register {
        Some(0x48) => Class::SpeculationControl,
        Some(0x49) => Class::PredictionBarrier,
        Some(0x10b) => Class::FlushData,
        _ => Class::WriteMsr,
    }
}

/// How the instruction in `bytes` (exactly one), which ends at `end`, branches.
pub fn branch(bytes: &[u8], end: u64) -> Branch {
    let prefixes = Prefixes::read(bytes);
    match bytes[prefixes.length.min(bytes.len())..] {
        [0x70..=0x7f | 0xe0..=0xe3, offset] => conditional(end, i64::from(offset as i8)),
        [0x0f, 0x80..=0x8f, a, b, c, d] => {
            conditional(end, i64::from(i32::from_le_bytes([a, b, c, d])))
        }
        [0xe8, ..] => Branch::Call,
        [0xc2 | 0xc3, ..] => Branch::Return,
        [0xff, modrm, ..] => match extension(modrm) {
            2 => Branch::IndirectCall,
            4 => Branch::IndirectJump,
            _ => Branch::None,
        },
        _ => Branch::None,
    }
}

/// At most so many bytes the instruction in `bytes` (exactly one) reads or writes in one access: vectors more than others.
/// QEMU does what is longer in several.
pub fn longest_access(bytes: &[u8]) -> u64 {
    let prefixes = Prefixes::read(bytes);
    match bytes[prefixes.length.min(bytes.len())..] {
        [0x0f, 0x40..=0x4f | 0x90..=0x9f | 0xa3..=0xa5 | 0xab..=0xad | 0xaf..=0xb7 | 0xba..=0xc1, ..] => {
            8
        }
        [0x0f | 0x62 | 0xc4 | 0xc5, ..] => 16,
        _ => 8,
    }
}

fn conditional(end: u64, offset: i64) -> Branch {
    Branch::Conditional {
        target: end.wrapping_add_signed(offset),
    }
}

fn two_bytes(rest: &[u8]) -> Class {
    match rest {
        [0x00, modrm, ..] if extension(*modrm) == 5 => Class::ClearBuffers,
        [0x01, 0xf8, ..] => Class::SwapGs,
        [0x01, 0xf9, ..] | [0x31, ..] => Class::ReadClock,
        [0x01, modrm, ..] if extension(*modrm) == 7 && modrm < &0xc0 => Class::InvalidatePage,
        [0x38, 0x82, ..] => Class::InvalidatePage,
        [0x05, ..] => Class::SystemCall,
        [0x07 | 0x35, ..] => Class::SystemReturn,
        [0x22, modrm, ..] if extension(*modrm) == 3 => Class::SwitchTables,
        [0x22, ..] => Class::ControlRegister,
        [0x32, ..] => Class::ReadMsr,
        [0xa2, ..] => Class::Cpuid,
        [0xae, 0xe8..=0xff, ..] => Class::Fence,
        _ => Class::Plain,
    }
}

fn extension(modrm: u8) -> u8 {
    (modrm >> 3) & 7
}

#[cfg(test)]
mod tests;
