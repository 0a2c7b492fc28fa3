use super::*;
use std::collections::BTreeMap;

/// Memory with page tables that a test fills.
pub struct Tables {
    words: BTreeMap<u64, u64>,
    next: u64,
    pub root: Root,
}

impl Tables {
    /// Empty tables of so many levels; the first one is at 1 MiB, others are behind it as they are needed.
    pub fn new(levels: usize) -> Self {
        let root = Root {
            table: 1 << 20,
            levels,
        };
        Self {
            words: BTreeMap::new(),
            next: root.table + 4096,
            root,
        }
    }

    /// Maps the page of so many bits that holds `address`.
    pub fn map(&mut self, address: u64, bits: u32, physical: u64) {
        let mut table = self.root.table;
        for level in (0..self.root.levels as u32).rev() {
            let shift = SMALL + BITS * level;
            let place = table + (address >> shift & 0x1ff) * 8;
            if shift == bits {
                let size = if bits == SMALL { 0 } else { IS_PAGE };
                // Bit 63 forbids execution, and is no part of the address.
                self.words
                    .insert(place, physical | size | PRESENT | 1 << 63);
                return;
            }
            let next = self.next;
            let below = self.words.entry(place).or_insert(next | 0x67);
            if *below == next | 0x67 {
                self.next += 4096;
            }
            table = *below & ADDRESS;
        }
    }
}

impl Memory for Tables {
    fn root(&self) -> Option<Root> {
        Some(self.root)
    }

    fn read(&self, physical: u64) -> Option<u64> {
        (physical < 1 << 30).then(|| self.words.get(&physical).copied().unwrap_or(0))
    }
}

const TABLE: u64 = 1 << 20;

#[test]
fn a_small_page_is_found_at_the_end_of_four_tables() {
    let mut tables = Tables::new(4);
    tables.map(0x40_3000, SMALL, 0x1234_5000);
    let found = walk(&tables, tables.root, 0x40_3abc).unwrap();
    assert_eq!((found.bits, found.count), (SMALL, 4));
    // The entry of the page, of its table, and so on to the root: numbers 3, 2, 0 and 0.
    let entries = [
        TABLE + 0x3000 + 3 * 8,
        TABLE + 0x2000 + 2 * 8,
        TABLE + 0x1000,
        TABLE,
    ];
    assert_eq!(found.entries[..4], entries);
    assert_eq!(walk(&tables, tables.root, 0x40_4000), None);
}

#[test]
fn larger_pages_end_a_walk_sooner() {
    let mut tables = Tables::new(4);
    tables.map(0x7f00_0020_0000, LARGE, 0x1220_0000);
    tables.map(0xffff_8880_4000_0000, HUGE, 0x4000_0000);
    let large = walk(&tables, tables.root, 0x7f00_003f_ffff).unwrap();
    assert_eq!((large.bits, large.count), (LARGE, 3));
    let huge = walk(&tables, tables.root, 0xffff_8880_7fff_fff8).unwrap();
    assert_eq!((huge.bits, huge.count), (HUGE, 2));
    assert_eq!(huge.entries[1], TABLE + 0x111 * 8);
}

#[test]
fn five_levels_have_one_table_more() {
    let mut tables = Tables::new(5);
    tables.map(0xff11_0000_0000_0000, LARGE, 0);
    tables.map(0x40_0000, SMALL, 0x9000);
    let kernel = walk(&tables, tables.root, 0xff11_0000_001f_f000).unwrap();
    assert_eq!((kernel.bits, kernel.count), (LARGE, 4));
    let program = walk(&tables, tables.root, 0x40_0fff).unwrap();
    assert_eq!((program.bits, program.count), (SMALL, 5));
}

#[test]
fn registers_say_where_tables_begin() {
    let four = Root {
        table: 0x1_2345_6000,
        levels: 4,
    };
    // The low bits are a PCID or flags.
    assert_eq!(Root::of(0x1_2345_6fff, 0x20), four);
    assert_eq!(Root::of(0x1_2345_6000, 0x1020).levels, 5);
}

#[test]
fn tables_that_are_in_no_memory_are_not_walked() {
    let mut tables = Tables::new(4);
    tables.words.insert(TABLE, 1 << 40 | PRESENT);
    assert_eq!(walk(&tables, tables.root, 0), None);
    assert_eq!(walk(&Unknown, tables.root, 0), None);
}
