//! Whose code a block is: functions and pages of programs get rows as they are first translated.

use crate::pages::crc32;
use crate::symbols::{Symbols, KERNEL};
use crate::tally::{class_of, Block, Class, Tally, NOTHING};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Pages that are told apart; the rest is one.
const MOST_PAGES: usize = 1 << 11;
/// A page that is not told apart, or in no RAM.
const REST: Page = Page {
    address: 0,
    checksum: 0,
};

/// A page of a program's code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page {
    /// Where the program has it.
    pub address: u64,
    /// Of its 4096 bytes.
    pub checksum: u32,
}

/// What a row stands for.
#[derive(Clone, Copy)]
pub enum Row {
    /// Before a CPU was seen.
    Nothing,
    /// A function, by its place among the symbols.
    Function(usize),
    /// A page of a program.
    Page(Page),
}

/// The rows of a tally.
pub struct Code {
    /// The kernel's functions.
    pub symbols: Symbols,
    /// By row.
    pub rows: Vec<Row>,
    functions: Vec<u32>,
    pages: BTreeMap<Page, u32>,
}

impl Code {
    /// With the kernel's symbols.
    pub fn new(symbols: &'static [u8]) -> Self {
        Self {
            symbols: Symbols::read(symbols),
            rows: alloc::vec![Row::Nothing],
            functions: Vec::new(),
            pages: BTreeMap::new(),
        }
    }

    /// The block at this address, of so many instructions, in a page of the guest's memory.
    pub fn block(
        &mut self,
        tally: &mut Tally,
        address: u64,
        memory: Option<&[u8; 4096]>,
        length: usize,
    ) -> Block {
        if address < KERNEL {
            let page = memory.map_or(REST, |memory| Page {
                address: address & !0xfff,
                checksum: crc32(memory),
            });
            return Block::new(length, self.page(tally, page), false);
        }
        let place = self.symbols.find(address);
        let symbol = *self.symbols.get(place);
        let is_entry = symbol.whole == place && symbol.start == address;
        // What has no name is whole.
        let whole = match symbol.end {
            0 => place,
            _ => symbol.whole,
        };
        Block::new(length, self.function(tally, whole), is_entry)
    }

    fn function(&mut self, tally: &mut Tally, place: usize) -> u32 {
        if place >= self.functions.len() {
            self.functions.resize(place + 1, NOTHING);
        }
        if self.functions[place] == NOTHING {
            self.rows.push(Row::Function(place));
            self.functions[place] = tally.row(class_of(self.symbols.get(place).name));
        }
        self.functions[place]
    }

    fn page(&mut self, tally: &mut Tally, page: Page) -> u32 {
        let page = match self.pages.len() < MOST_PAGES || self.pages.contains_key(&page) {
            true => page,
            false => REST,
        };
        let rows = &mut self.rows;
        *self.pages.entry(page).or_insert_with(|| {
            rows.push(Row::Page(page));
            tally.row(Class::Other)
        })
    }
}
