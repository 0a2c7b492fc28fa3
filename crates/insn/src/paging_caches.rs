//! The paging-structure caches: what of the upper levels of page tables a walk need not read again.
//!
//! Intel's Software Developer's Manual, volume 3, section 4.10.3: for each level above the last a small cache of entries
//! that lead to tables, found by the part of the address that the walk has used up to there. A walk begins behind the
//! lowest one that has its part. A move to `cr3` and `invlpg` empty them; nothing in them is global.

use crate::page_tables::{HUGE, LARGE, SMALL};
use crate::set_associative::Sets;

/// How many entries of each level are kept, fully associative: those that lead to tables of pages of 4 KiB (PDEs), of
/// 2 MiB (PDPTEs), and to what is above (PML4Es). 0: none.
pub type Sizes = [u64; 3];

const TERA: u32 = 39;
/// Bits of an address below the part by which each is found.
const BELOW: [u32; 3] = [LARGE, HUGE, TERA];
/// Addresses with the sign's bits taken off, so that keys leave room for an empty one.
const WITHIN: u64 = (1 << 57) - 1;

/// The caches.
pub struct PagingCaches {
    levels: [Option<Sets>; 3],
}

impl PagingCaches {
    /// Empty ones.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            levels: sizes.map(|size| (size > 0).then(|| Sets::new(1, size))),
        }
    }

    /// A page with so many bits is walked for, in tables of so many levels: how many entries have to be read.
    pub fn walk(&mut self, address: u64, bits: u32, levels: usize) -> usize {
        let last = ((bits - SMALL) / 9) as usize;
        let whole = levels - last;
        let mut left = whole;
        // From the lowest level that can lead to the page upwards. What was read by the way is kept.
        for (kept, below) in self.levels.iter_mut().zip(BELOW).skip(last) {
            let Some(sets) = kept else { continue };
            let level = ((below - SMALL) / 9) as usize;
            if sets.touch((address & WITHIN) >> below) {
                left = left.min(level - last);
                break;
            }
        }
        left.max(1)
    }

    /// Nothing is kept.
    pub fn clear(&mut self) {
        self.levels.iter_mut().flatten().for_each(Sets::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that are read in all, in a round over pages `stride` apart, after one round that warms.
    fn second_round(sizes: Sizes, stride: u64, pages: u64, bits: u32) -> usize {
        let mut caches = PagingCaches::new(sizes);
        let mut round = || -> usize {
            (0..pages)
                .map(|page| caches.walk(page * stride, bits, 4))
                .sum()
        };
        round();
        round()
    }

    #[test]
    fn the_first_walk_reads_every_level_and_the_next_in_one_table_a_single_entry() {
        let mut caches = PagingCaches::new([32, 4, 2]);
        assert_eq!(caches.walk(0x7f00_0000_0000, SMALL, 4), 4);
        assert_eq!(caches.walk(0x7f00_0000_1000, SMALL, 4), 1);
        // Another table of the same directory, another directory, another half of memory.
        assert_eq!(caches.walk(0x7f00_0020_0000, SMALL, 4), 2);
        assert_eq!(caches.walk(0x7f00_4000_0000, SMALL, 4), 3);
        assert_eq!(caches.walk(0xffff_c900_0000_0000, SMALL, 4), 4);
        caches.clear();
        assert_eq!(caches.walk(0x7f00_0000_1000, SMALL, 4), 4);
    }

    #[test]
    fn large_pages_are_found_by_the_level_above() {
        let mut caches = PagingCaches::new([32, 4, 2]);
        assert_eq!(caches.walk(0x4000_0000, LARGE, 4), 3);
        assert_eq!(caches.walk(0x4020_0000, LARGE, 4), 1);
        assert_eq!(caches.walk(0x8000_0000, HUGE, 4), 1);
        assert_eq!(caches.walk(0x8000_0000, LARGE, 4), 2);
    }

    #[test]
    fn five_levels_read_one_more_where_nothing_is_kept() {
        let mut caches = PagingCaches::new([32, 4, 2]);
        assert_eq!(caches.walk(0x40_0000, SMALL, 5), 5);
        assert_eq!(caches.walk(0x40_1000, SMALL, 5), 1);
    }

    #[test]
    fn tables_beyond_what_is_kept_cost_an_entry_more() {
        // A page in each of as many tables as there is room for, and in twice as many: these are of one directory.
        assert_eq!(second_round([32, 4, 2], 2 << 20, 32, SMALL), 32);
        assert_eq!(second_round([32, 4, 2], 2 << 20, 64, SMALL), 2 * 64);
        // Pages 1 GiB apart: each of another directory, of which four are kept.
        assert_eq!(second_round([2, 4, 2], 1 << 30, 4, SMALL), 2 * 4);
        assert_eq!(second_round([2, 4, 2], 1 << 30, 8, SMALL), 3 * 8);
        assert_eq!(second_round([2, 4, 2], 1 << 39, 8, SMALL), 4 * 8);
    }

    #[test]
    fn without_caches_every_walk_reads_every_level() {
        assert_eq!(second_round([0, 0, 0], 4096, 10, SMALL), 4 * 10);
        assert_eq!(second_round([0, 0, 0], 2 << 20, 10, LARGE), 3 * 10);
    }
}
