//! A block of code as the machine model knows it: what is told of it when it is translated, and what of that is kept.
//!
//! What is kept has 32 bytes, and stands beside that of the blocks that were translated before and after: thousands of
//! blocks run in turn, and what is read of each of them often is in no cache of the host's that is near.

use crate::kinds::Branch;
use crate::layout::REPEATS;

/// What a block's last instruction makes of translations and of what else is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    #[default]
    None,
    /// A page is mapped elsewhere; which one is not known.
    Page,
    /// Other page tables.
    Tables,
    /// All of them are forgotten.
    All,
    /// None of them; but where indirect branches went is forgotten.
    Targets,
    /// None of them; but the first level of data is emptied.
    Data,
}

/// What is known of a block when it is translated.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Whose it is.
    pub owner: u32,
    /// Where it starts.
    pub address: u64,
    /// Where its code is in memory, in a page as the address is; None where that is not known.
    pub physical: Option<u64>,
    /// Bytes of its code.
    pub length: u64,
    /// Bytes of each access, where it is one repeated string instruction; else of no matter.
    pub width: u8,
    /// What the classes of its instructions cost.
    pub cost: u64,
    /// How its last instruction, which starts at `branch_at`, branches.
    pub branch: Branch,
    /// Where its last instruction starts.
    pub branch_at: u64,
    /// What its last instruction does to translations.
    pub change: Change,
    /// Its last instruction enters the kernel: what follows is no interrupt.
    pub system_call: bool,
    /// The CPU jumps to it: on an interrupt, an exception or a system call.
    pub entry: bool,
}

/// An instruction that uses data.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Whose it is.
    pub owner: u32,
    /// Where it is.
    pub instruction: u64,
}

/// How a block ends: as `Branch` has it, whose target stands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No branch, or one that is not predicted.
    None,
    /// A conditional branch.
    Conditional,
    /// A direct call.
    Call,
    /// A call by a register or from memory.
    IndirectCall,
    /// A jump by a register or from memory.
    IndirectJump,
    /// A near return.
    Return,
}

/// What is kept of a block.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct KeptBlock {
    /// Where it starts.
    pub address: u64,
    /// What the classes of its instructions cost.
    pub cost: u64,
    /// The page of its first byte in memory; NOWHERE.
    page: u32,
    /// How far behind its end its conditional branch leads.
    reach: i32,
    length: u16,
    owner: u16,
    /// Bytes of its last instruction.
    last: u8,
    /// Bytes of each access, where it is one repeated string instruction.
    width: u8,
    /// How it ends.
    pub ending: Ending,
    /// What is seldom so, by bits.
    special: u8,
}

const PAGE_BITS: u32 = 12;
const NOWHERE: u32 = u32::MAX;
/// Bits of `special`: which change is in the lower ones.
const CHANGE: u8 = 7;
const SYSTEM_CALL: u8 = 8;
const ENTRY: u8 = 16;
/// Owners are told apart by 16 bits.
const _: () = assert!(REPEATS <= 1 << 16);

impl Block {
    /// What is kept of it.
    pub fn kept(&self) -> KeptBlock {
        let end = self.address.wrapping_add(self.length);
        let (ending, reach) = match self.branch {
            Branch::None => (Ending::None, 0),
            Branch::Conditional { target } => (Ending::Conditional, target.wrapping_sub(end)),
            Branch::Call => (Ending::Call, 0),
            Branch::IndirectCall => (Ending::IndirectCall, 0),
            Branch::IndirectJump => (Ending::IndirectJump, 0),
            Branch::Return => (Ending::Return, 0),
        };
        let page = self.physical.map(|physical| physical >> PAGE_BITS);
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        KeptBlock {
            address: self.address,
            cost: self.cost,
            page: page.map_or(NOWHERE, |page| page as u32),
            reach: reach as i32,
            length: self.length as u16,
            owner: self.owner as u16,
            last: end.wrapping_sub(self.branch_at) as u8,
            width: self.width,
            ending,
            special: self.change as u8
                | flag(self.system_call, SYSTEM_CALL)
                | flag(self.entry, ENTRY),
        }
    }
}

impl KeptBlock {
    /// Whose it is.
    #[inline]
    pub fn owner(&self) -> usize {
        self.owner.into()
    }

    /// Where it ends.
    #[inline]
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(self.length.into())
    }

    /// Bytes from its first one to its last.
    #[inline]
    pub fn ahead(&self) -> u64 {
        u64::from(self.length.max(1)) - 1
    }

    /// Where its code is in memory; None where that is not known.
    #[inline]
    pub fn physical(&self) -> Option<u64> {
        let within = self.address & ((1 << PAGE_BITS) - 1);
        (self.page != NOWHERE).then(|| u64::from(self.page) << PAGE_BITS | within)
    }

    /// Where its conditional branch leads when it is taken.
    #[inline]
    pub fn target(&self) -> u64 {
        self.end().wrapping_add_signed(self.reach.into())
    }

    /// The last of its instructions.
    pub fn last_site(&self) -> Site {
        Site {
            owner: self.owner.into(),
            instruction: self.branch_at(),
        }
    }

    /// Where its last instruction starts.
    #[inline]
    pub fn branch_at(&self) -> u64 {
        self.end().wrapping_sub(self.last.into())
    }

    /// Bytes of each access, where it is one repeated string instruction.
    #[inline]
    pub fn width(&self) -> u64 {
        self.width.into()
    }

    /// The CPU jumps to it: on an interrupt, an exception or a system call.
    #[inline]
    pub fn is_entry(&self) -> bool {
        self.special & ENTRY != 0
    }

    /// What follows is no interrupt.
    pub fn is_system_call(&self) -> bool {
        self.special & SYSTEM_CALL != 0
    }

    /// Whether its last instruction does anything to translations, or to what else is kept.
    #[inline]
    pub fn changes(&self) -> bool {
        self.special & CHANGE != 0
    }

    /// What it does to them.
    pub fn change(&self) -> Change {
        let all = [
            Change::None,
            Change::Page,
            Change::Tables,
            Change::All,
            Change::Targets,
            Change::Data,
        ];
        all[usize::from(self.special & CHANGE)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Block = Block {
        owner: 34_815,
        address: 0xffff_ffff_8100_0ff0,
        physical: Some(0x12_3456_7ff0),
        length: 0x20,
        width: 8,
        cost: 1 << 40,
        branch: Branch::Conditional {
            target: 0xffff_ffff_8000_0004,
        },
        branch_at: 0xffff_ffff_8100_100a,
        change: Change::None,
        system_call: false,
        entry: false,
    };

    #[test]
    fn what_is_kept_is_what_was_told() {
        let kept = BLOCK.kept();
        assert_eq!(size_of::<KeptBlock>(), 32);
        assert_eq!((kept.owner(), kept.address), (34_815, BLOCK.address));
        assert_eq!(kept.end(), 0xffff_ffff_8100_1010);
        assert_eq!((kept.ahead(), kept.width()), (31, 8));
        assert_eq!(kept.physical(), BLOCK.physical);
        assert_eq!((kept.cost, kept.ending), (1 << 40, Ending::Conditional));
        assert_eq!(kept.target(), 0xffff_ffff_8000_0004);
        assert_eq!(kept.branch_at(), BLOCK.branch_at);
        assert!(!kept.is_entry() && !kept.is_system_call() && !kept.changes());
        let unknown = Block {
            physical: None,
            ..BLOCK
        };
        assert_eq!(unknown.kept().physical(), None);
    }

    #[test]
    fn what_is_seldom_so_is_kept_apart() {
        for change in [
            Change::None,
            Change::Page,
            Change::Tables,
            Change::All,
            Change::Targets,
            Change::Data,
        ] {
            for (system_call, entry) in [(false, true), (true, false), (true, true)] {
                let kept = Block {
                    change,
                    system_call,
                    entry,
                    ..BLOCK
                }
                .kept();
                assert_eq!(kept.change(), change);
                assert_eq!(kept.changes(), change != Change::None);
                assert_eq!(
                    (kept.is_system_call(), kept.is_entry()),
                    (system_call, entry)
                );
            }
        }
    }
}
