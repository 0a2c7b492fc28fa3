//! The guest's page tables, as its CPU walks them: how large a page is, and where the entries are that say so.
//!
//! Formats are those of Intel's Software Developer's Manual, volume 3, section 4.5 (4-level and 5-level paging).

/// Who reads the guest's memory and control registers.
pub trait Memory {
    /// The root of the page tables that are in use, and how many levels there are; None where that cannot be had.
    fn root(&self) -> Option<Root>;
    /// The eight bytes at a physical address; None where that is no memory.
    fn read(&self, physical: u64) -> Option<u64>;
}

/// Where nothing of the guest can be read.
pub struct Unknown;

impl Memory for Unknown {
    fn root(&self) -> Option<Root> {
        None
    }

    fn read(&self, _: u64) -> Option<u64> {
        None
    }
}

/// Where page tables begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The physical address of the first table.
    pub table: u64,
    /// 4 or 5.
    pub levels: usize,
}

impl Root {
    /// As the control registers have it.
    pub fn of(cr3: u64, cr4: u64) -> Self {
        Self {
            table: cr3 & ADDRESS,
            levels: if cr4 & LA57 == 0 { 4 } else { MOST_LEVELS },
        }
    }
}

/// Levels of page tables at most.
pub const MOST_LEVELS: usize = 5;
/// Bits of an address within a page of 4 KiB, 2 MiB and 1 GiB.
pub const SMALL: u32 = 12;
/// 2 MiB.
pub const LARGE: u32 = 21;
/// 1 GiB.
pub const HUGE: u32 = 30;

const BITS: u32 = 9;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const PRESENT: u64 = 1;
const IS_PAGE: u64 = 1 << 7;
/// Control register 4: five levels.
const LA57: u64 = 1 << 12;

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Bits of an address within the page.
    pub bits: u32,
    /// Physical addresses of the entries that were read, the last one first: that which maps the page.
    pub entries: [u64; MOST_LEVELS],
    /// How many they are.
    pub count: usize,
}

/// Walks for an address. None where it is not mapped, or where a table is in no memory.
pub fn walk(memory: &dyn Memory, root: Root, address: u64) -> Option<Walk> {
    let mut found = [0; MOST_LEVELS];
    let mut table = root.table;
    for level in (0..root.levels).rev() {
        let shift = SMALL + BITS * level as u32;
        let place = table + ((address >> shift) & ((1 << BITS) - 1)) * 8;
        let entry = memory.read(place)?;
        if entry & PRESENT == 0 {
            return None;
        }
        found[level] = place;
        let is_page = level == 0 || (level <= 2 && entry & IS_PAGE != 0);
        if is_page {
            found.rotate_left(level);
            return Some(Walk {
                bits: shift,
                entries: found,
                count: root.levels - level,
            });
        }
        table = entry & ADDRESS;
    }
    None
}

#[cfg(test)]
#[allow(missing_docs)]
pub mod tests;
