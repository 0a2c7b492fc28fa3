//! Two levels of translation buffers: one for instructions and one for data, and a second level for both.
//!
//! Pages of 4 KiB, 2 MiB and 1 GiB share the buffers. A change of page tables makes all translations of programs unknown;
//! those of the kernel are global and stay.
//!
//! Where the guest's page tables cannot be read, sizes of pages are told by their address: where Linux maps its image,
//! all of memory and the array of its pages (Documentation/arch/x86/x86_64/mm.rst), they are of 2 MiB, elsewhere of 4 KiB.

use crate::page_tables::{HUGE, LARGE, SMALL};
use crate::set_associative::Sets;
use core::ops::RangeInclusive;

/// Entries and ways of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Translations that it keeps.
    pub entries: u64,
    /// Of them, those that share a set.
    pub ways: u64,
}

impl Size {
    /// An empty buffer of this size.
    pub fn buffer(self) -> Sets {
        Sets::new(self.entries / self.ways, self.ways)
    }
}

/// The three buffers' sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// First level, instructions.
    pub code: Size,
    /// First level, data.
    pub data: Size,
    /// Second level, both.
    pub second: Size,
}

/// How a translation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In the first level.
    First,
    /// In the second.
    Second,
    /// In the page tables.
    Walked,
}

/// Where pages are of 2 MiB: the image, then the mapping of all memory and the array of pages, each with four and with
/// five levels of page tables.
const LARGE_PAGES: [RangeInclusive<u64>; 5] = [
    0xffff_ffff_8000_0000..=0xffff_ffff_9fff_ffff,
    0xffff_8880_0000_0000..=0xffff_c87f_ffff_ffff,
    0xffff_ea00_0000_0000..=0xffff_eaff_ffff_ffff,
    0xff11_0000_0000_0000..=0xff90_ffff_ffff_ffff,
    0xffd4_0000_0000_0000..=0xffd5_ffff_ffff_ffff,
];

/// Marks keys of the kernel's pages, and of larger ones. The number of a page of 2 MiB has at most 36 bits.
const KERNEL: u64 = 1 << 63;
const LARGE_KEY: u64 = 1 << 62;
const HUGE_KEY: u64 = LARGE_KEY | 1 << 40;
/// Bits that addresses have, without those that repeat the highest.
const WITHIN: u64 = (1 << 57) - 1;
/// A program's page number has at most 45 bits (57-bit addresses); above it stands whose tables it is of.
const SPACE: u32 = 45;
const SPACES: u64 = 1 << 17;

/// How many bits an address has within its page, as far as the address tells.
pub fn bits_by_address(address: u64) -> u32 {
    let large = LARGE_PAGES.iter().any(|pages| pages.contains(&address));
    if large {
        LARGE
    } else {
        SMALL
    }
}

/// The buffers.
pub struct Translation {
    code: Sets,
    data: Sets,
    second: Sets,
    space: u64,
}

impl Translation {
    /// Empty ones.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            code: sizes.code.buffer(),
            data: sizes.data.buffer(),
            second: sizes.second.buffer(),
            space: 0,
        }
    }

    /// What the page of so many bits that holds `address` is called here: the same for all addresses within it.
    pub fn key(&self, address: u64, bits: u32) -> u64 {
        let number = (address & WITHIN) >> bits;
        let size = match bits {
            HUGE => HUGE_KEY,
            LARGE => LARGE_KEY,
            _ => 0,
        };
        let whose = if address < KERNEL {
            self.space << SPACE
        } else {
            KERNEL
        };
        number | size | whose
    }

    /// Instructions of the page `key` are fetched.
    pub fn fetch(&mut self, key: u64) -> Found {
        if self.code.touch(key) {
            return Found::First;
        }
        self.beyond_first(key)
    }

    /// Data of the page `key` is used.
    pub fn access(&mut self, key: u64) -> Found {
        if self.data.touch(key) {
            return Found::First;
        }
        self.beyond_first(key)
    }

    /// The data translation `key`, which is known to be in the first level, is used.
    pub fn use_again(&mut self, key: u64) {
        self.data.touch(key);
    }

    /// The set of first-level data translations that `key` belongs to.
    pub fn data_set(&self, key: u64) -> usize {
        self.data.set(key)
    }

    /// Other page tables are used from here on: programs' translations are not those that were kept.
    pub fn switch(&mut self) {
        self.space += 1;
        if self.space == SPACES {
            self.flush();
        }
    }

    /// Nothing is kept, global translations neither.
    pub fn flush(&mut self) {
        self.space = 0;
        self.code.clear();
        self.data.clear();
        self.second.clear();
    }

    fn beyond_first(&mut self, key: u64) -> Found {
        if self.second.touch(key) {
            Found::Second
        } else {
            Found::Walked
        }
    }
}

#[cfg(test)]
mod tests;
