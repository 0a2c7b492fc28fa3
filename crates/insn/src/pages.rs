//! Programs are told apart by their code: which page of memory, at which address, with which content.
//!
//! The API shows no process (version 1 shows no register either). Whoever knows the programs' files can find the page
//! among them by its checksum.

use crate::layout::MOST_PAGES;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One page of a program's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page {
    /// Its address in the program.
    pub address: u64,
    /// CRC-32 (IEEE 802.3, as in zlib) of its 4096 bytes.
    pub checksum: u32,
}

/// Page number 0: those that do not fit, and code outside RAM.
const REST: Page = Page {
    address: 0,
    checksum: 0,
};

/// Numbered pages.
pub struct Pages {
    all: Vec<Page>,
    numbers: BTreeMap<Page, usize>,
    /// The page that was found last: where QEMU keeps it, its address, its number.
    last: (usize, u64, usize),
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            all: alloc::vec![REST],
            numbers: BTreeMap::new(),
            last: (0, 0, 0),
        }
    }
}

impl Pages {
    /// Another block is being translated: memory may hold something else by now.
    pub fn look_again(&mut self) {
        self.last = (0, 0, 0);
    }

    /// The number of the page at `address`, which QEMU keeps in `memory`.
    pub fn find(&mut self, address: u64, memory: Option<&[u8; 4096]>) -> usize {
        let Some(memory) = memory else { return 0 };
        let (address, host) = (address & !0xfff, memory.as_ptr() as usize);
        if (self.last.0, self.last.1) != (host, address) {
            let checksum = crc32(memory);
            self.last = (host, address, self.number(Page { address, checksum }));
        }
        self.last.2
    }

    fn number(&mut self, page: Page) -> usize {
        if let Some(&number) = self.numbers.get(&page) {
            return number;
        }
        if self.all.len() >= MOST_PAGES {
            return 0;
        }
        self.all.push(page);
        self.numbers.insert(page, self.all.len() - 1);
        self.all.len() - 1
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The page with this number.
    pub fn get(&self, number: usize) -> Page {
        self.all[number]
    }
}

/// The checksum of each single byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| (crc >> 8) ^ TABLE[((crc ^ u32::from(byte)) & 0xff) as usize];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_zlib_s() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn pages_differ_by_address_and_content() {
        let (nops, zeros) = ([0x90u8; 4096], [0u8; 4096]);
        let mut pages = Pages::default();
        let first = pages.find(0x40_1234, Some(&nops));
        assert_eq!(pages.find(0x40_1ff0, Some(&nops)), first);
        assert_ne!(pages.find(0x40_2000, Some(&nops)), first);
        assert_ne!(pages.find(0x40_1000, Some(&zeros)), first);
        assert_eq!(
            pages.get(first),
            Page {
                address: 0x40_1000,
                checksum: crc32(&nops)
            }
        );
        assert_eq!(pages.find(0x40_1000, None), 0);
    }

    #[test]
    fn memory_that_holds_another_page_by_now_is_another() {
        let mut memory = [0x90u8; 4096];
        let mut pages = Pages::default();
        let first = pages.find(0x1000, Some(&memory));
        memory[7] = 0xcc;
        pages.look_again();
        assert_ne!(pages.find(0x1000, Some(&memory)), first);
    }

    #[test]
    fn a_page_that_was_copied_is_still_the_same() {
        let (one, copy) = ([0x90u8; 4096], [0x90u8; 4096]);
        let mut pages = Pages::default();
        assert_eq!(
            pages.find(0x1000, Some(&one)),
            pages.find(0x1000, Some(&copy))
        );
    }
}
